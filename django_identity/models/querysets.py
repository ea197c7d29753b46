"""Named queries. An index serves each of them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.contrib.auth import get_user_model
from django.db import models
from django.db.models.constants import OnConflict

from django_identity import database

if TYPE_CHECKING:
    from django_identity.conf import Application
    from django_identity.models import LinkedIdentity, WebhookEvent  # noqa: F401  in the bases


def digest(*parts: str) -> str:
    """SHA-256 (hex) over ``parts`` with their lengths: equal only if all parts are equal.

    Databases compare text by a collation. A digest is compared exactly on every database.
    """
    hashed = hashlib.sha256()
    for part in parts:
        hashed.update(len(part.encode()).to_bytes(4) + part.encode())
    return hashed.hexdigest()


def disabled_account(path: str = "user") -> models.Q:
    """The condition that the account at ``path`` is disabled.

    A user model without a column ``is_active`` has no disabled accounts.
    """
    fields = {field.name for field in get_user_model()._meta.concrete_fields}
    return (
        models.Q(**{f"{path}__is_active": False}) if "is_active" in fields else models.Q(pk__in=())
    )


def under(applications: Iterable[Application], *, path: str = "") -> models.Q:
    """The condition that a row is of one of ``applications``. ``path``: to its identity."""
    condition = models.Q(pk__in=())
    for each in applications:
        names = {f"{path}application": each.alias, f"{path}environment": each.environment}
        condition |= models.Q(**names)
    return condition


def failing(now: datetime) -> models.Q:
    """The condition that the last re-fetch of an identity failed.

    A worker counts a failure before it begins, so one failure of a row in its hands is none.
    """
    in_hand = models.Q(refetch_started=True, refetch_taken_until__gt=now, refetch_failures=1)
    return models.Q(refetch_failures__gt=0) & ~in_hand


class LinkedIdentityQuerySet(models.QuerySet["LinkedIdentity"]):
    def under(self, application: Application) -> LinkedIdentityQuerySet:
        """The identities under ``application``, in its environment."""
        return self.filter(application=application.alias, environment=application.environment)


class WebhookEventQuerySet(models.QuerySet["WebhookEvent"]):
    def insert(self, event: WebhookEvent) -> bool:
        """Insert an event and set its key. Returns False for a repeat, which changes nothing.

        A repeat must not raise an error in the database, whose log would then contain the event.
        Django's public functions need a second statement to tell whether a row was inserted.
        """
        key = self.model._meta.pk
        columns = [field for field in self.model._meta.concrete_fields if field is not key]
        rows: Any = self._insert(  # type: ignore[attr-defined]  # Django's own
            [event], fields=columns, returning_fields=[key], on_conflict=OnConflict.IGNORE
        )
        # Without an inserted row: an empty row, no row (Django 6.0), or a key of 0 (MariaDB).
        event.pk = (rows[0][0] or None) if rows and rows[0] else None
        return event.pk is not None


LinkedIdentityManager = database.Manager.from_queryset(LinkedIdentityQuerySet)
WebhookEventManager = database.Manager.from_queryset(WebhookEventQuerySet)
