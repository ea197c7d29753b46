"""The effect of each type of event on the identity: the table in ``docs/webhooks.md``.

Each effect compares the event's time with the stored times, so the result does not depend on the
order and number of deliveries. It returns False if something newer is known. The caller has locked
the identity's row; ``apply`` changes the instance, and the caller saves it.
"""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

from django.dispatch import Signal

from django_identity import conf, signals
from django_identity.handlers import KYC_TYPES, EventType
from django_identity.lifecycle.events import receipts
from django_identity.lifecycle.events.consent import stop_processing
from django_identity.models import Consent, EventOutcome, LinkedIdentity, StoredClaim, WebhookEvent
from django_identity.models.compiled import CompiledQuery
from django_identity.service.webhooks import KycChange, NamedClaim

#: Time-stamps with a smaller difference do not tell which came first.
CLOCK_SKEW = timedelta(minutes=5)
KYC_CLAIM = "kyc_verified"
#: What a sign-in and what a Connect code call the scope that covers KYC.
KYC_SCOPES = frozenset({"kyc:read", "kyc:status"})

_locked = CompiledQuery(
    lambda subject: LinkedIdentity.objects.select_for_update().filter(subject_digest=subject),
    LinkedIdentity._meta.get_field("subject_digest"),
)


def kyc_verified(identity: LinkedIdentity, event: WebhookEvent) -> bool:
    """The newest KYC event wins. An event without its payload has no level and does nothing."""
    if event.payload is None:
        return False
    # An event from the future does not outrank the rejections to come.
    at = min(event.occurred_at, event.received_at)
    return _replace_kyc(identity, event, at=at, rank="0", verified_at=at)


def kyc_rejected(identity: LinkedIdentity, event: WebhookEvent) -> bool:
    """At equal times the rejection wins, and against an answer that is hardly newer."""
    at = _withdrawn_at(identity, event)
    # A code's answer has the service's own time, which is compared exactly.
    was_answered = not identity.kyc_rank and not identity.connect_only
    if was_answered and identity.kyc_changed_at - CLOCK_SKEW <= at < identity.kyc_changed_at:
        at = identity.kyc_changed_at
    return _replace_kyc(identity, event, at=at, rank="1")


def claim_issued(identity: LinkedIdentity, event: WebhookEvent) -> bool:
    """Re-fetch the claims, unless a sign-in that began later has brought them."""
    if event.occurred_at < identity.signed_in_at:
        return False
    _make_refetch_due(identity, event)
    return True


def claim_revoked(identity: LinkedIdentity, event: WebhookEvent) -> bool:
    """Revoke the named claim, or all claims, unless a younger credential has proven it again.

    If the verification may have been invalidated, the KYC level no longer counts.
    """
    if _withdrawn_at(identity, event) < identity.signed_in_at:
        return False
    _make_refetch_due(identity, event)
    revoked_at = min(event.occurred_at, event.received_at)
    identity.claims_revoked_at = max(identity.claims_revoked_at or revoked_at, revoked_at)
    named = NamedClaim.parse(event.payload or {})
    if named.claim_type in ("", KYC_CLAIM):
        identity.kyc_checked_at = None
    issued_at = identity.credential_issued_at
    if issued_at is None or issued_at - CLOCK_SKEW <= event.occurred_at:
        claims = StoredClaim.objects.filter(identity=identity)
        if named.claim_type:
            claims = claims.filter(claim_type=named.claim_type)
        of_provider = claims.filter(provider=named.provider)
        # A provider that is not stored may be another name of one that is: then all are revoked.
        if named.provider and of_provider.exists():
            claims = of_provider
        claims.filter(revoked=False).update(revoked=True, updated_at=event.received_at)
    return True


def consent_granted(identity: LinkedIdentity, event: WebhookEvent) -> bool:
    """Restore the consent, if this is the newest change and no erasure is pending.

    A grant that is older than ``EVENT_DAYS`` is refused: the purge no longer recognises repeats, so
    a captured delivery could be replayed for ever.
    """
    kept_for = timedelta(days=conf.application(event.application).event_days)
    is_newest = event.occurred_at > identity.consent_changed_at
    is_too_old = event.occurred_at < event.received_at - kept_for
    if is_too_old or not is_newest:
        return False
    # An erasure begins with a revocation.
    stands = identity.consent == Consent.GRANTED
    if not stands and receipts.is_being_erased(identity.subject_digest):
        return False
    identity.consent = Consent.GRANTED
    if event.occurred_at <= event.received_at:
        # A grant from the future must not outrank later revocations.
        identity.consent_changed_at = event.occurred_at
    return True


def consent_revoked(identity: LinkedIdentity, event: WebhookEvent) -> bool:
    """Delete the data from before the revocation, even if a newer grant restored the consent.

    At equal times the revocation wins.
    """
    at = _withdrawn_at(identity, event)
    if at < identity.signed_in_at:
        return False
    if at >= identity.consent_changed_at:
        identity.consent = Consent.REVOKED
    stop_processing(identity, at=at, received_at=event.received_at)
    return True


