"""The history of one identity from all tables, newest first."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from django.db.models import TextChoices
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from django_identity.models import LinkedIdentity, WebhookEvent

LONGEST = 100
MOST_FOR_PERSON = 20


class Kind(TextChoices):
    """With the words for operators. ``texts.labels`` has those for the person."""

    LINKED = "linked", _("Linked")
    SIGNED_IN = "signed_in", _("Signed in (the latest)")
    REFETCHED = "refetched", _("Credential issued (the latest)")
    REFETCH_FAILED = "refetch_failed", _("Re-fetch failed (the latest)")
    CODE_REDEEMED = "code_redeemed", _("Connect code redeemed (the latest)")
    CONSENT_REVOKED = "consent_revoked", _("Consent revoked")
    EVENT = "event", _("Event")


@dataclass(frozen=True, slots=True)
class Happening:
    """One entry. ``detail`` is an event type, how it was linked, or the code of an error.

    ``outcome``: of an event, in words; or how often it failed. ``event_id``: the primary key of the
    stored event, if the entry is one. Nothing is personal data.
    """

    at: datetime
    kind: Kind
    detail: str = ""
    outcome: str = ""
    event_id: int | None = None


def timeline_of(identity: LinkedIdentity, *, longest: int = LONGEST) -> tuple[Happening, ...]:
    """The newest ``longest`` entries, in one query.

    Only the latest sign-in, code and re-fetch are stored.
    """
    happened = (*_own(identity), *_events(identity, longest))
    return tuple(sorted(happened, key=lambda entry: entry.at, reverse=True)[:longest])


def activity_of(identity: LinkedIdentity) -> list[tuple[datetime, str]]:
    """For the person: when something happened, and its code, newest first."""
    activity: list[tuple[datetime, str]] = []
    for entry in timeline_of(identity, longest=MOST_FOR_PERSON):
        if entry.kind is Kind.EVENT:
            activity.append((entry.at, entry.detail))
        # A failed re-fetch is the operators' to mend.
        elif entry.kind is not Kind.REFETCH_FAILED:
            activity.append((entry.at, entry.kind))
    return activity


def _own(identity: LinkedIdentity) -> Iterator[Happening]:
    yield Happening(identity.created_at, Kind.LINKED, detail=identity.get_linked_via_display())
    if identity.revoked_at is not None:
        yield Happening(identity.revoked_at, Kind.CONSENT_REVOKED)
    by_code_at = identity.connect_issued_at
    # A code that made the link was issued before it and gets no entry of its own.
    if by_code_at is not None and by_code_at > identity.created_at:
        yield Happening(by_code_at, Kind.CODE_REDEEMED)
    if identity.signed_in_at > identity.created_at:
        yield Happening(identity.signed_in_at, Kind.SIGNED_IN)
    if identity.credential_issued_at is not None:
        yield Happening(identity.credential_issued_at, Kind.REFETCHED)
    if identity.refetch_failed_at is not None:
        count = identity.refetch_failures
        often = ""
        if count:
            often = ngettext("%d time in a row", "%d times in a row", count) % count
        yield Happening(
            identity.refetch_failed_at,
            Kind.REFETCH_FAILED,
            detail=identity.last_error,
            outcome=often,
        )


def _events(identity: LinkedIdentity, longest: int) -> Iterator[Happening]:
    # An emptied event is of an earlier link of the subject, which may be another account's.
    events = WebhookEvent.objects.filter(subject_digest=identity.subject_digest).exclude(subject="")
    for event in events.defer("payload").order_by("-occurred_at")[:longest]:
        yield Happening(
            event.occurred_at,
            Kind.EVENT,
            detail=event.event_type,
            outcome=event.outcome_in_words,
            event_id=event.pk,
        )
