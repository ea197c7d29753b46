"""The work after an event was acknowledged: requested erasures and the site's handlers.

A row is due until its work is done: see ``attempts``. A handler that raises is tried again: 12
times at most, with the pauses of ``backoff``. A run works on the content that it has read. If the
person is erased meanwhile, the run ends silently, and the row keeps the date that the erasure
wrote.
"""

from collections import deque
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone

from django_identity import database
from django_identity.event_types import KINDS, Effect, kind_of
from django_identity.handlers import Handler, handlers_of
from django_identity.lifecycle.ground import attempts
from django_identity.lifecycle.ground.attempts import Stop
from django_identity.lifecycle.leaving import pending_erasures
from django_identity.lifecycle.said import events
from django_identity.logs import LogEvent, log_trouble
from django_identity.models import EventOutcome, WebhookEvent
from django_identity.models.choices import ERROR_LENGTH

# The last attempt is 10 to 21 hours after the first.
TRIES = 12


def run_handlers(event_id: int) -> bool:
    """Run the remaining handlers of one event, if it is due. Returns whether all are done.

    Each handler runs in its own transaction, together with the record of its success. Trouble with
    one event, such as a lock time-out, is a failed attempt of this event alone.
    """
    event: WebhookEvent | None = attempts.take_row(WebhookEvent.objects.all(), event_id)
    if event is None:
        return False
    try:
        return _attempt(event)
    except Exception as error:  # noqa: BLE001  one event must not stop the others
        log_trouble(
            LogEvent.EVENT_FAILED,
            error,
            row=event.pk,
            attempt=event.attempts,
        )
        # Raises again if the database is away.
        return _conclude(event, type(error).__name__)


def retry_pending(*, stop: Stop = lambda: False) -> int:
    """Retry all events that are due. Returns the number that are done."""
    return attempts.attempt_due(WebhookEvent.objects.all(), run_handlers, stop=stop)


def replay(chosen: QuerySet[WebhookEvent], *, again: bool = False) -> int:
    """Make the open handlers of ``chosen`` due, or with ``again`` all.

    Returns the number of events. Emptied events are left out, and those in a worker's hands: their
    handlers would run twice. Upkeep runs the others within a minute.
    """
    changes: dict[str, Any] = {}
    if again:
        changes["handled_by"] = []
    rows = chosen.exclude(event_id="").exclude(attempts.taken())
    now = timezone.now()
    return rows.update(attempts=0, next_attempt_at=now, handled_at=None, **changes)


def choose_events(
    event_ids: list[str],
    *,
    failed: bool = False,
    since: datetime | None = None,
) -> QuerySet[WebhookEvent]:
    """The stored events with these ids (or all), failed or received since then."""
    chosen = WebhookEvent.objects.all()
    if event_ids:
        chosen = chosen.filter(event_id__in=event_ids)
    if failed:
        chosen = chosen.filter(outcome=EventOutcome.FAILED)
    if since:
        chosen = chosen.filter(received_at__gte=since)
    return chosen


def _attempt(event: WebhookEvent) -> bool:
    """Attempt an event that was taken. Returns whether all is done."""
    if not event.outcome:
        # The process that stored it died before it applied it.
        event = events.apply(event).row
        # Each attempt before this one was to apply it.
        event.attempts = 1
        event.save(update_fields=["attempts"])
    if kind_of(event.event_type).effect is Effect.ERASE:
        pending_erasures.retry()
    elif not event.event_id:
        # It is about nobody.
        _as_read(event).update(next_attempt_at=None)
        return False
    if event.attempts > TRIES:
        return _conclude(event, "ProcessEnded")  # The last attempt crashed its worker.

    failure = ""
    for name, handler in _remaining(event).items():
        if not _as_read(event).exists():
            return False
        failure = _failure(event, name, handler) or failure
    return _conclude(event, failure)


def _remaining(event: WebhookEvent) -> Mapping[str, Handler]:
    """The open handlers, each time from another one on.

    So the others get their turn behind a handler that crashes its worker.
    """
    remaining = dict(handlers_of(event.event_type))
    for name in event.handled_by:
        remaining.pop(name, None)
    names = deque(remaining)
    names.rotate(1 - event.attempts)
    return {name: remaining[name] for name in names}


def _failure(event: WebhookEvent, name: str, handler: Handler) -> str:
    """Run one handler. Returns an empty text, or the class of its exception."""
    done = [*event.handled_by, name]
    try:
        with database.atomic():
            handler(event)
            WebhookEvent.objects.filter(pk=event.pk).update(handled_by=done)
    except Exception as error:  # noqa: BLE001  the site's own code may raise anything
        log_trouble(
            LogEvent.HANDLER_FAILED,
            error,
            row=event.pk,
            handler=name,
            attempt=event.attempts,
        )
        return type(error).__name__
    event.handled_by = done
    return ""


def _conclude(event: WebhookEvent, failure: str) -> bool:
    """Store how the attempt ended. Returns whether all handlers are done."""
    columns: dict[str, Any] = {
        "error": failure[:ERROR_LENGTH],
        "next_attempt_at": None,
    }
    if not failure:
        columns["handled_at"] = timezone.now()
        if event.outcome == EventOutcome.FAILED:
            columns["outcome"] = EventOutcome.IGNORED
            if event.event_type in KINDS:
                columns["outcome"] = EventOutcome.APPLIED
    elif event.outcome and event.attempts >= TRIES:
        columns["outcome"] = EventOutcome.FAILED
    else:
        # An event that could not be applied is never given up: it may be a revocation.
        columns["next_attempt_at"] = attempts.next_attempt(event.attempts)
    _as_read(event).update(**columns)
    return not failure


def _as_read(event: WebhookEvent) -> QuerySet[WebhookEvent]:
    """The row, if it has the content that the run works with.

    An erasure or a disconnection empties it, and ends its handlers and attempts. An erasure's own
    event loses its content.
    """
    row = WebhookEvent.objects.filter(pk=event.pk)
    if kind_of(event.event_type).effect is Effect.ERASE:
        return row
    return row.filter(subject=event.subject, event_id=event.event_id)
