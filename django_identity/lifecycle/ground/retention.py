"""What is kept of an event, and for how long. Other old rows: ``minute.upkeep.purge``.

- At first an event has type, times and digests, the subject, its id (``WebhookEvent.of``), and of
  its data what is needed (``kept_of``).
- About a subject that is not linked it keeps type, times and digests alone, from the second
  transaction on.
- When the subject is erased, or its link goes, the same is kept (``empty_events``).
- After ``EVENT_DAYS`` the row is deleted (``old``).
"""

from datetime import timedelta

from django.db.models import Case, F, Q, QuerySet, When
from django.utils import timezone

from django_identity import conf
from django_identity.event_types import KINDS, Effect, Event, types_of
from django_identity.handlers import handlers_of
from django_identity.models import WebhookEvent
from django_identity.models.choices import Columns
from django_identity.strict_json import JSONObject

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


def kept_of(event: Event) -> JSONObject | None:
    """What is kept of the data of ``event``: ``KEPT_MEMBERS``, or all if the type has a handler."""
    sent = event.content
    if handlers_of(event.event_type):
        return sent
    if event.event_type not in KINDS:
        return None
    return {name: sent[name] for name in KEPT_MEMBERS if name in sent}


def with_content(subject_digest: str) -> QuerySet[WebhookEvent]:
    """The events about the subject that still have content."""
    events = WebhookEvent.objects.filter(subject_digest=subject_digest)
    return events.exclude(subject="", event_id="", payload__isnull=True)


def others_with_content(subject_digest: str) -> QuerySet[WebhookEvent]:
    """The same, less events that are not applied yet: applying one empties it."""
    return with_content(subject_digest).exclude(outcome="")


def empty_events(events: QuerySet[WebhookEvent]) -> int:
    """Delete subject and payload from ``events``. Type, times and digests stay.

    Their handlers do not run, except those of the request to delete. An event that was not applied
    yet stays due, because nobody else would apply it. One statement for any number.
    """
    stays_due = Q(event_type__in=types_of(Effect.ERASE)) | Q(outcome="")
    when_due = Case(When(stays_due, then=F("next_attempt_at")))
    return events.update(**EMPTIED, next_attempt_at=when_due)


def old() -> QuerySet[WebhookEvent]:
    """The events that are older than ``EVENT_DAYS``, the oldest first."""
    oldest = timezone.now() - timedelta(days=conf.application().event_days)
    return WebhookEvent.objects.filter(received_at__lt=oldest).order_by("received_at")
