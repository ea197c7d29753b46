"""What an event does to the identity of its subject, and what it does if it is late.

``EFFECTS`` has one function for each ``Effect``; it is the table of ``docs/webhooks.md``. Every
function works on rows that the caller has locked, and saves the identity; the caller saves the
event, and tells the site of a level that has changed.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from django.db.models import Q

from django_identity import conf, signals
from django_identity.event_types import (
    ABOUT_LEVEL,
    ERASING,
    KINDS,
    Effect,
    kind_of,
)
from django_identity.lifecycle import clocks, due, kyc, retention, withdrawal
from django_identity.models import (
    Consent,
    EventOutcome,
    LinkedIdentity,
    RevokedBy,
    TokenGrant,
    WebhookEvent,
)
from django_identity.service.answers import KycStatus
from django_identity.service.webhooks import VERIFIED, NamedClaim, kyc_in

KYC_CLAIM = "kyc_verified"


def outcome_of(identity: LinkedIdentity, row: WebhookEvent) -> EventOutcome:
    """Apply the event to the identity, and save the identity.

    A late event is from before the newest sign-in or code. Of late events:

    - a deletion always counts, unless ``data_deletion_requested`` takes it for a replay;
    - a withdrawal counts if it seems late by the skew of two clocks at most;
    - what may bring something, and seems late by no more than that, makes the re-fetch due;
    - any other one is superseded.

    An event that is not late, and says something about the level, may still be older than what is
    known of the level: see ``_state_level``. Without its payload a withdrawal acts as usual; any
    other event only makes the re-fetch due.
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

    if not _counts(row, identity):
        if _may_bring_something(row, identity):
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
        row.subject_digest, requested_at=row.occurred_at
    )
    if not any(receipt.counts.values()):
        return EventOutcome.IGNORED
    receipt.save()
    withdrawal.announce_erased(receipt)
    return EventOutcome.APPLIED


# Late events


def _counts(event: WebhookEvent, identity: LinkedIdentity) -> bool:
    """Whether the newest sign-in or code leaves the event standing.

    One that takes something away counts for the skew longer.
    """
    if kind_of(event.event_type).takes_away:
        return clocks.may_be_newer(event.occurred_at, than=identity.arrived_at)
    return event.occurred_at >= identity.arrived_at


def _may_bring_something(event: WebhookEvent, identity: LinkedIdentity) -> bool:
    """Whether the event seems older than what it would change, but by the skew at most.

    Its own statement does not count then. But the service may know something newer than the site
    does, and is asked: else a verified person would wait for the next day.
    """
    if identity.connect_only or not kind_of(event.event_type).makes_due:
        return False
    return clocks.may_be_newer(event.occurred_at, than=identity.arrived_at)


def _revoked_since(event: WebhookEvent, identity: LinkedIdentity) -> datetime | None:
    """When a revocation counts from. None if the stored credential is certainly younger."""
    occurred_at = event.occurred_at
    issued_at = identity.credential_issued_at
    if issued_at is not None and not clocks.may_be_newer(occurred_at, than=issued_at):
        return None
    return clocks.after_credential(occurred_at, issued_at)


# The effects


def kyc_stated(identity: LinkedIdentity, event: WebhookEvent) -> EventOutcome:
    """The newest statement counts, and a rejection wins at equal times.

    Status, level and provider are replaced as a whole: a member that the event lacks is emptied.
    """
    stated = kyc_in(event.payload or {}, event.event_type)
    if _went_with_grant(identity, stated):
        return EventOutcome.SUPERSEDED
    counts = _state_level(identity, stated, event)
    if counts or _may_have_newer_level(identity, event):
        return make_due(identity, event)
    return EventOutcome.SUPERSEDED


def _went_with_grant(identity: LinkedIdentity, stated: KycStatus) -> bool:
    """Whether a verification would bring back the level of a lost grant.

    It may be older than the loss, the person may have ended the consent, and the service could not
    be asked again.
    """
    if stated.status != VERIFIED or identity.kyc_status == VERIFIED:
        return False
    grants = TokenGrant.objects.filter(identity_id=identity.pk)
    return grants.filter(needs_reauthorization=True).exists()


def make_due(identity: LinkedIdentity, event: WebhookEvent) -> EventOutcome:
    """Save the level. If there is a grant, the re-fetch is due now."""
    due.make_due(identity)
    identity.save(update_fields=[*kyc.NO_LEVEL, "refetch_due_at"])
    return EventOutcome.APPLIED


