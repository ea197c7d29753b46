"""What the drill runs in: databases of its own, a sandbox, and nothing that is live."""

import gc
import os
import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from tempfile import TemporaryDirectory
from typing import Any

from django.conf import settings
from django.core.cache.backends.base import BaseCache
from django.core.cache.backends.locmem import LocMemCache
from django.core.files.storage import FileSystemStorage, Storage
from django.core.mail.backends import locmem
from django.core.mail.backends.base import BaseEmailBackend
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.recorder import MigrationRecorder
from django.test import override_settings, utils
from django.utils import timezone

from django_identity import background, boundary, conf
from django_identity.testing.sandbox import RunningSandbox, running_sandbox
from django_identity.web.pages import address_of

ORIGIN = "https://testserver"
CACHE = "django.core.cache.backends.locmem.LocMemCache"
FILES = {"BACKEND": "django.core.files.storage.FileSystemStorage"}
# Without the names of queues it takes any.
TASKS = {
    "BACKEND": "django.tasks.backends.immediate.ImmediateBackend",
    "QUEUES": [],
}
# What is the site's own, beside the client's credentials.
NOT_OURS: dict[str, Any] = {
    "API_ORIGIN": None,
    "REDIRECT_URI": None,
    "ENCRYPTION_KEYS": None,
    "DOCUMENT_KEYS": [],
}


class Refused(Exception):
    """The drill does not run here. The message says why."""


@contextmanager
def own_world() -> Iterator[RunningSandbox]:
    """Replace everything outside the process. Raises ``Refused``.

    What the site's own code opens by itself, such as a socket, stays as it is. The process is for
    the drill alone: caches, storages, mail and tasks stay local in it.
    """
    utils.setup_test_environment(debug=False)
    # A finding names the place in the site's code.
    boundary.tests.see_errors = True
    background.run_here()
    with TemporaryDirectory(prefix="identity-drill-") as folder:
        media = os.path.join(folder, "media")
        _replace_opened(media)
        with (
            _own_settings(folder, media),
            _own_databases(),
            running_sandbox() as sandbox,
            override_settings(DJANGO_IDENTITY=_registered(sandbox)),
        ):
            if conf.application().base_url != sandbox.base_url:
                raise Refused(
                    "The site keeps its own credentials, whatever its settings are.",
                )
            yield sandbox


def _own_settings(folder: str, media: str) -> override_settings:
    """Nothing in them leads out of the process, or out of ``folder``."""
    caches = {alias: {"BACKEND": CACHE, "LOCATION": alias} for alias in settings.CACHES}
    # For a Celery app that the site imports later.
    celery = {
        f"CELERY_{name.upper()}": value for name, value in background.LOCAL.items()
    }
    return override_settings(
        CACHES=caches,
        STORAGES=dict.fromkeys(settings.STORAGES, FILES),
        MEDIA_ROOT=media,
        SESSION_FILE_PATH=folder,
        TASKS=dict.fromkeys(getattr(settings, "TASKS", ()), TASKS),
        **celery,
    )


def _replace_opened(media: str) -> None:
    """Make local what the site's code has opened already and keeps in names of its own.

    A field's storage is one, and so is ``CACHE = caches["default"]`` in a module. No setting
    reaches them any more.
    """
    local = {
        BaseCache: LocMemCache("drill", {}),
        Storage: FileSystemStorage(media),
        BaseEmailBackend: locmem.EmailBackend(),
    }
    for opened in gc.get_objects():
        for kind, own in local.items():
            # ``isinstance`` would open a lazy one.
            if issubclass(type(opened), kind):
                opened.__class__ = type(own)
                vars(opened).update(vars(own))


@contextmanager
def _own_databases() -> Iterator[None]:
    """Test databases, under names that nobody else has: none is replaced by them."""
    named = [(each, str(each.settings_dict["NAME"])) for each in connections.all()]
    began = timezone.now()
    with ExitStack() as leaving:
        for connection, name in named:
            leaving.callback(_destroy, connection, name)
        # Before any of them goes: another alias may still lead there.
        leaving.callback(connections.close_all)
        _choose_names()
        try:
            utils.setup_databases(verbosity=0, interactive=False, serialized_aliases=())
        except SystemExit:
            # Django has written why.
            raise Refused("No test database can be made. May its user?") from None
        if any(_is_theirs(connection, name, began) for connection, name in named):
            raise Refused(
                "The back end of a database makes no test database: it would be the site's.",
            )
        yield


def _choose_names() -> None:
    """Name the test databases. Two aliases of one database have one, as a replica has."""
    aliases: dict[tuple[str, ...], str] = {}
    for connection in connections.all():
        own = connection.settings_dict
        place = tuple(str(own[part]) for part in ("ENGINE", "HOST", "PORT", "NAME"))
        first = aliases.setdefault(place, connection.alias)
        if first != connection.alias:
            own["TEST"]["MIRROR"] = first
        name = f"drill_{secrets.token_hex(4)}"
        if connection.vendor == "sqlite":
            name = f"file:{name}?mode=memory&cache=shared"
        own["TEST"]["NAME"] = name
        # A pool would go on to lend its connections to the site's database.
        connection.close()
        if hasattr(connection, "close_pool"):
            connection.close_pool()
    for connection in connections.all():
        own = connection.settings_dict
        mirrored = own["TEST"]["MIRROR"]
        if mirrored:
            # Not only when the others are made: migrations may read there.
            own["NAME"] = connections[mirrored].settings_dict["TEST"]["NAME"]


def _destroy(connection: BaseDatabaseWrapper, name: str) -> None:
    """Delete the test database, if one was made in place of ``name``."""
    own = connection.settings_dict
    if own["TEST"]["MIRROR"]:
        own["NAME"] = name
    elif own["NAME"] != name:
        connection.creation.destroy_test_db(name, verbosity=0)


def _is_theirs(connection: BaseDatabaseWrapper, name: str, began: datetime) -> bool:
    """Whether it leads to its database of the site, under its ``name`` or under another one."""
    if str(connection.settings_dict["NAME"]) == name:
        return True
    recorder = MigrationRecorder(connection)
    if not recorder.has_table():
        return False
    older = recorder.migration_qs.filter(applied__lt=began)
    return older.exists()


def _registered(sandbox: RunningSandbox) -> dict[str, Any]:
    """The site's settings, with the credentials of an application of the sandbox."""
    return {
        **settings.DJANGO_IDENTITY,
        **NOT_OURS,
        **sandbox.register([ORIGIN + address_of("callback")]),
        "WEBHOOK_SECRETS": [secrets.token_urlsafe(32)],
    }
