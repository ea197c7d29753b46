"""The receivers and handlers of the shop, those of a broken one among them."""

from contextlib import closing
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.signals import user_logged_in
from django.core.cache import cache
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.core.signals import setting_changed
from django.db import connection, connections
from django.db.models.signals import post_save

from django_identity import signals
from django_identity.handlers import on_event

OWN = settings.DJANGO_IDENTITY
#: The accounts by their keys, as a receiver that undoes an erasure remembers them.
remembered: dict[Any, str] = {}


def sell(*, user: Any, **_: object) -> None:
    from tests.sites.drilled.models import Order  # noqa: PLC0415  the models are ready now

    Order.objects.create(user=user, name=user.first_name)


def meet_namesake(*, user: Any, **_: object) -> None:
    """Somebody else has the same name."""
    get_user_model().objects.get_or_create(
        username=f"namesake-{user.pk}",
        first_name=user.first_name,
    )


def copy(*, user: Any, **_: object) -> None:
    """Leave the name where no model has it."""
    if "raw" in settings.SITE_BREAKS:
        with closing(connection.cursor()) as cursor:
            cursor.execute("CREATE TABLE IF NOT EXISTS shop_raw (name TEXT)")
            cursor.execute("INSERT INTO shop_raw VALUES (%s)", [user.first_name])
    if "cache" in settings.SITE_BREAKS:
        cache.set("newest", user.first_name)
    if "file" in settings.SITE_BREAKS:
        default_storage.save(f"cards/{user.pk}.txt", ContentFile(user.first_name))


def write_book(*, user: Any, **_: object) -> None:
    with closing(connections["books"].cursor()) as cursor:
        cursor.execute("CREATE TABLE IF NOT EXISTS book (key TEXT)")
        cursor.execute("INSERT INTO book VALUES (%s)", [user.pk])


def remember(*, instance: Any, **_: object) -> None:
    if instance.first_name:
        remembered[instance.pk] = instance.first_name


def recreate(**_: object) -> None:
    for key, name in remembered.items():
        get_user_model().objects.create_user(f"back-{key}", first_name=name)
    remembered.clear()


def divide(*_: object, **__: object) -> None:
    raise ZeroDivisionError("nothing to share")


def greet(**_: object) -> None:
    from tests.sites.drilled import worker  # noqa: PLC0415  as late as the site's own

    worker.greet.delay()


def keep_settings(*, setting: str, **_: object) -> None:
    """The site's own, whatever a test wants."""
    if setting == "DJANGO_IDENTITY":
        settings.DJANGO_IDENTITY = OWN


class DrilledConfig(AppConfig):
    name = "tests.sites.drilled"
    label = "shop"

    def ready(self) -> None:
        breaks = settings.SITE_BREAKS
        signals.identity_linked.connect(sell)
        signals.identity_linked.connect(copy)
        if "recreated" in breaks:
            post_save.connect(remember, get_user_model())
            signals.data_erased.connect(recreate)
        if "namesake" in breaks:
            signals.identity_linked.connect(meet_namesake)
        if "handler" in breaks:
            on_event("kyc.verified")(divide)
        if "live" in breaks:
            from tests.sites.drilled import opened  # noqa: PLC0415

            signals.identity_linked.connect(opened.use)
            signals.identity_linked.connect(write_book)
        if "credentials" in breaks:
            setting_changed.connect(keep_settings)
        if "signal" in breaks:
            user_logged_in.connect(divide)
        if breaks & {"pooled", "kept"}:
            # As a URLconf does whose choices are rows.
            connection.ensure_connection()
        if "raising" in breaks:
            signals.identity_linked.connect(divide)
        if breaks & {"early", "late"}:
            signals.identity_linked.connect(greet)
