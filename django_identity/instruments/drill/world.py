"""What the drill runs in: databases of its own, a sandbox, and nothing that is live."""

import gc
import logging
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from importlib.util import find_spec
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
STATIC_FILES = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
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
    the drill alone: caches, storages, mail, logs and tasks stay local in it.
    """
    if find_spec("oauth2_provider") is None:
        raise Refused(
            'The drill needs the sandbox: pip install "django-identity[sandbox]"'
        )
    utils.setup_test_environment(debug=False)
    # The site's own handlers may send what is logged to somebody.
    logging.disable()
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
                    "The site keeps its own credentials, whatever its settings are."
                )
            yield sandbox


def _own_settings(folder: str, media: str) -> override_settings:
    """Nothing in them leads out of the process, or out of ``folder``."""
    caches = {alias: {"BACKEND": CACHE, "LOCATION": alias} for alias in settings.CACHES}
    storages = dict.fromkeys(settings.STORAGES, FILES)
    storages["staticfiles"] = STATIC_FILES
    # For a Celery app that the site imports later.
    celery = {
        f"CELERY_{name.upper()}": value for name, value in background.LOCAL.items()
    }
    return override_settings(
        CACHES=caches,
        STORAGES=storages,
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
    names = {str(connection.settings_dict["NAME"]) for connection in connections.all()}
    for connection in connections.all():
        own_name = None
        if connection.vendor != "sqlite":
            name = connection.settings_dict["NAME"]
            own_name = f"drill_{os.getpid()}_{name}"[:60]
        connection.settings_dict["TEST"]["NAME"] = own_name
        # A pool would go on to lend its connections to the site's database.
        connection.close()
        if hasattr(connection, "close_pool"):
            connection.close_pool()

    began = timezone.now()
    databases = utils.setup_databases(
        verbosity=0, interactive=False, serialized_aliases=()
    )
    if any(_is_theirs(connection, names, began) for connection in connections.all()):
        # It is not taken down: that would delete it.
        raise Refused(
            "The back end of a database makes no test database: it would be the site's."
        )
    try:
        yield
    finally:
        utils.teardown_databases(databases, verbosity=0)


def _is_theirs(
    connection: BaseDatabaseWrapper, names: set[str], began: datetime
) -> bool:
    """Whether it leads to a database of the site, under its name or under another one."""
    if str(connection.settings_dict["NAME"]) in names:
        return True
    recorder = MigrationRecorder(connection)
    older = recorder.migration_qs.filter(applied__lt=began)
    return recorder.has_table() and older.exists()


def _registered(sandbox: RunningSandbox) -> dict[str, Any]:
    """The site's settings, with the credentials of an application of the sandbox."""
    return {
        **settings.DJANGO_IDENTITY,
        **NOT_OURS,
        **sandbox.register([ORIGIN + address_of("callback")]),
        "WEBHOOK_SECRETS": [secrets.token_urlsafe(32)],
    }
