"""Effects: what each type of event does to the identity it is about. One table.

Each effect is a conditional UPDATE that compares the event's moment with what is stored, so that
the end is the same in whatever order events come, and however often.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Case, F, Q, Value, When
from django.db.models.lookups import Exact
from django.dispatch import Signal

from django_identity import signals
from django_identity.conf import Application
from django_identity.handlers import EventType
from django_identity.lifecycle.events.consent import (
    DELETE_GRANT,
    GRANT,
    HOLDS,
    REVOKE,
    REVOKE_CLAIMS,
    REVOKE_NOW,
    TOUCHED,
    changed,
    of_subject,
)
from django_identity.lifecycle.events.statements import Statement, moment, text, updating
from django_identity.models import StoredClaim, WebhookEvent, digest
from django_identity.service.webhooks import Event, KycChange, NamedClaim

CLOCK_SKEW = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Happening:
    """An event under its application. ``at``: its moment, as far as we believe it."""

    application: Application
    event: Event
    digest: str
    subject_digest: str
    at: datetime
    now: datetime

    @classmethod
    def of(cls, application: Application, event: Event, *, now: datetime) -> Happening:
        """From the future it counts as 5 minutes from now: else it would outrank every later one.

        An event of nobody has an empty ``subject_digest``.
        """
        return cls(
            application=application,
            event=event,
            digest=digest(application.alias, event.event_id),
            subject_digest=subject_digest(application, event.subject) if event.subject else "",
            at=min(event.occurred_at, now + CLOCK_SKEW),
            now=now,
        )

    @classmethod
    def of_stored(cls, application: Application, row: WebhookEvent) -> Happening:
        """One that was stored before; an emptied one says nothing."""
        event = Event.of(
            event_id=row.event_id,
            event_type=row.event_type,
            occurred_at=row.occurred_at,
            subject=row.subject,
            content=row.payload or {},
        )
        return cls(
            application,
            event,
            row.event_digest,
            row.subject_digest,
            row.occurred_at,
            row.received_at,
        )

    def values(self) -> dict[str, object]:
        """What the statements of the table have slots for."""
        kyc = self.event.kyc or KycChange(status="", level="", provider="")
        claim = self.event.claim or NamedClaim()
        is_rejection = self.event.event_type == EventType.KYC_REJECTED
        return {
            "subject_digest": self.subject_digest,
            "digest": self.digest,
            "at": self.at,
            "now": self.now,
            "horizon": self.now - timedelta(days=self.application.event_days),
            "level": kyc.level,
            "status": kyc.status,
            "provider": kyc.provider,
            "verified_at": None if is_rejection else self.at,
            "rank": ("1" if is_rejection else "0") + self.digest,
            "claim_type": claim.claim_type,
            "claim_provider": claim.provider,
        }


@dataclass(frozen=True, slots=True)
class Effect:
    """``change`` decides, ``after`` follows if it changed something, and then ``signal``.

    ``at``: the moment that the change counts from. ``refetch``: claims are to be read anew.
    """

    change: Statement
    after: tuple[Statement, ...] = ()
    signal: Signal | None = None
    refetch: bool = False
    at: Callable[[Happening], datetime] = lambda happening: happening.at


def subject_digest(application: Application, subject: str) -> str:
    """What the subject is known by under this application, exactly, in every table of ours."""
    return digest(application.alias, application.environment, subject)


# A re-fetch is due now, if there is still something to fetch with.
_DUE = {
    "refetch_due_at": Case(When(HOLDS, then=moment("now")), default=F("refetch_due_at")),
    **TOUCHED,
}
# Status, level and provider are replaced as a whole: one that the event leaves out is emptied. Of
# two events of one moment the rejection wins, and of two alike the greater digest: any rule would
# do that does not depend on which came first.
_CHANGE_KYC = updating(
    lambda: of_subject().filter(
        Q(kyc_changed_at__lt=moment("at"))
        | Q(kyc_changed_at=moment("at"), kyc_rank__lt=text("rank"))
    ),
    kyc_level=text("level"),
    kyc_status=text("status"),
    kyc_provider=text("provider"),
    kyc_verified_at=moment("verified_at"),
    kyc_changed_at=moment("at"),
    kyc_rank=text("rank"),
    **_DUE,
)
# What a sign-in brought is as new as the moment it began.
_MAKE_DUE = updating(lambda: of_subject().filter(signed_in_at__lte=moment("at")), **_DUE)
# The named claim, or all of them; one that a younger credential has proven anew stands.
_REVOKE_NAMED = updating(
    lambda: StoredClaim.objects.filter(
        Q(claim_type=text("claim_type")) | Q(Exact(text("claim_type"), Value(""))),
        Q(provider=text("claim_provider")) | Q(Exact(text("claim_provider"), Value(""))),
        identity__in=changed().filter(
            Q(credential_issued_at=None) | Q(credential_issued_at__lte=moment("at"))
        ),
        revoked=False,
    ),
    revoked=True,
    updated_at=moment("now"),
)
_KYC = Effect(_CHANGE_KYC, signal=signals.kyc_changed, refetch=True)

EFFECTS: Mapping[str, Effect] = {
    EventType.KYC_VERIFIED: _KYC,
    EventType.KYC_REJECTED: _KYC,
    EventType.CLAIM_ISSUED: Effect(_MAKE_DUE, refetch=True),
    EventType.CLAIM_REVOKED: Effect(
        _MAKE_DUE, after=(_REVOKE_NAMED,), signal=signals.claims_changed, refetch=True
    ),
    EventType.CONSENT_GRANTED: Effect(GRANT, signal=signals.consent_granted),
    EventType.CONSENT_REVOKED: Effect(
        REVOKE, after=(DELETE_GRANT, REVOKE_CLAIMS), signal=signals.consent_revoked
    ),
    # A request to be forgotten is obeyed whatever came since. The claims go with the erasure; since
    # this moment they count for nothing, because the identity was revoked since they came.
    EventType.DATA_DELETION_REQUESTED: Effect(
        REVOKE_NOW,
        after=(DELETE_GRANT,),
        signal=signals.consent_revoked,
        at=lambda happening: max(happening.at, happening.now),
    ),
}


def reapply(happening: Happening) -> bool:
    """Apply an event that was stored before, in the transaction that is under way."""
    effect = EFFECTS.get(happening.event.event_type)
    if effect is None:
        return False
    values = {**happening.values(), "at": effect.at(happening)}
    has_changed = bool(effect.change.run(values))
    for statement in effect.after if has_changed else ():
        statement.run(values)
    return has_changed
