"""What is kept of an event, and for how long.

- At first: type, times and digests, before anybody looks for its subject
  (``WebhookEvent.of``). Of a subject that is not linked nothing more is ever kept.
- Of a linked subject also the subject, the event's id and its data (``keep``).
- When the subject is forgotten, what it was at first (``empty``): by an erasure, or with its link.
- After ``EVENT_DAYS`` nothing (``old``).
"""

from datetime import timedelta

from django.db.models import Case, F, Q, QuerySet, When
from django.utils import timezone

from django_identity import conf
from django_identity.event_types import ERASING, KINDS
from django_identity.handlers import handlers_of
from django_identity.models import WebhookEvent
from django_identity.models.choices import Columns
from django_identity.service.webhooks import Event

#: The members of an event's data that the specification and this package name.
KEPT_MEMBERS = (
    "user_id",
    "userId",
    "sub",
    "kyc_level",
    "status",
    "provider",
    "claim_type",
)
#: The content of an event that has none.
EMPTIED: Columns = {
    "payload": None,
    "subject": "",
    "event_id": "",
    "error": "",
}


def keep(row: WebhookEvent, event: Event) -> None:
    """Take the content of ``event``, which is about a linked subject. The caller saves the row.

    Of the data it is ``KEPT_MEMBERS``, or all if the type has a handler.
    """
    row.event_id = event.event_id
    row.subject = event.subject
    if handlers_of(event.event_type):
        row.payload = event.content
    elif event.event_type in KINDS:
        sent = event.content
        row.payload = {name: sent[name] for name in KEPT_MEMBERS if name in sent}


def empty(events: QuerySet[WebhookEvent]) -> int:
    """Delete subject and payload from ``events``. Type, times and digests stay.

    Their handlers do not run, except those of the request to delete. An event that was not applied
    yet stays due, because nobody else would apply it. One statement for any number.
    """
    stays_due = Q(event_type__in=ERASING) | Q(outcome="")
    when_due = Case(When(stays_due, then=F("next_attempt_at")))
    return events.update(**EMPTIED, next_attempt_at=when_due)


def old() -> QuerySet[WebhookEvent]:
    """The events that are older than ``EVENT_DAYS``, the oldest first."""
    oldest = timezone.now() - timedelta(days=conf.application().event_days)
    return WebhookEvent.objects.filter(received_at__lt=oldest).order_by("received_at")
