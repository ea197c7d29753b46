"""Webhook events: stored first, then applied once, in a second transaction.

The race is the reason for the first. The event is committed before its identity is looked for, so
of an event and a sign-in at the same moment at least one sees the other: the event finds the row,
or the sign-in finds the event (``apply_since``). A process that dies between the two transactions
leaves an event without an outcome: the service delivers it again, and upkeep applies what has none.

``effects`` has what each type does, and what a late event does. The result does not depend on the
order and the number of deliveries.
"""

import logging
from collections.abc import Iterable
from datetime import datetime, timedelta
from functools import partial
from typing import NamedTuple

from django.db import Error
from django.utils import timezone

from django_identity import background, conf, database, exceptions, signals
from django_identity.event_types import ERASING, KINDS, Effect, kind_of
from django_identity.handlers import handlers_of
from django_identity.lifecycle import attempts, clocks, effects, kyc, retention
from django_identity.logs import LogEvent, log
from django_identity.models import EventOutcome, LinkedIdentity, WebhookEvent
from django_identity.models.choices import ERROR_LENGTH
from django_identity.models.events import NAMES_NOBODY
from django_identity.service.webhooks import Event, is_signed

#: For so long the service is asked to deliver a withdrawal again that names nobody.
AWAITS_ITS_PERSON = timedelta(hours=1)
#: The columns that applying an event, or adding its content, may change.
CHANGED = (*retention.EMPTIED, "outcome", "attempts", "next_attempt_at")


class Applied(NamedTuple):
    """The row of an event, with its outcome. ``is_repeat``: it had one before."""

    row: WebhookEvent
    is_repeat: bool


def receive(body: bytes, *, signature: str) -> None:
    """Check, store, apply and log one delivery. After this call the effect is committed.

    Must run outside any transaction. Raises ``EventRefused``, or ``StorageUnavailable`` if the
    database failed twice: then the service delivers again. A withdrawal that names nobody raises
    ``EventNamesNobody`` for an hour. A service that delivers again then meets the mended setting.
    """
    application = conf.application()
    # Before anything is read or stored, because anybody can send to the address. The specification
    # demands it, too ("Webhook signature").
    if not is_signed(body, signature=signature, secrets=application.webhook_secrets):
        raise exceptions.EventRefused(code="signature_invalid")
    event = Event.parse(body, subject_paths=application.event_subject_paths)
    # An error tracker prints the variables of a function that fails.
    del body
    try:
        row, is_repeat = database.tried_again(partial(_store_and_apply, event))
    except Error as error:
        raise exceptions.StorageUnavailable(database.name_of(error)) from error

    level = logging.INFO
    members = None
    if row.names_nobody:
        level = logging.WARNING
        members = ",".join(event.members)
        is_awaited = timezone.now() < row.received_at + AWAITS_ITS_PERSON
        if is_awaited and kind_of(row.event_type).takes_away:
            raise exceptions.EventNamesNobody(f"{row.event_type} with {members}")
    log(
        LogEvent.EVENT_RECEIVED,
        level=level,
        # Types that nobody knows could be anything, and many, so the log does not name them.
        type=event.event_type if event.event_type in KINDS else "other",
        outcome="repeated" if is_repeat else row.outcome,
        row=row.pk,
        why=row.why_ignored,
        members=members,
    )


def _store_and_apply(event: Event) -> Applied:
    database.require_no_transaction(database.IN_STEPS)
    nameless = WebhookEvent.digest_of(event, subject="")
    stored = WebhookEvent.objects.stored(event)
    return apply(stored, event, nameless=nameless)


def apply(
    stored: WebhookEvent, event: Event | None = None, *, nameless: str = ""
) -> Applied:
    """Apply the stored event, unless it has an outcome.

    Upkeep applies what was stored and never applied, without ``event``, its content. ``nameless``:
    the digest of the same event without its person. If the service sent that before, it is closed.
    """
    with database.atomic():
        identity = LinkedIdentity.objects.locked(stored.subject_digest)
        row = _lock(stored, nameless)
        if row.outcome:
            if identity is not None and event is not None:
                _add_content(row, identity, event)
            return Applied(row, is_repeat=True)

        if identity is not None and event is not None:
            retention.keep(row, event)
        elif identity is not None:
            row.subject = identity.subject
        _apply(row, identity, members=event.members if event else ())
        return Applied(row, is_repeat=False)


