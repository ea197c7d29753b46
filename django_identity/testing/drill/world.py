"""What the drill runs in: databases of its own, a sandbox, and nothing that is live."""

import logging
import os
import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from importlib.util import find_spec
from tempfile import TemporaryDirectory
from typing import Any

from django.apps import apps
from django.conf import settings
from django.core.files.storage import FileSystemStorage
from django.db import connections, models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.recorder import MigrationRecorder
from django.test import utils
from django.utils import timezone

from django_identity import background, conf
from django_identity.testing.sandbox import RunningSandbox, running_sandbox
from django_identity.views.pages import address_of

ORIGIN = "https://testserver"
LOCAL_CACHE = {
    "BACKEND": "django.core.cache.backends.locmem.LocMemCache",
    "OPTIONS": {},
}
STATIC_FILES = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
# Without the names of queues it takes any.
TASKS_HERE = {
    "BACKEND": "django.tasks.backends.immediate.ImmediateBackend",
    "QUEUES": [],
}
# For a Celery app that the site imports later.
CELERY_HERE = {"CELERY_BROKER_URL": "memory://", "CELERY_TASK_ALWAYS_EAGER": True}
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
    """Everything outside the process is the drill's own until the block ends. Raises ``Refused``.

    What the site's own code opens by itself, such as a socket, stays as it is.
    """
    if find_spec("oauth2_provider") is None:
        raise Refused(
            'The drill needs the sandbox: pip install "django-identity[sandbox]"'
        )
    with ExitStack() as stack:
        media = stack.enter_context(TemporaryDirectory(prefix="identity-drill-"))
        utils.setup_test_environment(debug=False)
        stack.callback(utils.teardown_test_environment)
        # The site's own handlers may send what is logged to somebody.
        logging.disable()
        background.run_here()
        stack.enter_context(utils.override_settings(**_local_settings(media)))
        stack.enter_context(_own_databases())
        sandbox = stack.enter_context(running_sandbox())
        stack.enter_context(
            utils.override_settings(DJANGO_IDENTITY=_registered(sandbox))
        )
        if any(each.base_url != sandbox.base_url for each in conf.applications()):
            raise Refused(
                "The site keeps its own credentials, whatever its settings are."
            )
        yield sandbox


@contextmanager
def _own_databases() -> Iterator[None]:
    """Test databases, under names that nobody else has: none is replaced by them."""
    theirs = [str(each.settings_dict["NAME"]) for each in connections.all()]
    for each, name in zip(connections.all(), theirs, strict=True):
        own = None if each.vendor == "sqlite" else f"drill_{os.getpid()}_{name}"[:60]
        each.settings_dict["TEST"]["NAME"] = own
        # A pool would go on to lend its connections to the site's database.
        each.close()
        if close_pool := getattr(each, "close_pool", None):
            close_pool()

    began = timezone.now()
    made = utils.setup_databases(verbosity=0, interactive=False, serialized_aliases=())
    refused = Refused(
        "The back end of a database makes no test database: it would be the site's."
    )
    if any(str(each.settings_dict["NAME"]) in theirs for each in connections.all()):
        # It is not taken down: that would delete it.
        raise refused
    try:
        if any(_was_migrated(each, before=began) for each in connections.all()):
            raise refused
        yield
    finally:
        utils.teardown_databases(made, verbosity=0)


def _was_migrated(connection: BaseDatabaseWrapper, *, before: datetime) -> bool:
    """Whether what answers is older than the drill: the name that is set may not be its name."""
    recorder = MigrationRecorder(connection)
    older = recorder.migration_qs.filter(applied__lt=before)
    return recorder.has_table() and older.exists()


def _local_settings(media: str) -> dict[str, Any]:
    for model in apps.get_models():
        for field in model._meta.local_fields:
            if isinstance(field, models.FileField):
                field.storage = FileSystemStorage(media)

    caches = {
        alias: {**given, **LOCAL_CACHE, "LOCATION": alias}
        for alias, given in settings.CACHES.items()
    }
    files = {
        "BACKEND": "django.core.files.storage.FileSystemStorage",
        "OPTIONS": {"location": media},
    }
    return {
        "CACHES": caches,
        "STORAGES": {
            **dict.fromkeys(settings.STORAGES, files),
            "staticfiles": STATIC_FILES,
        },
        "TASKS": dict.fromkeys(getattr(settings, "TASKS", ()), TASKS_HERE),
        "MEDIA_ROOT": media,
        **CELERY_HERE,
    }


def _registered(sandbox: RunningSandbox) -> dict[str, Any]:
    """Every application of the site, with the credentials of an application of the sandbox."""
    return {
        each.alias: {
            **settings.DJANGO_IDENTITY[each.alias],
            **NOT_OURS,
            "WEBHOOK_SECRETS": [secrets.token_urlsafe(32)],
            **sandbox.register([ORIGIN + address_of("callback", each)]),
        }
        for each in conf.applications()
    }
