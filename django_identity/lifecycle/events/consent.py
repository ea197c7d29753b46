"""Consent: granted and revoked, at once and in whatever order the news of it comes.

Two clocks keep the outcome free of that order. ``consent_changed_at`` is the newest change that was
heard of, and decides whether consent stands; ``signed_in_at`` is when the flow began that brought
tokens, claims and credential, and decides whether a revocation ends them.

The statements have the slots ``subject_digest``, ``digest`` (of the event), ``at`` (its moment),
``now`` and ``horizon``.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Case, Exists, F, OuterRef, Q, QuerySet, Value, When
from django.db.models.lookups import GreaterThanOrEqual

from django_identity.lifecycle.events.statements import (
    Octets,
    Statement,
    deleting,
    moment,
    text,
    updating,
)
from django_identity.models import (
    Consent,
    ErasureReceipt,
    LinkedIdentity,
    StoredClaim,
    TokenGrant,
)

#: What an identity holds has not been revoked since it came.
HOLDS = Q(revoked_at=None) | Q(revoked_at__lt=F("signed_in_at"))
#: What every change by an event leaves on the identity.
TOUCHED: dict[str, Any] = {"last_event_digest": text("digest"), "updated_at": moment("now")}


def of_subject() -> QuerySet[LinkedIdentity]:
    """The identity of the statement's subject."""
    return LinkedIdentity.objects.filter(subject_digest=text("subject_digest"))


def changed() -> QuerySet[LinkedIdentity, Any]:
    """The identity's key, if it was this event that last changed something there."""
    return of_subject().filter(last_event_digest=text("digest")).values("pk")


def _being_erased() -> Exists:
    """Whether somebody's erasure was asked for and is not done."""
    return Exists(
        ErasureReceipt.objects.annotate(exactly=Octets("subject")).filter(
            next_attempt_at__isnull=False,
            application=OuterRef("application"),
            environment=OuterRef("environment"),
            exactly=Octets(OuterRef("subject")),
        )
    )


# Not from before the horizon of the purge: a captured grant could come back for ever.
GRANT = updating(
    lambda: of_subject().filter(
        ~_being_erased(),
        GreaterThanOrEqual(moment("at"), moment("horizon")),
        consent_changed_at__lt=moment("at"),
    ),
    consent=Consent.GRANTED,
    consent_changed_at=moment("at"),
    **TOUCHED,
)


def _revoking(consent: Case | Value, whoever: Callable[[], QuerySet[LinkedIdentity]]) -> Statement:
    """What was held from before the moment goes, whether or not ``consent`` stands."""
    return updating(
        whoever,
        consent=consent,
        consent_changed_at=Case(
            When(consent_changed_at__lt=moment("at"), then=moment("at")),
            default=F("consent_changed_at"),
        ),
        revoked_at=Case(
            When(Q(revoked_at=None) | Q(revoked_at__lt=moment("at")), then=moment("at")),
            default=F("revoked_at"),
        ),
        credential="",
        credential_kid="",
        credential_issued_at=None,
        credential_expires_at=None,
        connect_person="",
        refetch_due_at=None,
        **TOUCHED,
    )


# At equal times the revocation wins. A consent that was granted anew since stands.
REVOKE = _revoking(
    Case(
        When(consent_changed_at__lte=moment("at"), then=Value(Consent.REVOKED)),
        default=F("consent"),
    ),
    lambda: of_subject().filter(signed_in_at__lte=moment("at")),
)
#: Of this moment, by our own clock: a consent or a sign-in that says it is newer is of a clock that
#: is ahead, the service's or another machine's.
REVOKE_NOW = _revoking(Value(Consent.REVOKED), of_subject)
DELETE_GRANT = deleting(lambda: TokenGrant.objects.filter(identity__in=changed()))
REVOKE_CLAIMS = updating(
    lambda: StoredClaim.objects.filter(identity__in=changed(), revoked=False),
    revoked=True,
    updated_at=moment("now"),
)


def revoke(subject_digest: str, *, at: datetime, now: datetime) -> bool:
    """End what consent covered: tokens and credential go, claims count no more, sessions end.

    Without an event, and whatever the service granted. False if there is no such identity.
    """
    values = {"subject_digest": subject_digest, "digest": "", "at": at, "now": now}
    with transaction.atomic():
        if not REVOKE_NOW.run(values):
            return False
        DELETE_GRANT.run(values)
        REVOKE_CLAIMS.run(values)
    return True
