"""What an event does to the identity of its subject, and what it does if it is late.

``EFFECTS`` has one function for each ``Effect``; it is the table of ``docs/webhooks.md``. Every
function works on rows that the caller has locked, and saves the identity; the caller saves the
event, and tells the site of a changed level.

An event that takes something away acts at once. Any other one at most makes the re-fetch due: the
service's answer decides. A late event takes nothing. It is late if it is certainly older than what
it would take away. Between two clocks a difference of up to five minutes is not certain
(``clocks``).

- The end of a consent is late if the person has consented anew since. A sign-in counts from its
  begin, and a code from its answer (``LinkedIdentity.arrived_at``).
- A rejection is late if the service has stated the level since (``kyc_said_at``).
- A revocation of claims is late if the stored credential is younger.
- A request for deletion is late if it is older than the link, and was older than ``EVENT_DAYS``
  when it came.

A sign-in or a code that an event overtakes: ``events.heard_since``.
"""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

from django.db.models import Q
from django.utils import timezone

from django_identity import conf, signals
from django_identity.event_types import KINDS, Effect, kind_of
from django_identity.lifecycle.ground import clocks, kyc, retention, withdrawal
from django_identity.lifecycle.leaving import erasure
from django_identity.lifecycle.said import due
from django_identity.models import (
    Consent,
    EventOutcome,
    LinkedIdentity,
    RevokedBy,
    WebhookEvent,
)
from django_identity.service.webhooks import REJECTED, NamedClaim

KYC_CLAIM = "kyc_verified"
#: What takes the level away, and the KYC status then.
STATUS_THEN: Mapping[Effect, str] = {Effect.REJECT: REJECTED, Effect.REVOKE_CLAIM: ""}


def outcome_of(identity: LinkedIdentity, row: WebhookEvent) -> EventOutcome:
    """Apply the event to the identity, and save the identity.

    What takes away acts at once, unless it is certainly older than the sign-in or the answer that
    brought it. No event brings anything: the re-fetch is due then, and the service's answer
    decides. So every event is compared with one fixed time, and the end is the same in every order.
    """
    if row.event_type not in KINDS:
        return EventOutcome.IGNORED
    kind = kind_of(row.event_type)
    if kind.about_kyc and not identity.allows(*kyc.SCOPES):
        row.payload = None
        return EventOutcome.IGNORED
    return EFFECTS[kind.effect](identity, row)


def outcome_for_nobody(row: WebhookEvent) -> EventOutcome:
    """The outcome of an event about a subject who is not linked.

    A deletion empties the subject's other events.
    """
    is_erasure = kind_of(row.event_type).effect is Effect.ERASE
    if not (is_erasure and row.others_have_content):
        return EventOutcome.IGNORED
    receipt = withdrawal.erase_unlinked(
        row.subject_digest,
        requested_at=row.counts_from,
    )
    receipt.store()
    withdrawal.announce_erased(receipt)
    return EventOutcome.APPLIED


# The effects


def reread(identity: LinkedIdentity, event: WebhookEvent) -> EventOutcome:
    """The re-fetch is due now, unless the link is by code."""
    due.make_due(identity)
    identity.save(update_fields=[*kyc.NO_LEVEL, "refetch_due_at"])
    return EventOutcome.APPLIED


def kyc_rejected(identity: LinkedIdentity, event: WebhookEvent) -> EventOutcome:
    """Reject the level at once, whatever else the event says."""
    if not take_level_away(identity, event):
        return EventOutcome.SUPERSEDED
    return reread(identity, event)


def claim_revoked(identity: LinkedIdentity, event: WebhookEvent) -> EventOutcome:
    """Revoke the named claim, or all, unless a younger credential has proven it again.

    The KYC claim may be revoked because the verification is invalid, so its level no longer counts.
    """
    named = NamedClaim.parse(event.payload)
    since = _revoked_since(event, identity)
    if since is not None:
        rows = identity.claims.all()
        if named.claim_type:
            rows = rows.filter(claim_type=named.claim_type)
        of_provider = rows.filter(provider=named.provider)
        # A provider that is not stored may be another name of one that is: then all are revoked.
        if named.provider and of_provider.exists():
            rows = of_provider
        older = Q(revoked_at=None) | Q(revoked_at__lt=since)
        rows.filter(older).update(revoked_at=since)
    take_level_away(identity, event)
    signals.announce(signals.claims_changed, LinkedIdentity, identity=identity)
    return reread(identity, event)


