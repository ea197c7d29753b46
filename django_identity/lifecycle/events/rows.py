"""Stored events: inserted once, recognised by a digest, and emptied by an erasure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from django.db.models.constants import OnConflict

from django_identity.lifecycle.events import receipts
from django_identity.models import WebhookEvent

#: The columns of an emptied event. Its digest and its type stay.
EMPTIED: Mapping[str, Any] = {
    "payload": None,
    "subject": "",
    "subject_digest": "",
    "event_id": "",
    "error": "",
}


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
    key = rows[0] and rows[0][0]
    event.pk = key or None
    return bool(key)


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
        changes |= {**EMPTIED, "subject_digest": receipts.keyed(event.subject_digest)[0]}
    for name, value in changes.items():
        setattr(event, name, value)
    event.save(update_fields=changes)


def since(subject_digest: str, moment: datetime) -> QuerySet[WebhookEvent]:
    """The subject's events that were received at ``moment`` or later, oldest first."""
    digests = [subject_digest, *receipts.keyed(subject_digest)]
    events = WebhookEvent.objects.filter(subject_digest__in=digests, received_at__gte=moment)
    return events.order_by("occurred_at", "event_digest")


def empty(rows: QuerySet[WebhookEvent]) -> int:
    """Delete subject and payload from these events. The digests stay."""
    return rows.update(**EMPTIED)
