"""Events: one delivery in, stored once and applied once, in one transaction.

An event of a subject that is not linked is stored all the same; a sign-in that is on its way
finds it there (``linking``).
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import TypeVar

from django.db import DatabaseError, IntegrityError, InterfaceError, connection, transaction
from django.utils import timezone

from django_identity import background, signals
from django_identity.background import TaskName
from django_identity.conf import Application
from django_identity.exceptions import SignatureInvalid, StorageUnavailable
from django_identity.handlers import EventType, handlers_of
from django_identity.lifecycle.events import receipts, rows
from django_identity.lifecycle.events.effects import EFFECTS, Effect, Happening
from django_identity.lifecycle.events.exchange import in_few_messages, joined
from django_identity.lifecycle.events.rows import Stored
from django_identity.models import EventOutcome, LinkedIdentity, Retained, WebhookEvent
from django_identity.service.webhooks import Event, is_authentic

TRIES = 3
LONGEST_PAUSE = 0.1

T = TypeVar("T")


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
    return _persistently(lambda: _take_in(Happening.of(application, event, now=timezone.now())))


def _take_in(happening: Happening) -> Intake:
    """Store and apply, and then say so; a repeat does nothing.

    Of an erased subject nobody is named, though it take a repeat to see that: a process may have
    died before it could settle the event.
    """
    effect = EFFECTS.get(happening.event.event_type)
    keyed = receipts.keyed(happening.subject_digest) if happening.subject_digest else []
    values = _values(happening, effect, keyed)
    try:
        stored = _store(happening, effect, values, keys=len(keyed))
    except IntegrityError:
        filed = rows.look(values, keys=len(keyed))
        if filed is None:
            raise
        stored = Stored(has_changed=False, filed=filed, is_repeat=True)
    if not stored.has_changed:
        _settle(happening, stored, values, keys=len(keyed))
    if stored.is_repeat:
        return Intake.REPEATED
    told = effect if stored.has_changed else None
    # Not a partial: Django looks for the name of one that fails, and fails itself.
    transaction.on_commit(lambda: _tell(happening, told), robust=True)
    return Intake.STORED


def _store(
    happening: Happening, effect: Effect | None, values: Mapping[str, object], *, keys: int
) -> Stored:
    """Write the event down and do what it says, in one transaction."""
    after = effect.after if effect else ()
    with in_few_messages() as exchange:
        stored = rows.store(
            exchange,
            values,
            keys=keys,
            asks_for_erasure=_asks_for_erasure(happening),
            change=effect.change if effect else None,
            is_last=not after,
        )
        if stored.is_repeat:
            exchange.cancel()
        elif stored.has_changed and after:
            exchange.send(*joined(*after), values=values, is_last=True)
    return stored


def _settle(
    happening: Happening, stored: Stored, values: Mapping[str, object], *, keys: int
) -> None:
    """What is left of an event that changed nothing; an erasure settles its own."""
    if _asks_for_erasure(happening):
        return
    filed = stored.filed or rows.look(values, keys=keys)
    if filed is None:
        return
    is_of_known_type = happening.event.event_type in EFFECTS
    is_late = is_of_known_type and not stored.is_repeat and filed.outcome == EventOutcome.APPLIED
    rows.settle(happening.digest, is_late=is_late, is_erased=filed.is_erased)


def _asks_for_erasure(happening: Happening) -> bool:
    return happening.event.event_type == EventType.DATA_DELETION_REQUESTED


def _values(happening: Happening, effect: Effect | None, keyed: list[str]) -> dict[str, object]:
    """What the statements have slots for."""
    is_deletion = _asks_for_erasure(happening)
    values = {
        **_columns(happening),
        **happening.values(),
        **{f"keyed_{number}": key for number, key in enumerate(keyed)},
        "lock": rows.lock_of(happening.subject_digest),
        "if_linked": EventOutcome.APPLIED if effect else EventOutcome.IGNORED,
        "if_unknown": EventOutcome.APPLIED if is_deletion else EventOutcome.IGNORED,
        "at": effect.at(happening) if effect else happening.at,
    }
    if is_deletion:
        values |= receipts.columns(
            happening.application,
            subject=happening.event.subject,
            keyed_digest=keyed[0],
            requested_at=happening.at,
            event_id=happening.event.event_id,
        )
    return values


def _columns(happening: Happening) -> dict[str, object]:
    """The stored event, but for its outcome."""
    event, now = happening.event, happening.now
    return {
        "application": happening.application.alias,
        "event_id": event.event_id,
        "event_digest": happening.digest,
        "event_type": event.event_type,
        "occurred_at": happening.at,
        "received_at": now,
        "subject": event.subject,
        "payload": event.content,
        "kept": Retained.EVERYTHING,
        "handled_at": None,
        "handled_by": [],
        "attempts": 0,
        "next_attempt_at": now if _has_work(event.event_type) else None,
        "error": "",
        "created_at": now,
        "updated_at": now,
    }


def _has_work(event_type: str) -> bool:
    """Whether something is left to do after the response: an erasure, or the site's handlers."""
    return event_type == EventType.DATA_DELETION_REQUESTED or bool(handlers_of(event_type))


def _tell(happening: Happening, effect: Effect | None) -> None:
    """After the commit: receivers of signals at once; handlers and re-fetches in tasks."""
    event_type = happening.event.event_type
    is_heard = bool(signals.event_received.receivers)
    # In this order: to ask Celery's settings costs a twentieth of the whole intake.
    has_work = _has_work(event_type) and background.has_broker()
    if is_heard or (has_work and handlers_of(event_type)):
        _tell_of_event(happening)
    elif has_work:
        # An erasure alone, of which the task needs no number.
        background.hand_over(TaskName.RETRY_PENDING)
    if effect is None:
        return
    announces = effect.signal is not None and bool(effect.signal.receivers)
    if announces or (effect.refetch and background.has_broker()):
        _tell_of_identity(happening, effect)


def _tell_of_event(happening: Happening) -> None:
    row = WebhookEvent.objects.filter(event_digest=happening.digest).first()
    if row is None:
        return
    signals.announce(signals.event_received, WebhookEvent, event=row)
    if row.next_attempt_at is not None:
        background.hand_over(TaskName.RUN_EVENT_HANDLERS, row.pk)


def _tell_of_identity(happening: Happening, effect: Effect) -> None:
    identity = LinkedIdentity.objects.filter(subject_digest=happening.subject_digest).first()
    if identity is None:
        return
    if effect.signal is not None:
        signals.announce(effect.signal, LinkedIdentity, identity=identity)
    if effect.refetch and identity.refetch_due_at is not None:
        background.hand_over(TaskName.REFETCH_ONE, identity.pk)


def _persistently(work: Callable[[], T]) -> T:
    """Do ``work``, again if the database found no order for it. Raises ``StorageUnavailable``.

    Whatever is wrong there: Django's report of it would show the event with all that it says.
    """
    for attempts_left in reversed(range(TRIES)):
        try:
            return work()
        except (DatabaseError, InterfaceError) as error:
            if not attempts_left:
                raise StorageUnavailable(type(error).__name__) from error
            time.sleep(random.uniform(0, LONGEST_PAUSE))  # noqa: S311  not for secrecy
            connection.close_if_unusable_or_obsolete()
    raise AssertionError