def recorded(identity: LinkedIdentity, event: WebhookEvent) -> EventOutcome:
    """Change nothing. A sign-in or a code grants the consent."""
    return EventOutcome.APPLIED


def consent_revoked(identity: LinkedIdentity, event: WebhookEvent) -> EventOutcome:
    """End the consent at once: tokens, claims and sessions go (spec, "Receiver obligations")."""
    at = event.counts_from
    if not clocks.may_be_newer(at, than=identity.arrived_at):
        return EventOutcome.SUPERSEDED
    if identity.connect_only or identity.consent == Consent.GRANTED:
        is_deleted = withdrawal.revoke(identity, at=at, by=RevokedBy.PERSON)
        if is_deleted:
            # The event is about nobody who is linked.
            event.set_columns(retention.EMPTIED)
    elif identity.revoked_at is not None and identity.revoked_at < at:
        identity.change(revoked_at=at)
    return EventOutcome.APPLIED


def data_deletion_requested(
    identity: LinkedIdentity,
    event: WebhookEvent,
) -> EventOutcome:
    """Erase the subject at once, whatever happened since (GDPR art. 17).

    A request that is older than ``EVENT_DAYS`` and than the link may be a replay: the row that
    shows a repeat may have been purged.
    """
    kept_for = timedelta(days=conf.application().event_days)
    is_too_old = event.counts_from < event.received_at - kept_for
    if is_too_old and event.counts_from < identity.created_at:
        return EventOutcome.SUPERSEDED
    was_granted = identity.consent == Consent.GRANTED
    at = event.counts_from
    erasure.erase(identity, user_id=identity.user_id, at=at, by=RevokedBy.PERSON)
    # The row in memory, too: the caller saves its content.
    event.set_columns(retention.EMPTIED)
    identity.refetch_due_at = None
    if was_granted:
        signals.announce(signals.consent_revoked, LinkedIdentity, identity=identity)
    return EventOutcome.APPLIED


EFFECTS: Mapping[Effect, Callable[[LinkedIdentity, WebhookEvent], EventOutcome]] = {
    Effect.REFETCH: reread,
    Effect.REJECT: kyc_rejected,
    Effect.REVOKE_CLAIM: claim_revoked,
    Effect.RECORD: recorded,
    Effect.REVOKE_CONSENT: consent_revoked,
    Effect.ERASE: data_deletion_requested,
}


# What is certainly older than the service's own answer


def take_level_away(identity: LinkedIdentity, event: WebhookEvent) -> bool:
    """Empty the level, unless the service was certainly asked since. Rejected stays rejected.

    The caller saves the identity. The time of the answer stays: every event is compared with it,
    and with no other event. Returns False if the event takes nothing.
    """
    status = STATUS_THEN.get(kind_of(event.event_type).effect)
    if status is None or not identity.allows(*kyc.SCOPES):
        return False
    named = NamedClaim.parse(event.payload)
    if status != REJECTED and named.claim_type not in ("", KYC_CLAIM):
        return False
    said_at = identity.kyc_said_at
    at = event.counts_from
    if said_at is not None and not clocks.may_be_newer(at, than=said_at):
        return False
    if identity.kyc_status != REJECTED:
        level = {**kyc.NO_LEVEL, "kyc_status": status, "kyc_said_at": said_at}
        identity.set_columns(level)
    return True


def _revoked_since(event: WebhookEvent, identity: LinkedIdentity) -> datetime | None:
    """From when a revocation counts. None if the stored credential is younger."""
    told_at = event.occurred_at
    issued_at = identity.credential_issued_at
    if issued_at is not None and issued_at > timezone.now():
        # A clock was ahead, so the credential seems younger than it is.
        return clocks.after_credential(told_at, issued_at)
    return clocks.revoked_from(told_at, issued_at=issued_at)