def claim_revoked(identity: LinkedIdentity, event: WebhookEvent) -> EventOutcome:
    """Revoke the named claim, or all, unless a younger credential has proven it again.

    The KYC claim may be revoked because the verification is invalid, so its level no longer counts.
    """
    named = NamedClaim.parse(event.payload or {})
    since = _revoked_since(event, identity)
    if since is not None:
        claims = identity.claims.all()
        if named.claim_type:
            claims = claims.filter(claim_type=named.claim_type)
        of_provider = claims.filter(provider=named.provider)
        # A provider that is not stored may be another name of one that is: then all are revoked.
        if named.provider and of_provider.exists():
            claims = of_provider
        older = Q(revoked_at=None) | Q(revoked_at__lt=since)
        claims.filter(older).update(revoked_at=since)
    if _is_about_level(event) and identity.allows(*kyc.SCOPES):
        _state_level(identity, kyc.NOTHING_STATED, event)
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
            event.set_columns(retention.EMPTIED)
    elif identity.revoked_at is not None and identity.revoked_at < event.occurred_at:
        identity.revoked_at = event.occurred_at
        identity.save(update_fields=["revoked_at"])
    return EventOutcome.APPLIED


def data_deletion_requested(
    identity: LinkedIdentity, event: WebhookEvent
) -> EventOutcome:
    """End the consent at once, and request the erasure, whatever happened since (GDPR art. 17).

    Only a request that is older than ``EVENT_DAYS`` and than the link may be a replay: its row,
    which would show it as a repeat, may have been purged.
    """
    kept_for = timedelta(days=conf.application().event_days)
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


# Which of two statements about the level counts


def _state_level(
    identity: LinkedIdentity, stated: KycStatus, event: WebhookEvent
) -> bool:
    """Set the level to what ``event`` stated, unless a newer statement is known.

    Between two events the newer one counts, and a rejection wins at equal times, so the result is
    the same in every order. Against the site's own answer a withdrawal counts that is hardly older.
    """
    if not _is_newest(identity, stated, event):
        return False
    at = event.occurred_at
    verified_at = None
    if stated.status == VERIFIED:
        verified_at = at
    dated = replace(stated, verified_at=verified_at)
    identity.set_columns(kyc.level_columns(dated, said_at=at))
    return True


def _is_newest(
    identity: LinkedIdentity, stated: KycStatus, event: WebhookEvent
) -> bool:
    """Whether the statement of ``event`` is the newest, and counts."""
    at = event.occurred_at
    known_at = identity.kyc_said_at
    if known_at is None:
        return not _is_followed(event, identity)
    if at > known_at:
        return True
    if at == known_at:
        return _rank(stated) > _rank(kyc.level_of(identity))
    # What is known may be the site's own answer, by another clock: then a withdrawal wins.
    if stated.status == VERIFIED or not clocks.may_be_newer(at, than=known_at):
        return False
    return not _is_followed(event, identity)


def _may_have_newer_level(identity: LinkedIdentity, event: WebhookEvent) -> bool:
    """Whether a statement that did not count may be newer than the site's own answer.

    Then the service is asked again. A withdrawal that lost has lost to a newer event.
    """
    known_at = identity.kyc_said_at
    if identity.connect_only or known_at is None:
        return False
    if kind_of(event.event_type).takes_away:
        return False
    if not clocks.may_be_newer(event.occurred_at, than=known_at):
        return False
    return not _is_followed(event, identity)


def _is_about_level(event: WebhookEvent) -> bool:
    """Whether the event says something about the level.

    A KYC event does, and the revocation of the KYC claim or of all claims.
    """
    kind = kind_of(event.event_type)
    if kind.says_level and kind.names_claim:
        return NamedClaim.parse(event.payload or {}).claim_type in ("", KYC_CLAIM)
    return kind.says_level


def _is_followed(event: WebhookEvent, identity: LinkedIdentity) -> bool:
    """Whether a newer event made a statement about the subject's level.

    One that the newest sign-in has superseded made none: else the end would depend on which of the
    two was delivered first.
    """
    newer = WebhookEvent.objects.filter(
        subject_digest=event.subject_digest,
        event_type__in=ABOUT_LEVEL,
        occurred_at__gt=event.occurred_at,
    )
    return any(_is_about_level(later) and _counts(later, identity) for later in newer)


def _rank(stated: KycStatus) -> tuple[bool, str, str, str]:
    """Of two statements of one moment the greater one counts: a rejection, else any fixed rule."""
    return (stated.status != VERIFIED, stated.status, stated.kyc_level, stated.provider)
