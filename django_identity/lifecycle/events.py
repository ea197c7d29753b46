"""Webhook events: stored first, then applied once, in a second transaction.

``EFFECTS`` is the table of ``docs/webhooks.md``. The result does not depend on the order and the
number of deliveries. A process that dies between the two transactions leaves an event without an
outcome: the service delivers it again, and upkeep applies what has none.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta

from django.db import DatabaseError, InterfaceError
from django.db.models import Q
from django.utils import timezone

from django_identity import background, conf, database, exceptions, signals
from django_identity.conf import Application
from django_identity.handlers import EventType, handlers_of
from django_identity.lifecycle import kyc, withdrawal
from django_identity.lifecycle.kyc import CLOCK_SKEW
from django_identity.logs import LogEvent, log
from django_identity.models import (
    Consent,
    ErasureReceipt,
    EventOutcome,
    LinkedIdentity,
    RevokedBy,
    StoredClaim,
    WebhookEvent,
)
from django_identity.models.events import NAMES_NOBODY
from django_identity.service.webhooks import Event, NamedClaim, is_signed, kyc_in

#: For so long the service is asked to deliver a withdrawal again that names nobody.
AWAITS_ITS_PERSON = timedelta(hours=1)
LONGEST_ERROR = 255
#: Events that take something away. They act without their payload, too.
TAKES_AWAY = (EventType.KYC_REJECTED, EventType.CLAIM_REVOKED, EventType.CONSENT_REVOKED)

Effect = Callable[[LinkedIdentity, WebhookEvent], EventOutcome]


def receive(application: Application, body: bytes, *, signature: str) -> None:
    """Check, store, apply and log one delivery. After this call the effect is committed.

    Must run outside any transaction. Raises ``EventRefused``, or ``StorageUnavailable`` if the
    database failed, for example with a deadlock: then the service delivers again. A withdrawal that
    names nobody raises ``EventNamesNobody`` for an hour, so that a service that delivers again
    meets the mended setting.
    """
    if not is_signed(body, signature=signature, secrets=application.webhook_secrets):
        raise exceptions.EventRefused(code="signature_invalid")
    event = Event.parse(body, subject_paths=application.event_subject_paths)
    nameless = WebhookEvent.digest_of(application, event, subject="")
    try:
        stored = WebhookEvent.objects.stored(application, event)
        row, is_repeat = apply(stored, event, nameless=nameless)
    except (DatabaseError, InterfaceError) as error:
        raise exceptions.StorageUnavailable(type(error).__name__) from error
    members = None
    if row.names_nobody:
        members = ",".join(event.members)
        is_withdrawal = row.event_type in (*TAKES_AWAY, EventType.DATA_DELETION_REQUESTED)
        if is_withdrawal and timezone.now() < row.received_at + AWAITS_ITS_PERSON:
            raise exceptions.EventNamesNobody(f"{row.event_type} with {members}")
    log(
        LogEvent.EVENT_RECEIVED,
        level=logging.INFO if members is None else logging.WARNING,
        application=application.alias,
        # Types that nobody knows could be anything, and many, so the log does not name them.
        type=event.event_type if event.event_type in EFFECTS else "other",
        outcome="repeated" if is_repeat else row.outcome,
        row=row.pk,
        why=row.why_ignored,
        members=members,
    )


def apply(
    stored: WebhookEvent, event: Event | None = None, *, nameless: str = ""
) -> tuple[WebhookEvent, bool]:
    """Apply the stored event, unless it has an outcome. Returns the row, and whether it had one.

    Upkeep applies what was stored and never applied, without ``event``, its content. ``nameless``:
    the digest of the same event without its person. If the service sent that before, it is closed.
    """
    with database.atomic():
        identity = LinkedIdentity.objects.locked(stored.subject_digest)
        # By the digest: MySQL tells no key after the insert.
        digests = [stored.event_digest, nameless]
        locked = WebhookEvent.objects.select_for_update().filter(event_digest__in=digests)
        rows = {row.event_digest: row for row in locked}
        row = rows.pop(stored.event_digest)
        for earlier in rows.values():
            _close_nameless(earlier)
        if row.outcome:
            return row, True
        if identity is not None and event is not None:
            row.keep(event)
        _apply(row, identity, members=event.members if event else ())
        return row, False


def _close_nameless(row: WebhookEvent) -> None:
    """The event came again and named its person, so nobody has to look into this row."""
    row.outcome = EventOutcome.SUPERSEDED
    row.error = ""
    row.next_attempt_at = None
    row.save(update_fields=["outcome", "error", "next_attempt_at"])


def apply_since(identity: LinkedIdentity, began_at: datetime, *, is_new: bool) -> None:
    """Apply the events that came since a sign-in or a code began, to what it brought.

    The caller has locked the identity, and saves it. Raises ``LinkingRefused``.
    """
    events = WebhookEvent.objects.of_subject_since(identity.subject_digest, began_at)
    if not events.exists():
        return

    for row in events.select_for_update().order_by("occurred_at", "event_digest"):
        is_newer = row.occurred_at >= began_at - CLOCK_SKEW
        is_revoked = row.event_type == EventType.CONSENT_REVOKED and is_newer
        if is_revoked or row.event_type == EventType.DATA_DELETION_REQUESTED:
            raise exceptions.LinkingRefused(code="consent_withdrawn")
        # An event without an outcome is applied by its own transaction, which waits for this one.
        # But that may have found no identity before this one was written: then it does nothing.
        if row.outcome and row.outcome != EventOutcome.FAILED:
            row.outcome = outcome_of(identity, row)
            row.save()
        elif is_new and not row.outcome:
            _apply(row, identity)


def _apply(
    row: WebhookEvent, identity: LinkedIdentity | None, *, members: Iterable[str] = ()
) -> None:
    """Apply a locked event to the locked identity of its subject, and save its outcome.

    An event about a subject that is not linked keeps its type, its times and its digests only.
    """
    row.next_attempt_at = None
    if row.event_type in EFFECTS and not row.subject_digest:
        row.outcome = EventOutcome.FAILED
        row.error = f"{NAMES_NOBODY} {','.join(members)}".strip()[:LONGEST_ERROR]
    elif identity is None:
        row.outcome = _outcome_for_nobody(row)
    else:
        row.outcome = outcome_of(identity, row)
        is_deletion = row.event_type == EventType.DATA_DELETION_REQUESTED
        if is_deletion or (row.subject and handlers_of(row.event_type)):
            row.next_attempt_at = timezone.now()
    row.save(update_fields=[*withdrawal.EMPTIED, "outcome", "next_attempt_at"])
    signals.announce(signals.event_received, WebhookEvent, event=row)
    # No broker delays the answer to a revocation. Its handlers wait for upkeep.
    is_revocation = row.event_type in (EventType.CONSENT_REVOKED, EventType.CLAIM_REVOKED)
    if is_revocation and not background.is_eager():
        return
    if row.next_attempt_at is not None:
        background.nudge_on_commit(background.TaskName.RUN_HANDLERS, row.pk)
    if identity is not None and row.outcome == EventOutcome.APPLIED and identity.is_due:
        background.nudge_on_commit(background.TaskName.REFETCH_DUE, identity.application, 1)


def _outcome_for_nobody(row: WebhookEvent) -> EventOutcome:
    """The outcome of an event about a subject who is not linked. A deletion empties the others."""
    if row.event_type != EventType.DATA_DELETION_REQUESTED:
        return EventOutcome.IGNORED
    receipt = withdrawal.erase_unlinked(
        row.application, row.subject_digest, requested_at=row.occurred_at
    )
    if not any(receipt.counts.values()):
        return EventOutcome.IGNORED
    receipt.save()
    signals.announce(
        signals.data_erased, ErasureReceipt, application=row.application, receipt=receipt
    )
    return EventOutcome.APPLIED


def outcome_of(identity: LinkedIdentity, row: WebhookEvent) -> EventOutcome:
    """Apply the event to the identity, and save the identity.

    A late event, from before the newest sign-in or code, is superseded; what takes something away
    counts up to five minutes longer, and a deletion always, but for what its effect says. Of two
    statements about the level ``kyc.state`` takes the newer one. Without its payload a withdrawal
    acts as usual; any other event only makes the re-fetch due.
    """
    effect = EFFECTS.get(row.event_type)
    if effect is None:
        return EventOutcome.IGNORED
    if row.event_type == EventType.DATA_DELETION_REQUESTED:
        return effect(identity, row)
    skew = CLOCK_SKEW if row.event_type in TAKES_AWAY else timedelta(0)
    if row.occurred_at < identity.arrived_at - skew:
        return EventOutcome.SUPERSEDED
    if row.payload is None and row.event_type not in TAKES_AWAY:
        return refetch_due(identity, row)
    return effect(identity, row)


# The effects


def kyc_stated(identity: LinkedIdentity, event: WebhookEvent) -> EventOutcome:
    """The newest statement counts, and a rejection wins at equal times.

    Status, level and provider are replaced as a whole: a member that the event lacks is emptied.
    """
    if not kyc.is_covered(identity):
        event.payload = None
        return EventOutcome.IGNORED
    stated = kyc_in(event.payload or {}, event.event_type)
    if not kyc.state(identity, stated, event):
        return EventOutcome.SUPERSEDED
    return refetch_due(identity, event)


def refetch_due(identity: LinkedIdentity, event: WebhookEvent) -> EventOutcome:
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
    named, at = NamedClaim.parse(event.payload or {}), event.occurred_at
    issued_at = identity.credential_issued_at
    if issued_at is None or issued_at - CLOCK_SKEW <= at:
        claims = StoredClaim.objects.filter(identity_id=identity.pk)
        if named.claim_type:
            claims = claims.filter(claim_type=named.claim_type)
        of_provider = claims.filter(provider=named.provider)
        # A provider that is not stored may be another name of one that is: then all are revoked.
        if named.provider and of_provider.exists():
            claims = of_provider
        older = Q(revoked_at=None) | Q(revoked_at__lt=at)
        claims.filter(older).update(revoked_at=at)
    if kyc.is_about_level(event) and kyc.is_covered(identity):
        kyc.state(identity, kyc.NOTHING_STATED, event)
    signals.announce(signals.claims_changed, LinkedIdentity, identity=identity)
    return refetch_due(identity, event)


def consent_granted(identity: LinkedIdentity, event: WebhookEvent) -> EventOutcome:
    """Recorded. Consent becomes granted by the sign-in or the code that brings something."""
    return EventOutcome.APPLIED


def consent_revoked(identity: LinkedIdentity, event: WebhookEvent) -> EventOutcome:
    """End the consent at once."""
    if identity.connect_only or identity.consent == Consent.GRANTED:
        is_deleted = withdrawal.revoke(identity, at=event.occurred_at, by=RevokedBy.PERSON)
        if is_deleted:
            # The event is about nobody who is linked.
            event.set_columns(withdrawal.EMPTIED)
    elif identity.revoked_at is not None and identity.revoked_at < event.occurred_at:
        identity.revoked_at = event.occurred_at
        identity.save()
    return EventOutcome.APPLIED


def data_deletion_requested(identity: LinkedIdentity, event: WebhookEvent) -> EventOutcome:
    """End the consent at once, and request the erasure, whatever happened since.

    Only a request that is older than ``EVENT_DAYS`` and than the link may be a replay.
    """
    kept_for = timedelta(days=conf.application(event.application).event_days)
    is_too_old = event.occurred_at < event.received_at - kept_for
    if is_too_old and event.occurred_at < identity.created_at:
        return EventOutcome.SUPERSEDED
    withdrawal.request_erasure(identity, at=event.occurred_at, by=RevokedBy.PERSON)
    signals.announce(signals.consent_revoked, LinkedIdentity, identity=identity)
    return EventOutcome.APPLIED


EFFECTS: Mapping[str, Effect] = {
    EventType.KYC_VERIFIED: kyc_stated,
    EventType.KYC_REJECTED: kyc_stated,
    EventType.CLAIM_ISSUED: refetch_due,
    EventType.CLAIM_REVOKED: claim_revoked,
    EventType.CONSENT_GRANTED: consent_granted,
    EventType.CONSENT_REVOKED: consent_revoked,
    EventType.DATA_DELETION_REQUESTED: data_deletion_requested,
}
