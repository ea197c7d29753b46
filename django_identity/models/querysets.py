"""Queries that have a name, each served by an index."""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.db import models

if TYPE_CHECKING:
    from django_identity.models import (  # noqa: F401  named in the bases, as text
        AuthorizationRequest,
        ErasureReceipt,
        LinkedIdentity,
        WebhookEvent,
    )


def digest(*parts: str) -> str:
    """SHA-256 (hex) over ``parts``, each with its length: equal only if every part is equal.

    Databases compare text by their collation; a digest is exact on all of them.
    """
    hashed = hashlib.sha256()
    for part in parts:
        hashed.update(len(part.encode()).to_bytes(4) + part.encode())
    return hashed.hexdigest()


class LinkedIdentityQuerySet(models.QuerySet["LinkedIdentity"]):
    def of_subject(
        self, *, application: str, environment: str, subject: str
    ) -> LinkedIdentityQuerySet:
        """The identity of exactly that subject, whatever the database's collation."""
        return self.filter(subject_digest=digest(application, environment, subject))

    def of_user(
        self, user_id: Any, *, application: str, environment: str
    ) -> LinkedIdentityQuerySet:
        return self.filter(user_id=user_id, application=application, environment=environment)


class AuthorizationRequestQuerySet(models.QuerySet["AuthorizationRequest"]):
    def started_in(self, *, state: str, browser_key: str) -> AuthorizationRequestQuerySet:
        """The request of that state, if it was started in the browser that holds the key."""
        return self.filter(state_digest=digest(state), browser_digest=digest(browser_key))


class WebhookEventQuerySet(models.QuerySet["WebhookEvent"]):
    def of_subject_since(self, subject_digest: str, moment: datetime) -> WebhookEventQuerySet:
        """The subject's events that came in at ``moment`` or later, the oldest happening first."""
        return self.filter(subject_digest=subject_digest, received_at__gte=moment).order_by(
            "occurred_at", "event_digest"
        )

    def awaiting_handlers(self, now: datetime) -> WebhookEventQuerySet:
        """Events whose next attempt is due."""
        return self.filter(next_attempt_at__lte=now)

    def not_under_way(self, now: datetime) -> WebhookEventQuerySet:
        """Events that no worker is at. One that waits for its next attempt says why it failed."""
        return self.exclude(next_attempt_at__gt=now, error="")


class ErasureReceiptQuerySet(models.QuerySet["ErasureReceipt"]):
    def pending(self) -> ErasureReceiptQuerySet:
        """Erasures that were asked for and are not done."""
        return self.filter(erased_at=None)