def apply_since(identity: LinkedIdentity, began_at: datetime, *, is_new: bool) -> None:
    """Apply the events that came since a sign-in or a code began, to what it brought.

    The caller has locked the identity, and saves it. Raises ``LinkingRefused``.
    """
    events = WebhookEvent.objects.of_subject_since(identity.subject_digest, began_at)
    if not events.exists():
        return

    for row in events.select_for_update().order_by("occurred_at", "event_digest"):
        kind = kind_of(row.event_type)
        counts = kind.always or clocks.may_be_newer(row.occurred_at, than=began_at)
        if kind.ends_consent and counts:
            raise exceptions.LinkingRefused(code="consent_withdrawn")

        is_applied = row.outcome and row.outcome != EventOutcome.FAILED
        if is_applied:
            # To what was stored before, or to nobody. What the sign-in brought may be older.
            row.outcome = effects.outcome_of(identity, row)
            row.save()
        elif is_new and not row.outcome:
            # Its own transaction may have looked before the identity was written, and found nobody.
            row.subject = identity.subject
            _apply(row, identity, tells_level=False)
        # Else its own transaction applies it, and waits for the lock of this one.


def _lock(stored: WebhookEvent, nameless: str) -> WebhookEvent:
    """The event's row, locked. Closes the row of the same event that named nobody, if any."""
    # By the digest: MySQL tells no key after the insert.
    digests = [stored.event_digest, nameless]
    found = WebhookEvent.objects.select_for_update().filter(event_digest__in=digests)
    rows = {row.event_digest: row for row in found}
    row = rows.pop(stored.event_digest)
    for earlier in rows.values():
        # The event came again and names its person, so nobody has to look into the earlier row.
        earlier.outcome = EventOutcome.SUPERSEDED
        earlier.error = ""
        earlier.next_attempt_at = None
        earlier.save(update_fields=["outcome", "error", "next_attempt_at"])
    return row


def _apply(
    row: WebhookEvent,
    identity: LinkedIdentity | None,
    *,
    members: Iterable[str] = (),
    tells_level: bool = True,
) -> None:
    """Apply a locked event to the locked identity of its subject, and save its outcome.

    An event about a subject that is not linked keeps its type, its times and its digests only.
    ``tells_level``: announce a changed level. A sign-in does so itself, once for all its changes.
    """
    if row.event_type in KINDS and not row.subject_digest:
        row.outcome = EventOutcome.FAILED
        named = ",".join(members)
        row.error = f"{NAMES_NOBODY} {named}".strip()[:ERROR_LENGTH]
    elif identity is None:
        row.outcome = effects.outcome_for_nobody(row)
    else:
        before = identity.kyc_state
        row.outcome = effects.outcome_of(identity, row)
        # Not if the consent ended: of that another signal tells.
        if tells_level and kind_of(row.event_type).says_level:
            kyc.announce_change(identity, before=before)
    _set_due(row)
    row.save(update_fields=CHANGED)
    signals.announce(signals.event_received, WebhookEvent, event=row)
    _wake(row, identity)


def _add_content(row: WebhookEvent, identity: LinkedIdentity, event: Event) -> None:
    """Add the content to an event that was applied without it, and make its handlers due.

    The process that stored the event died, and upkeep applied it; now the service has delivered it
    again. A row without a subject was about nobody who was linked, or is emptied since. One with an
    event id has its content, or had it.
    """
    if not row.subject or row.event_id:
        return
    is_level = kind_of(row.event_type).effect is Effect.STATE_LEVEL
    if is_level and not identity.allows(*kyc.SCOPES):
        return
    retention.keep(row, event)
    _set_due(row)
    row.save(update_fields=CHANGED)
    _wake(row, None)


def _set_due(row: WebhookEvent) -> None:
    """Make the row due if somebody has work with it: the erasure, or the site's handlers.

    Handlers wait for the content, which only a delivery brings.
    """
    if attempts.is_taken(row):
        # Its worker has it until ``next_attempt_at``. A second one would run one handler twice.
        return
    # Each failure so far was one to apply it.
    row.attempts = 0
    is_erasure = row.event_type in ERASING and bool(row.subject)
    has_handlers = bool(row.subject and row.event_id and handlers_of(row.event_type))
    row.next_attempt_at = None
    if is_erasure or has_handlers:
        row.next_attempt_at = timezone.now()


def _wake(row: WebhookEvent, identity: LinkedIdentity | None) -> None:
    """Wake workers after the commit for what is due now."""
    # The service waits for the answer to a revocation, so no broker is asked. Upkeep finds the row.
    if not kind_of(row.event_type).wakes_worker and not background.is_eager():
        return
    if row.next_attempt_at is not None and not attempts.is_taken(row):
        background.nudge_on_commit(background.TaskName.RUN_HANDLERS, row.pk)
    if identity is not None and row.outcome == EventOutcome.APPLIED and identity.is_due:
        background.nudge_on_commit(background.TaskName.REFETCH_DUE, 1)
