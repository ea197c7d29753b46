"""Stored events: written once, known again by a digest, emptied when nobody may be named."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from django.db.models.constants import OnConflict

from django_identity.lifecycle.events import receipts
from django_identity.models import WebhookEvent

#: What becomes of an event of which nobody may be named any more; its digest and its type stay.
EMPTIED: Mapping[str, Any] = {
    "payload": None,
    "subject": "",
    "subject_digest": "",
    "event_id": "",
    "error": "",
}


def insert(event: WebhookEvent) -> bool:
    """Store an event and give it its key. False for a repeat, which changes nothing.

    A repeat is no error, which would write the event into the database's log. ``bulk_create`` with
    ``ignore_conflicts`` does not tell whether there was one; what it calls does.
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


def settle(event: WebhookEvent, *, outcome: str, erased: bool) -> None:
    """Write down what became of an event that was stored as applied, and changed nothing.

    Of an ``erased`` subject nobody is named. A sign-in of that subject that is under way still
    finds the event, by the digest that only the site's key can make.
    """
    event.outcome = outcome
    if erased:
        keyed_digest = receipts.keyed(event.subject_digest)[0]
        for name, value in {**EMPTIED, "subject_digest": keyed_digest}.items():
            setattr(event, name, value)
    event.save(update_fields=["outcome", *(EMPTIED if erased else ())])


def since(subject_digest: str, moment: datetime) -> QuerySet[WebhookEvent]:
    """The events of the subject that came in at ``moment`` or later, the oldest first."""
    digests = [subject_digest, *receipts.keyed(subject_digest)]
    events = WebhookEvent.objects.filter(subject_digest__in=digests, received_at__gte=moment)
    return events.order_by("occurred_at", "event_digest")


def empty(rows: QuerySet[WebhookEvent]) -> int:
    """Take out of these events who they are about and what they say; the digests stay."""
    return rows.update(**EMPTIED)
