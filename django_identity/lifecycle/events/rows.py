"""Stored events: inserted once, recognised by a digest, and emptied by an erasure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db.models import Case, F, QuerySet, When
from django.db.models.constants import OnConflict

from django_identity.handlers import EventType
from django_identity.lifecycle.events.keyed_digests import keyed
from django_identity.models import WebhookEvent

#: The columns of an emptied event. The digest of its id and its type stay.
EMPTIED: Mapping[str, Any] = {
    "body_digest": "",
    "payload": None,
    "subject": "",
    "subject_digest": "",
    "event_id": "",
    "error": "",
    "history": [],
}

#: Handlers that wait for an emptied event no longer run, because it is about nobody.
_NO_HANDLERS = Case(
    When(event_type=EventType.DATA_DELETION_REQUESTED, then=F("next_attempt_at")), default=None
)


def insert(event: WebhookEvent) -> bool:
    """Insert an event and set its key. Returns False for a repeat, which changes nothing.

    A repeat must not raise an error in the database, whose log would then contain the event.
    ``bulk_create`` with ``ignore_conflicts`` does not tell whether a row was inserted; the function
    that it calls does.
    """
    meta = WebhookEvent._meta
    rows: Any = WebhookEvent.objects._insert(  # type: ignore[attr-defined]  # Django's own
        [event],
        fields=[field for field in meta.concrete_fields if not field.primary_key],
        returning_fields=[meta.pk],
        on_conflict=OnConflict.IGNORE,
    )
    # Without an inserted row: an empty row, no row (Django 6.0), or a key of 0 (MariaDB).
    key = rows[0][0] if rows and rows[0] else None
    event.pk = key or None
    return bool(key)


def digests_of(body: bytes) -> list[str]:
    """The digest of a delivery's body under the current key, then under each older key."""
    return keyed(hashlib.sha256(body).hexdigest())


def is_repeat(event: WebhookEvent, body: bytes) -> bool:
    """Whether the stored event with this id had the same body, or no longer has its digest."""
    same_id = WebhookEvent.objects.filter(event_digest=event.event_digest)
    return same_id.filter(body_digest__in=["", *digests_of(body)]).exists()


def settle(event: WebhookEvent, *, outcome: str, bare: bool, erased: bool) -> None:
    """Record the outcome of an event that was inserted as applied but changed nothing.

    ``bare``: the consent does not cover the payload, so it is not kept. If the subject is
    ``erased``, the event is emptied. A sign-in of this subject that is in progress still finds the
    event by a digest that needs the site's key.
    """
    changes: dict[str, Any] = {"outcome": outcome}
    if bare:
        changes["payload"] = None
    if erased:
        emptied = {**EMPTIED, "subject_digest": keyed(event.subject_digest)[0]}
        changes |= {**emptied, "next_attempt_at": None}
    for name, value in changes.items():
        setattr(event, name, value)
    event.save(update_fields=changes)


def since(subject_digest: str, moment: datetime) -> QuerySet[WebhookEvent]:
    """The subject's events that were received at ``moment`` or later, oldest first."""
    digests = [subject_digest, *keyed(subject_digest)]
    events = WebhookEvent.objects.filter(subject_digest__in=digests, received_at__gte=moment)
    return events.order_by("occurred_at", "event_digest")


def empty(rows: QuerySet[WebhookEvent]) -> int:
    """Delete subject and payload from these events. The digests stay."""
    return rows.update(**EMPTIED, next_attempt_at=_NO_HANDLERS)


def unname(subject_digest: str) -> None:
    """Empty the subject's events. A sign-in in progress finds them by their keyed digest."""
    events = WebhookEvent.objects.filter(subject_digest=subject_digest)
    emptied = {**EMPTIED, "subject_digest": keyed(subject_digest)[0]}
    events.update(**emptied, next_attempt_at=_NO_HANDLERS)
