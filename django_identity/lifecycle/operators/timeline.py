"""The history of one identity: its row, its claims and its events, the newest first."""

from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

from django.db.models import TextChoices
from django.utils.translation import gettext_lazy as _

from django_identity.models import LinkedIdentity, StoredClaim, WebhookEvent

#: Of claims, and of events.
MOST = 100
MOST_FOR_PERSON = 20


class HappeningKind(TextChoices):
    """With the words for operators. ``texts.labels`` has those for the person."""

    LINKED = "linked", _("Linked")
    SIGNED_IN = "signed_in", _("Signed in (the latest)")
    REFETCHED = "refetched", _("Credential issued (the latest)")
    REFETCH_FAILED = "refetch_failed", _("Re-fetch failed (the latest)")
    CODE_REDEEMED = "code_redeemed", _("Connect code redeemed (the latest)")
    CONSENT_REVOKED = "consent_revoked", _("Consent revoked")
    CLAIM = "claim", _("Claim")
    EVENT = "event", _("Event")


#: The column of the identity that has the time of the latest of each kind.
COLUMNS = {
    HappeningKind.SIGNED_IN: "signed_in_at",
    HappeningKind.REFETCHED: "credential_issued_at",
    HappeningKind.REFETCH_FAILED: "refetch_failed_at",
    HappeningKind.CODE_REDEEMED: "connect_issued_at",
    HappeningKind.CONSENT_REVOKED: "revoked_at",
}


class Happening(NamedTuple):
    """One entry. An event and a claim stand with their row."""

    at: datetime
    kind: HappeningKind
    event: WebhookEvent | None = None
    claim: StoredClaim | None = None


def timeline_of(identity: LinkedIdentity) -> list[Happening]:
    """All that is stored, and the newest events, in two queries.

    Only the latest sign-in, code and re-fetch are stored.
    """
    happened = (*_own(identity), *_claims(identity), *_events(identity))
    return sorted(happened, key=lambda entry: entry.at, reverse=True)


def activity_of(identity: LinkedIdentity) -> list[tuple[datetime, str]]:
    """For the person: when something happened, and its code, newest first."""
    activity: list[tuple[datetime, str]] = []
    for entry in (*_own(identity), *_events(identity)):
        # A failed re-fetch is the operators' to mend.
        if entry.kind is HappeningKind.REFETCH_FAILED:
            continue
        what: str = entry.kind
        if entry.event:
            what = entry.event.event_type
        activity.append((entry.at, what))
    return sorted(activity, reverse=True)[:MOST_FOR_PERSON]


def _own(identity: LinkedIdentity) -> Iterator[Happening]:
    yield Happening(identity.created_at, HappeningKind.LINKED)
    for kind, column in COLUMNS.items():
        at = getattr(identity, column)
        # An earlier time is part of the link itself.
        if at is not None and at > identity.created_at:
            yield Happening(at, kind)


def _claims(identity: LinkedIdentity) -> Iterator[Happening]:
    for claim in identity.claims.order_by("claim_type", "provider")[:MOST]:
        at = claim.revoked_at or claim.issued_at or claim.created_at
        yield Happening(at, HappeningKind.CLAIM, claim=claim)


def _events(identity: LinkedIdentity) -> Iterator[Happening]:
    # An emptied event is of an earlier link of the subject, which may be another account's.
    events = WebhookEvent.objects.filter(
        subject_digest=identity.subject_digest,
    ).exclude(subject="")
    for event in events.defer("payload").order_by("-occurred_at")[:MOST]:
        yield Happening(event.occurred_at, HappeningKind.EVENT, event=event)
