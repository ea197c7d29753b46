"""The receivers and handlers of the shop, those of a broken one among them."""

from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.contrib.auth import (
    BACKEND_SESSION_KEY,
    HASH_SESSION_KEY,
    get_user_model,
)
from django.contrib.auth.signals import user_logged_in
from django.core.signals import setting_changed
from django.db import connection
from django.db.models.signals import post_migrate, post_save

from django_identity import signals
from django_identity.handlers import on_event

OWN = settings.DJANGO_IDENTITY
#: The accounts by their keys, as a receiver that undoes an erasure remembers them.
remembered: dict[Any, str] = {}


def sell(*, user: Any, created: bool, **_: object) -> None:
    from tests.sites.drilled.models import Letter, Order  # noqa: PLC0415  the models are ready now

    Order.objects.create(user=user, name=user.first_name)
    Letter.objects.get_or_create(email=user.email or f"nobody-{user.pk}@shop.example")


def meet_namesake(*, user: Any, **_: object) -> None:
    """Somebody else has the same name."""
    get_user_model().objects.get_or_create(
        username=f"namesake-{user.pk}", first_name=user.first_name
    )


def write_book(*, user: Any, **_: object) -> None:
    from tests.sites.drilled.models import History  # noqa: PLC0415

    History.objects.using("books").create(name=user.pk)


def remember(*, instance: Any, **_: object) -> None:
    if instance.first_name:
        remembered[instance.pk] = instance.first_name


def recreate(**_: object) -> None:
    for key, name in remembered.items():
        get_user_model().objects.create_user(f"back-{key}", first_name=name)
    remembered.clear()


def store(event: Any) -> None:
    from tests.sites.drilled.models import EventLog  # noqa: PLC0415

    EventLog.objects.create(payload=event.payload)


def divide(*_: object, **__: object) -> None:
    raise ZeroDivisionError("nothing to share")


def greet(**_: object) -> None:
    from tests.sites.drilled import worker  # noqa: PLC0415  as late as the site's own

    worker.greet.delay()


def take_over(*, request: Any, user: Any, **_: object) -> None:
    """The session is the shop's from now on, and ends as its own do."""
    request.session[BACKEND_SESSION_KEY] = settings.AUTHENTICATION_BACKENDS[0]
    request.session[HASH_SESSION_KEY] = type(user).get_session_auth_hash(user)


def keep_settings(*, setting: str, **_: object) -> None:
    """The site's own, whatever a test wants."""
    if setting == "DJANGO_IDENTITY":
        settings.DJANGO_IDENTITY = OWN


class DrilledConfig(AppConfig):
    name = "tests.sites.drilled"
    label = "shop"

    def ready(self) -> None:
        user = get_user_model()
        signals.identity_linked.connect(sell)
        breaks = settings.SITE_BREAKS
        if "copies" in breaks:
            from tests.sites.drilled import copies  # noqa: PLC0415

            post_migrate.connect(copies.make_tables, self)
            signals.identity_linked.connect(copies.copy)
        if "recreated" in breaks:
            post_save.connect(remember, user)
            signals.data_erased.connect(recreate)
        if "namesake" in breaks:
            signals.identity_linked.connect(meet_namesake)
        if "payload" in breaks:
            on_event("kyc.verified")(store)
        if "handler" in breaks:
            on_event("kyc.verified")(divide)
        if "backend" in breaks:
            user_logged_in.connect(take_over)
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
