"""The intake: one delivery is stored once and applied once, in one transaction.

An event of a subject that is not linked is stored all the same; a sign-in that is on its way finds
it there (``events_meanwhile``).
"""

from __future__ import annotations

import random
import time
from datetime import timedelta
from enum import StrEnum

from django.db import DatabaseError, InterfaceError, connection
from django.utils import timezone

from django_identity import background, signals
from django_identity.background import TaskName
from django_identity.conf import Application
from django_identity.exceptions import SignatureInvalid, StorageUnavailable
from django_identity.handlers import EventType, handlers_of
from django_identity.lifecycle.events import effects, receipts, rows
from django_identity.lifecycle.events.effects import EFFECTS
from django_identity.lifecycle.events.locks import LOCK_WAIT_SECONDS, transaction_of_event
from django_identity.models import EventOutcome, LinkedIdentity, WebhookEvent, digest
from django_identity.service.webhooks import Event, is_authentic

CLOCK_SKEW = timedelta(minutes=5)
TRIES = 3
LONGEST_PAUSE = 0.1


class Intake(StrEnum):
    """How a delivery ended that is acknowledged."""

    STORED = "stored"
    REPEATED = "repeated"


def receive(application: Application, body: bytes, *, signature: str) -> Intake:
    """Check, store and apply one delivery; when this returns, its effect is there.

    Must run outside any transaction. Raises ``SignatureInvalid``, ``EventUnreadable``, or
    ``StorageUnavailable`` if the database did not answer; nothing has changed then.
    """
    if not is_authentic(body, signature=signature, secrets=application.webhook_secrets):
        raise SignatureInvalid
    event = Event.parse(body)
    gives_up_at = time.monotonic() + LOCK_WAIT_SECONDS
    for tries_left in reversed(range(TRIES)):
        try:
            return _take_in(application, _row_of(application, event))
        except (DatabaseError, InterfaceError) as error:
            # Whatever is wrong: Django's report of it would show the event with all that it says.
            if not tries_left or time.monotonic() > gives_up_at:
                raise StorageUnavailable(type(error).__name__) from error
            time.sleep(random.uniform(0, LONGEST_PAUSE))  # noqa: S311  not for secrecy
            connection.close_if_unusable_or_obsolete()
    raise AssertionError


def _row_of(application: Application, event: Event) -> WebhookEvent:
    """The event as it is stored; whoever it names is known by a digest, and nobody by an empty one.

    From the future it counts as 5 minutes from now: else it would outrank every later one.
    """
    now = timezone.now()
    subject = (application.alias, application.environment, event.subject)
    return WebhookEvent(
        application=application.alias,
        event_id=event.event_id,
        event_digest=digest(application.alias, event.event_id),
        event_type=event.event_type,
        occurred_at=min(event.occurred_at, now + CLOCK_SKEW),
        received_at=now,
        subject=event.subject,
        subject_digest=digest(*subject) if event.subject else "",
        payload=event.content,
        outcome=EventOutcome.APPLIED,
        next_attempt_at=now if _has_work(event.event_type) else None,
    )


def _has_work(event_type: str) -> bool:
    """Whether something is left to do after the response: an erasure, or the site's handlers."""
    return event_type == EventType.DATA_DELETION_REQUESTED or bool(handlers_of(event_type))


def _take_in(application: Application, event: WebhookEvent) -> Intake:
    """Store the event, do what it says, and tell the site once that is committed."""
    with transaction_of_event(event.subject_digest):
        # A write comes first: SQLite then waits for the lock instead of failing at the upgrade.
        if not rows.insert(event):
            return Intake.REPEATED
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
            is_late = identity is not None and event.event_type in EFFECTS
            outcome = EventOutcome.SUPERSEDED if is_late else EventOutcome.IGNORED
            rows.settle(event, outcome=outcome, erased=_is_of_the_erased(event, identity))
        _announce(event, changed)
    return Intake.STORED


def _locked_identity(event: WebhookEvent) -> LinkedIdentity | None:
    """The identity that the event is about; a sign-in that is linking it has ended."""
    if not event.subject_digest:
        return None
    identities = LinkedIdentity.objects.select_for_update()
    return next(iter(identities.filter(subject_digest=event.subject_digest)), None)


def _is_of_the_erased(event: WebhookEvent, identity: LinkedIdentity | None) -> bool:
    """Whether the subject was erased, and not linked anew before this happened."""
    if not event.subject_digest:
        return False
    erasures = receipts.of_subject(event.subject_digest)
    if identity is not None:
        erasures = erasures.filter(receipts.covering_event(event.occurred_at))
    return erasures.exists()


def _announce(event: WebhookEvent, identity: LinkedIdentity | None) -> None:
    """After the commit: receivers of signals at once; handlers and re-fetches in tasks.

    ``identity``: the one that was changed.
    """
    signals.announce(signals.event_received, WebhookEvent, event=event)
    if event.next_attempt_at is not None:
        background.hand_over(TaskName.RUN_EVENT_HANDLERS, event.pk)
    if identity is None:
        return
    effect = EFFECTS[event.event_type]
    if effect.signal is not None:
        signals.announce(effect.signal, LinkedIdentity, identity=identity)
    if effect.refetch and identity.refetch_due_at is not None:
        background.hand_over(TaskName.REFETCH_ONE, identity.pk)
