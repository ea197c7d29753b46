"""What an event does to the identity of its subject: one function for each ``Effect``.

``EFFECTS`` is the table of ``docs/webhooks.md``. Every function works on rows that the caller has
locked, and saves the identity; the caller saves the event.
"""

from collections.abc import Callable, Mapping
from datetime import timedelta

from django.db.models import Q
from django.utils import timezone

from django_identity import signals
from django_identity.event_types import ERASING, KINDS, Effect, kind_of
from django_identity.lifecycle import clocks, kyc, withdrawal
from django_identity.models import (
    Consent,
    ErasureReceipt,
    EventOutcome,
    LinkedIdentity,
    RevokedBy,
    StoredClaim,
    WebhookEvent,
)
from django_identity.service.webhooks import NamedClaim, kyc_in


def outcome_of(identity: LinkedIdentity, row: WebhookEvent) -> EventOutcome:
    """Apply the event to the identity, and save the identity.

    A late event, from before the newest sign-in or code, is superseded, in this order:

    - a deletion always counts, unless ``data_deletion_requested`` takes it for a replay;
    - a withdrawal counts if it seems late by the skew of two clocks at most (``clocks.counts``);
    - what may bring something, and seems late by no more than that, makes the re-fetch due;
    - of two statements about the level ``kyc.state`` takes the newer one.

    What was late for a sign-in that was still running comes here by ``events.apply_since``. Without
    its payload a withdrawal acts as usual; any other event only makes the re-fetch due.
    """
    if row.event_type not in KINDS:
        return EventOutcome.IGNORED
    kind = kind_of(row.event_type)
    effect = EFFECTS[kind.effect]
    if kind.always:
        return effect(identity, row)
    if kind.effect is Effect.STATE_LEVEL and not identity.allows(*kyc.SCOPES):
        row.payload = None
        return EventOutcome.IGNORED

    if not clocks.counts(row, identity):
        if clocks.may_bring_something(row, identity):
            return make_due(identity, row)
        return EventOutcome.SUPERSEDED
    if row.payload is None and not kind.takes_away:
        return make_due(identity, row)
    return effect(identity, row)


def outcome_for_nobody(row: WebhookEvent) -> EventOutcome:
    """The outcome of an event about a subject who is not linked.

    A deletion empties the subject's other events.
    """
    if row.event_type not in ERASING:
        return EventOutcome.IGNORED
    receipt = withdrawal.erase_unlinked(
        row.application, row.subject_digest, requested_at=row.occurred_at
    )
    if not any(receipt.counts.values()):
        return EventOutcome.IGNORED
    receipt.save()
    signals.announce(
        signals.data_erased,
        ErasureReceipt,
        application=row.application,
        receipt=receipt,
    )
    return EventOutcome.APPLIED


# The effects


def kyc_stated(identity: LinkedIdentity, event: WebhookEvent) -> EventOutcome:
    """The newest statement counts, and a rejection wins at equal times.

    Status, level and provider are replaced as a whole: a member that the event lacks is emptied.
    """
    stated = kyc_in(event.payload or {}, event.event_type)
    counts = kyc.state(identity, stated, event)
    if counts or kyc.may_be_newer(identity, event):
        return make_due(identity, event)
    return EventOutcome.SUPERSEDED


def make_due(identity: LinkedIdentity, event: WebhookEvent) -> EventOutcome:
    """Save the level. If there is a grant, the re-fetch is due now."""
    if identity.consent == Consent.GRANTED and not identity.connect_only:
        now = timezone.now()
        identity.refetch_due_at = min(identity.refetch_due_at or now, now)
    identity.save(update_fields=[*withdrawal.NO_LEVEL, "refetch_due_at"])
    return EventOutcome.APPLIED


def claim_revoked(identity: LinkedIdentity, event: WebhookEvent) -> EventOutcome:
    """Revoke the named claim, or all, unless a younger credential has proven it again.

    The KYC claim may be revoked because the verification is invalid, so its level no longer counts.
    """
    named = NamedClaim.parse(event.payload or {})
    since = clocks.revokes_since(event, identity)
    if since is not None:
        claims = StoredClaim.objects.filter(identity_id=identity.pk)
        if named.claim_type:
            claims = claims.filter(claim_type=named.claim_type)
        of_provider = claims.filter(provider=named.provider)
        # A provider that is not stored may be another name of one that is: then all are revoked.
        if named.provider and of_provider.exists():
            claims = of_provider
        older = Q(revoked_at=None) | Q(revoked_at__lt=since)
        claims.filter(older).update(revoked_at=since)
    if kyc.is_about_level(event) and identity.allows(*kyc.SCOPES):
        kyc.state(identity, kyc.NOTHING_STATED, event)
    signals.announce(signals.claims_changed, LinkedIdentity, identity=identity)
    return make_due(identity, event)


def recorded(identity: LinkedIdentity, event: WebhookEvent) -> EventOutcome:
    """Recorded. Consent becomes granted by the sign-in or the code that brings something."""
    return EventOutcome.APPLIED


def consent_revoked(identity: LinkedIdentity, event: WebhookEvent) -> EventOutcome:
    """End the consent at once: tokens, claims and sessions go (spec, "Receiver obligations")."""
    if identity.connect_only or identity.consent == Consent.GRANTED:
        is_deleted = withdrawal.revoke(
            identity, at=event.occurred_at, by=RevokedBy.PERSON
        )
        if is_deleted:
            # The event is about nobody who is linked.
            event.set_columns(withdrawal.EMPTIED)
    elif identity.revoked_at is not None and identity.revoked_at < event.occurred_at:
        identity.revoked_at = event.occurred_at
        identity.save()
    return EventOutcome.APPLIED


def data_deletion_requested(
    identity: LinkedIdentity, event: WebhookEvent
) -> EventOutcome:
    """End the consent at once, and request the erasure, whatever happened since (GDPR art. 17).

    Only a request that is older than ``EVENT_DAYS`` and than the link may be a replay: its row,
    which would show it as a repeat, may have been purged.
    """
    # An alias may be gone from the settings meanwhile.
    application = withdrawal.application_of(event.application)
    kept_for = timedelta(days=application.event_days)
    is_too_old = event.occurred_at < event.received_at - kept_for
    if is_too_old and event.occurred_at < identity.created_at:
        return EventOutcome.SUPERSEDED
    withdrawal.request_erasure(identity, at=event.occurred_at, by=RevokedBy.PERSON)
    signals.announce(signals.consent_revoked, LinkedIdentity, identity=identity)
    return EventOutcome.APPLIED


EFFECTS: Mapping[Effect, Callable[[LinkedIdentity, WebhookEvent], EventOutcome]] = {
    Effect.STATE_LEVEL: kyc_stated,
    Effect.REFETCH: make_due,
    Effect.REVOKE_CLAIM: claim_revoked,
    Effect.RECORD: recorded,
    Effect.END_CONSENT: consent_revoked,
    Effect.ERASE: data_deletion_requested,
}
