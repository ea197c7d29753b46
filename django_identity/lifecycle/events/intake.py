"""The intake: store a delivery once and apply it once, in one transaction.

An event of a subject without a linked identity is stored too. A sign-in that is in progress finds
it there (``events_meanwhile``).
"""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db import DatabaseError, InterfaceError
from django.utils import timezone

from django_identity import background, database, signals
from django_identity.background import TaskName
from django_identity.conf import Application
from django_identity.exceptions import (
    EventConflict,
    EventUnreadable,
    SignatureInvalid,
    StorageUnavailable,
)
from django_identity.handlers import EventType, handlers_of
from django_identity.lifecycle.events import (
    deliveries,
    effects,
    former_links,
    receipts,
    rows,
    tallies,
)
from django_identity.lifecycle.events.effects import CLOCK_SKEW, EFFECTS
from django_identity.lifecycle.events.locks import LOCK_WAIT_SECONDS, transaction_of_event
from django_identity.models import (
    EventOutcome,
    LinkedIdentity,
    TallyName,
    WebhookEvent,
    digest,
)
from django_identity.service.webhooks import SUBJECTS, Event, signing_secret
from django_identity.telemetry import Operation, measured

TRIES = 3
#: The members of the data that the spec and this package name.
KEPT_MEMBERS = (*SUBJECTS, "kyc_level", "status", "provider", "claim_type")
#: The ``error`` of an event of a known type without a subject, which nothing can be done about.
NAMES_NOBODY = "names_nobody"
LONGEST_PAUSE = 0.1
REPEATED = "repeated"


@dataclass(frozen=True, slots=True)
class Received:
    """An acknowledged delivery, for the log. ``row``: the stored event, or None for a repeat.

    ``event_type``: a type of the spec, or ``other``. ``outcome``: the event's, or ``repeated``.
    """

    event_type: str
    outcome: str
    row: int | None = None


def receive(application: Application, body: bytes, *, signature: str) -> Received:
    """Check, store and apply one delivery. After this call the effect is committed.

    Must run outside any transaction. Raises ``SignatureInvalid``, ``EventUnreadable``,
    ``EventConflict`` (which is counted), or ``StorageUnavailable`` if the database failed. After an
    error no event has changed.
    """
    with measured(Operation.EVENT, application=application.alias) as measurement:
        received = _receive(application, body, signature=signature)
        measurement.attributes["type"] = received.event_type
        measurement.outcome = received.outcome
    return received


def _receive(application: Application, body: bytes, *, signature: str) -> Received:
    event = _authentic(application, body, signature=signature)
    gives_up_at = time.monotonic() + LOCK_WAIT_SECONDS
    for tries_left in reversed(range(TRIES)):
        try:
            return _take_in(application, _row_of(application, event, body), body)
        except (DatabaseError, InterfaceError) as error:
            # Any error: Django's report of it would contain the event's data.
            if not tries_left or time.monotonic() > gives_up_at:
                raise StorageUnavailable(type(error).__name__) from error
            time.sleep(random.uniform(0, LONGEST_PAUSE))  # noqa: S311  not for secrecy
            database.connection().close_if_unusable_or_obsolete()
    raise AssertionError


def _authentic(application: Application, body: bytes, *, signature: str) -> Event:
    """The event in a signed body. Raises ``SignatureInvalid`` or ``EventUnreadable``, counted."""
    secret = signing_secret(body, signature=signature, secrets=application.webhook_secrets)
    if secret is None:
        deliveries.count(application, TallyName.BAD_SIGNATURE)
        raise SignatureInvalid
    deliveries.count_signed(application, secret)
    try:
        return Event.parse(body)
    except EventUnreadable:
        deliveries.count(application, TallyName.BAD_EVENT)
        raise


def _row_of(application: Application, event: Event, body: bytes) -> WebhookEvent:
    """The row for the event. The subject has a digest, which is empty without a subject.

    A time-stamp from the future counts as 5 minutes from now, so that it does not outrank all later
    events.
    """
    now = timezone.now()
    names_nobody = not event.subject and event.event_type in EFFECTS
    subject = (application.alias, application.environment, event.subject)
    return WebhookEvent(
        application=application.alias,
        event_id=event.event_id,
        event_digest=digest(application.alias, event.event_id),
        body_digest=rows.digests_of(body)[0],
        event_type=event.event_type,
        occurred_at=min(event.occurred_at, now + CLOCK_SKEW),
        received_at=now,
        subject=event.subject,
        subject_digest=digest(*subject) if event.subject else "",
        payload=_kept_payload(event),
        outcome=EventOutcome.FAILED if names_nobody else EventOutcome.APPLIED,
        error=NAMES_NOBODY if names_nobody else "",
        next_attempt_at=now if _has_work(event.event_type) and not names_nobody else None,
    )