def data_deletion_requested(identity: LinkedIdentity, event: WebhookEvent) -> bool:
    """A deletion request always counts, whatever happened since."""
    identity.consent = Consent.REVOKED
    at = max(event.occurred_at, event.received_at)
    stop_processing(identity, at=at, received_at=event.received_at)
    return True


#: The change, and the signal that follows if it changed something.
Effect = tuple[Callable[[LinkedIdentity, WebhookEvent], bool], Signal | None]

EFFECTS: Mapping[str, Effect] = {
    EventType.KYC_VERIFIED: (kyc_verified, signals.kyc_changed),
    EventType.KYC_REJECTED: (kyc_rejected, signals.kyc_changed),
    EventType.CLAIM_ISSUED: (claim_issued, None),
    EventType.CLAIM_REVOKED: (claim_revoked, signals.claims_changed),
    EventType.CONSENT_GRANTED: (consent_granted, signals.consent_granted),
    EventType.CONSENT_REVOKED: (consent_revoked, signals.consent_revoked),
    EventType.DATA_DELETION_REQUESTED: (data_deletion_requested, signals.consent_revoked),
}


def apply_to_subject(event: WebhookEvent) -> LinkedIdentity | None:
    """Apply the event to the identity of its subject, and set the event's outcome.

    Returns the locked identity. A sign-in that links the subject has ended before.
    """
    identity: LinkedIdentity | None = next(_locked.instances(event.subject_digest), None)
    if identity is None:
        event.outcome = EventOutcome.IGNORED
        return None
    before = dict(vars(identity))
    apply(identity, event)
    identity.save_changes(before)
    _change, signal = EFFECTS.get(event.event_type, (None, None))
    if signal is not None and event.outcome == EventOutcome.APPLIED:
        signals.announce(signal, LinkedIdentity, identity=identity)
    return identity


def apply(identity: LinkedIdentity, event: WebhookEvent) -> None:
    """Apply the event to the locked identity, and set the event's outcome."""
    change, _signal = EFFECTS.get(event.event_type, (None, None))
    if change is None:
        event.outcome = EventOutcome.IGNORED
    elif not _is_covered(identity, event):
        event.outcome, event.payload = EventOutcome.IGNORED, None
    elif change(identity, event):
        event.outcome, identity.last_event_digest = EventOutcome.APPLIED, event.event_digest
    else:
        event.outcome = EventOutcome.SUPERSEDED


def _is_covered(identity: LinkedIdentity, event: WebhookEvent) -> bool:
    """Whether the person's consent covers what the event says: KYC data needs a scope.

    Consent that was revoked covers nothing until the person arrives again.
    """
    if event.event_type not in KYC_TYPES:
        return True
    stands = identity.consent == Consent.GRANTED and not identity.is_withdrawn
    return stands and not KYC_SCOPES.isdisjoint(identity.scopes)


def _withdrawn_at(identity: LinkedIdentity, event: WebhookEvent) -> datetime:
    """The time from which a revocation counts. It wins over a sign-in that is hardly newer."""
    signed_in_at = identity.signed_in_at
    is_close = signed_in_at - CLOCK_SKEW <= event.occurred_at < signed_in_at
    return signed_in_at if is_close else event.occurred_at


def _replace_kyc(
    identity: LinkedIdentity,
    event: WebhookEvent,
    *,
    at: datetime,
    rank: str,
    verified_at: datetime | None = None,
) -> bool:
    """Replace status, level and provider as a whole. A member that the event lacks is emptied.

    Of two events of the same time and type the greater digest wins. Any rule that does not depend
    on the order of arrival would do.
    """
    newest = (at, rank + event.event_digest)
    if newest <= (identity.kyc_changed_at, identity.kyc_rank):
        return False
    kyc = KycChange.parse(event.payload or {}, event.event_type)
    identity.kyc_status = kyc.status
    identity.kyc_level = kyc.level
    identity.kyc_provider = kyc.provider
    identity.kyc_verified_at = verified_at
    # Doubt that a revoked claim left ends by the service's answer alone: else the gate's state
    # would depend on which of two events came first.
    if identity.kyc_checked_at is not None:
        identity.kyc_checked_at = min(event.occurred_at, event.received_at)
    identity.kyc_changed_at, identity.kyc_rank = newest
    _make_refetch_due(identity, event)
    return True


def _make_refetch_due(identity: LinkedIdentity, event: WebhookEvent) -> None:
    """Make the re-fetch due now, if there is still a grant.

    A row that is due already keeps its place, so that its UPDATE changes no indexed column.
    """
    if identity.revoked_at is not None and identity.revoked_at >= identity.signed_in_at:
        return
    if identity.refetch_due_at is None or identity.refetch_due_at > event.received_at:
        identity.refetch_due_at = event.received_at
