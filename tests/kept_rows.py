"""Content types and permissions, put back by two statements after each flush.

A test with transactions of its own ends with a flush, after which Django makes these rows anew with
dozens of queries: most of what such a test costs. They are the same rows each time.
"""

from __future__ import annotations

from typing import Any

from django.apps import AppConfig
from django.contrib.auth.management import create_permissions
from django.contrib.auth.models import Permission
from django.contrib.contenttypes.management import create_contenttypes
from django.contrib.contenttypes.models import ContentType
from django.db.models.signals import post_migrate

# The last of the two apps whose rows they are.
AFTER = "contenttypes"


def keep_rows() -> None:
    """Call it once the tables are made and filled."""
    types, permissions = list(ContentType.objects.all()), list(Permission.objects.all())

    def put_back(sender: AppConfig, **_kwargs: Any) -> None:
        if sender.label == AFTER:
            ContentType.objects.bulk_create(types)
            Permission.objects.bulk_create(permissions)

    post_migrate.disconnect(create_contenttypes)
    post_migrate.disconnect(
        create_permissions, dispatch_uid="django.contrib.auth.management.create_permissions"
    )
    post_migrate.connect(put_back, weak=False, dispatch_uid="tests.kept_rows")