def _kept_payload(event: Event) -> Mapping[str, Any] | None:
    """The stored part of the event's data: named members, or all if the type has a handler."""
    if handlers_of(event.event_type):
        return event.content
    if event.event_type not in EFFECTS:
        return None
    return {name: event.content[name] for name in KEPT_MEMBERS if name in event.content}


def _has_work(event_type: str) -> bool:
    """Whether work remains after the response: an erasure, or the site's handlers."""
    return event_type == EventType.DATA_DELETION_REQUESTED or bool(handlers_of(event_type))


def _take_in(application: Application, event: WebhookEvent, body: bytes) -> Received:
    """Store the event, apply it, and send signals after the commit. Raises ``EventConflict``."""
    with transaction_of_event(event.subject_digest):
        # Write first: SQLite then waits for the lock. After a read it would fail at once.
        if rows.insert(event):
            changed = _apply(application, event) if event.error != NAMES_NOBODY else None
            _announce(event, changed)
            return Received(_known_type(event), event.outcome, event.pk)
        is_repeat = rows.is_repeat(event, body)
    if is_repeat:
        return Received(_known_type(event), REPEATED)
    tallies.add(TallyName.EVENT_CONFLICT, application=application)
    raise EventConflict


def _known_type(event: WebhookEvent) -> str:
    """The type for logs and metrics. Types that nobody knows could be anything, and many."""
    return event.event_type if event.event_type in EFFECTS else "other"


def _apply(application: Application, event: WebhookEvent) -> LinkedIdentity | None:
    """Apply the event and record its outcome. Returns the changed identity, or None."""
    identity = _locked_identity(event)
    changed = identity if identity and effects.apply(identity, event) else None
    if changed is not None:
        changed.save(update_fields=effects.CHANGED)
    if event.event_type == EventType.DATA_DELETION_REQUESTED:
        receipts.open_receipt(
            application=application.alias,
            environment=application.environment,
            subject=event.subject,
            identity=identity,
            requested_at=event.occurred_at,
            event_id=event.event_id,
        )
    elif changed is None:
        rows.settle(
            event,
            outcome=_outcome_without_change(event, identity),
            bare=identity is not None and not effects.is_covered(identity, event),
            erased=_is_forgotten(event, identity),
        )
    return changed


def _locked_identity(event: WebhookEvent) -> LinkedIdentity | None:
    """Lock the identity of the event's subject. A sign-in that links it has ended before."""
    if not event.subject_digest:
        return None
    identities = LinkedIdentity.objects.select_for_update()
    return next(iter(identities.filter(subject_digest=event.subject_digest)), None)


def _outcome_without_change(event: WebhookEvent, identity: LinkedIdentity | None) -> EventOutcome:
    if identity is None or event.event_type not in EFFECTS:
        return EventOutcome.IGNORED
    is_late = effects.is_covered(identity, event)
    return EventOutcome.SUPERSEDED if is_late else EventOutcome.IGNORED


def _is_forgotten(event: WebhookEvent, identity: LinkedIdentity | None) -> bool:
    """Whether the subject was erased or disconnected, and not linked again before the event."""
    if not event.subject_digest:
        return False
    erasures = receipts.of_subject(event.subject_digest)
    if identity is not None:
        erasures = erasures.filter(receipts.covering_event(event.occurred_at))
    is_disconnected = identity is None and former_links.of_subject(event.subject_digest).exists()
    return is_disconnected or erasures.exists()


def _announce(event: WebhookEvent, identity: LinkedIdentity | None) -> None:
    """After the commit: send signals at once, and publish tasks for handlers and re-fetches.

    ``identity``: the changed identity, or None.
    """
    signals.announce(signals.event_received, WebhookEvent, event=event)
    if event.next_attempt_at is not None:
        background.enqueue_on_commit(TaskName.RUN_EVENT_HANDLERS, event.pk)
    if identity is None:
        return
    effect = EFFECTS[event.event_type]
    if effect.signal is not None:
        signals.announce(effect.signal, LinkedIdentity, identity=identity)
    if effect.refetch and identity.refetch_due_at is not None:
        background.enqueue_on_commit(TaskName.REFETCH_ONE, identity.pk)
