"""What each type of event does to the identity that it is about: the table in ``docs/webhooks.md``.

Each effect compares the event's moment with what is stored, so that the end is the same in whatever
order events come, and however often. It returns False if something newer is known. The identity's
row is locked; ``apply`` changes the instance, and the caller saves it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.dispatch import Signal

from django_identity import conf, signals
from django_identity.handlers import EventType
from django_identity.lifecycle.events import receipts
from django_identity.lifecycle.events.consent import stop_processing
from django_identity.models import Consent, LinkedIdentity, StoredClaim, WebhookEvent
from django_identity.service.webhooks import KycChange, NamedClaim

KYC_CLAIM = "kyc_verified"
#: The columns of an identity that events change.
CHANGED = (
    "consent", "consent_changed_at", "revoked_at", "kyc_level", "kyc_status", "kyc_provider",
    "kyc_verified_at", "kyc_checked_at", "kyc_changed_at", "kyc_rank", "credential",
    "credential_kid", "credential_issued_at", "credential_expires_at", "connect_person",
    "refetch_due_at", "last_event_digest", "updated_at",
)  # fmt: skip


def kyc_verified(identity: LinkedIdentity, event: WebhookEvent) -> bool:
    """The newest KYC event wins; one that was emptied does not say which level it is about."""
    if event.payload is None:
        return False
    return _replace_kyc(identity, event, rank="0", verified_at=event.occurred_at)


def kyc_rejected(identity: LinkedIdentity, event: WebhookEvent) -> bool:
    """At equal times the rejection wins."""
    return _replace_kyc(identity, event, rank="1", verified_at=None)


def claim_issued(identity: LinkedIdentity, event: WebhookEvent) -> bool:
    """What a sign-in brought is as new as the moment it began."""
    if event.occurred_at < identity.signed_in_at:
        return False
    _make_refetch_due(identity, event)
    return True


def claim_revoked(identity: LinkedIdentity, event: WebhookEvent) -> bool:
    """The named claim is revoked, or all; one that a younger credential proved anew stands.

    Nobody vouches for the KYC level any more, if it may have lost its ground.
    """
    if event.occurred_at < identity.signed_in_at:
        return False
    _make_refetch_due(identity, event)
    named = NamedClaim.of(event.payload or {})
    if named.claim_type in ("", KYC_CLAIM):
        identity.kyc_checked_at = None
    issued_at = identity.credential_issued_at
    if issued_at is None or issued_at <= event.occurred_at:
        claims = StoredClaim.objects.filter(identity=identity, revoked=False)
        if named.claim_type:
            claims = claims.filter(claim_type=named.claim_type)
        if named.provider:
            claims = claims.filter(provider=named.provider)
        claims.update(revoked=True, updated_at=event.received_at)
    return True


def consent_granted(identity: LinkedIdentity, event: WebhookEvent) -> bool:
    """Consent stands again, if this is the newest change and nobody is to be erased.

    Not from before the horizon of the purge: a captured grant could come back for ever.
    """
    kept_for = timedelta(days=conf.application(event.application).event_days)
    is_newest = event.occurred_at > identity.consent_changed_at
    is_too_old = event.occurred_at < event.received_at - kept_for
    if is_too_old or not is_newest or receipts.is_being_erased(identity.subject_digest):
        return False
    identity.consent = Consent.GRANTED
    identity.consent_changed_at = event.occurred_at
    return True


def consent_revoked(identity: LinkedIdentity, event: WebhookEvent) -> bool:
    """What was held from before goes, even if consent was granted anew since; that stands.

    At equal times the revocation wins.
    """
    if event.occurred_at < identity.signed_in_at:
        return False
    if event.occurred_at >= identity.consent_changed_at:
        identity.consent = Consent.REVOKED
    stop_processing(identity, at=event.occurred_at)
    return True


def data_deletion_requested(identity: LinkedIdentity, event: WebhookEvent) -> bool:
    """A request to be forgotten is obeyed whatever came since."""
    identity.consent = Consent.REVOKED
    stop_processing(identity, at=max(event.occurred_at, event.received_at))
    return True


@dataclass(frozen=True, slots=True)
class Effect:
    """``change``, and what follows if it changed something: ``signal``, claims read anew."""

    change: Callable[[LinkedIdentity, WebhookEvent], bool]
    signal: Signal | None = None
    refetch: bool = False


EFFECTS: Mapping[str, Effect] = {
    EventType.KYC_VERIFIED: Effect(kyc_verified, signals.kyc_changed, refetch=True),
    EventType.KYC_REJECTED: Effect(kyc_rejected, signals.kyc_changed, refetch=True),
    EventType.CLAIM_ISSUED: Effect(claim_issued, refetch=True),
    EventType.CLAIM_REVOKED: Effect(claim_revoked, signals.claims_changed, refetch=True),
    EventType.CONSENT_GRANTED: Effect(consent_granted, signals.consent_granted),
    EventType.CONSENT_REVOKED: Effect(consent_revoked, signals.consent_revoked),
    EventType.DATA_DELETION_REQUESTED: Effect(data_deletion_requested, signals.consent_revoked),
}


def apply(identity: LinkedIdentity, event: WebhookEvent) -> bool:
    """Do to the locked identity what the event says; False if that is nothing."""
    effect = EFFECTS.get(event.event_type)
    if effect is None or not effect.change(identity, event):
        return False
    identity.last_event_digest = event.event_digest
    return True


def _replace_kyc(
    identity: LinkedIdentity, event: WebhookEvent, *, rank: str, verified_at: datetime | None
) -> bool:
    """Status, level and provider as a whole; one that the event leaves out is emptied.

    Of two events of one moment and kind the greater digest wins: any rule would do that does not
    depend on which came first.
    """
    newest = (event.occurred_at, rank + event.event_digest)
    if newest <= (identity.kyc_changed_at, identity.kyc_rank):
        return False
    kyc = KycChange.of(event.payload or {}, event.event_type)
    identity.kyc_status = kyc.status
    identity.kyc_level = kyc.level
    identity.kyc_provider = kyc.provider
    identity.kyc_verified_at = verified_at
    identity.kyc_checked_at = min(event.occurred_at, event.received_at)
    identity.kyc_changed_at, identity.kyc_rank = newest
    _make_refetch_due(identity, event)
    return True


def _make_refetch_due(identity: LinkedIdentity, event: WebhookEvent) -> None:
    """Now, if there is still something to fetch with."""
    if identity.revoked_at is None or identity.revoked_at < identity.signed_in_at:
        identity.refetch_due_at = event.received_at
