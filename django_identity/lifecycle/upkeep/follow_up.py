"""The work after an event was acknowledged: requested erasures and the site's handlers.

A row is due until its work is done. An attempt is counted before it starts, so that a handler that
crashes its worker is not retried for ever. The next attempt starts with the next handler.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import F, QuerySet
from django.utils import timezone

from django_identity import background, conf, database
from django_identity.handlers import EventType, Handler, handlers_of
from django_identity.lifecycle.erasure import erasure
from django_identity.models import EventOutcome, Retained, WebhookEvent, digest
from django_identity.service import backoff
from django_identity.telemetry import LogEvent, log_trouble

TRIES = 8
FIRST_PAUSE = 30.0
# 8 attempts, the last one about 21 hours after the first.
GROWTH = 3.5
# The time for which one worker has an event.
LEASE = timedelta(minutes=10)
# The error of an event whose last attempt crashed the worker.
PROCESS_ENDED = "ProcessEnded"
MOST_AT_ONCE = 500
LONGEST_HISTORY = 8
LONGEST_SECONDS = 240.0


def run_handlers(event_id: int) -> bool:
    """Run the remaining handlers of one event, if it is due. Returns whether all are done.

    Each handler runs in its own transaction, which also records that the handler is done.
    """
    event = _take(event_id)
    if event is None:
        return False
    if event.event_type == EventType.DATA_DELETION_REQUESTED:
        erasure.retry_pending()
        event.refresh_from_db()
    if event.attempts > TRIES:
        return _conclude(event, [PROCESS_ENDED])
    failures = [
        failure
        for name, handler in _left_to_do(event)
        if (failure := _failure(event, name, handler))
    ]
    return _conclude(event, failures)


def retry_pending(*, stop: Callable[[], bool] = lambda: False) -> int:
    """Retry erasures, then events, oldest first. Returns the number of events that are done."""
    erasure.retry_pending(stop=stop)
    ends_at = time.monotonic() + LONGEST_SECONDS
    due = WebhookEvent.objects.filter(next_attempt_at__lte=timezone.now())
    oldest = due.order_by("next_attempt_at").values_list("pk", flat=True)[:MOST_AT_ONCE]
    done = 0
    for event_id in list(oldest):
        if stop() or time.monotonic() > ends_at:
            break
        done += run_handlers(event_id)
    return done


@dataclass(frozen=True, slots=True)
class Replayed:
    """``due``: the keys of the events whose handlers run again. The others were refused.

    ``under_way``: a worker is running their handlers now. ``emptied``: their content is deleted.
    """

    due: tuple[int, ...]
    under_way: int
    emptied: int


def replay(events: QuerySet[WebhookEvent], *, again: bool = False) -> Replayed:
    """Make the handlers of ``events`` due now and publish them.

    Only handlers that have not succeeded run; with ``again`` all handlers run. Refused are events
    whose handlers a worker is running now, because they would run twice, and events that the purge
    or an erasure has emptied. The caller may also call ``run_handlers`` with the keys: only one
    caller gets each event. The outcome so far stays in the event's history.
    """
    chosen = list(events.order_by("occurred_at").defer("payload"))
    whole = [event for event in chosen if not event.is_emptied]
    due = tuple(event.pk for event in whole if _make_due(event, again=again))
    for key in due:
        background.enqueue_on_commit(background.TaskName.RUN_EVENT_HANDLERS, key)
    return Replayed(due, under_way=len(whole) - len(due), emptied=len(chosen) - len(whole))


def results_of(keys: list[int]) -> tuple[int, int]:
    """The numbers of these events that are done, and that failed at their last attempt.

    A worker is running the handlers of the others.
    """
    events = WebhookEvent.objects.defer("payload").in_bulk(keys).values()
    return sum(bool(each.handled_at) for each in events), sum(bool(each.error) for each in events)


def _make_due(event: WebhookEvent, *, again: bool) -> bool:
    now = timezone.now()
    changes: dict[str, Any] = {"handled_by": []} if again else {}
    changes |= {"attempts": 0, "next_attempt_at": now, "handled_at": None, "updated_at": now}
    # Not an event that was emptied since it was read.
    rows = WebhookEvent.objects.filter(pk=event.pk, kept=Retained.EVERYTHING).exclude(event_id="")
    # Not an event on which a worker is working: it has a lease and no error.
    rows = rows.exclude(next_attempt_at__gt=now, error="")
    return bool(rows.update(**changes, history=_history_with(event, now)))


def _history_with(event: WebhookEvent, now: datetime) -> list[dict[str, Any]]:
    """The event's history with the outcome so far. The first outcome and the newest ones stay."""
    outcome = {
        "outcome": event.outcome,
        "error": event.error,
        "attempts": event.attempts,
        "at": (event.handled_at or now).isoformat(timespec="seconds"),
    }
    return [*event.history[:1], *event.history[1:][-LONGEST_HISTORY:], outcome]


def choose_events(
    event_ids: list[str], *, failed: bool = False, since: datetime | None = None
) -> QuerySet[WebhookEvent]:
    """The stored events with these ids (or all), that failed, or that were received since then."""
    events = WebhookEvent.objects.all()
    if event_ids:
        digests = [digest(alias, event_id) for alias in conf.aliases() for event_id in event_ids]
        events = events.filter(event_digest__in=digests)
    if failed:
        events = events.filter(outcome=EventOutcome.FAILED)
    return events.filter(received_at__gte=since) if since else events


def unknown_events(event_ids: list[str]) -> list[str]:
    """Those of ``event_ids`` that no application of this site has stored."""
    return [event_id for event_id in event_ids if not choose_events([event_id]).exists()]


def _take(event_id: int) -> WebhookEvent | None:
    """The event with a lease, if its next attempt is due."""
    now = timezone.now()
    due = WebhookEvent.objects.filter(pk=event_id, next_attempt_at__lte=now)
    taken = due.update(
        attempts=F("attempts") + 1, next_attempt_at=now + LEASE, error="", updated_at=now
    )
    return WebhookEvent.objects.get(pk=event_id) if taken else None


def _left_to_do(event: WebhookEvent) -> list[tuple[str, Handler]]:
    """The handlers that have not succeeded. Each attempt starts with the next handler."""
    registered = handlers_of(event.event_type).items()
    left = [(name, handler) for name, handler in registered if name not in event.handled_by]
    # No handler waits for ever behind one that crashes the worker.
    first = (event.attempts - 1) % len(left) if left else 0
    return left[first:] + left[:first]


def _failure(event: WebhookEvent, name: str, handler: Handler) -> str:
    """Run one handler. Returns an empty text, or the class of its exception."""
    try:
        with database.atomic():
            handler(event)
            event.handled_by = [*event.handled_by, name]
            WebhookEvent.objects.filter(pk=event.pk).update(handled_by=event.handled_by)
    except Exception as error:  # noqa: BLE001  the site's own code may raise anything
        event.handled_by = [done for done in event.handled_by if done != name]
        facts = {"row": event.pk, "handler": name, "attempt": event.attempts}
        log_trouble(LogEvent.HANDLER_FAILED, error, application=event.application, **facts)
        return type(error).__name__
    return ""


def _conclude(event: WebhookEvent, failures: list[str]) -> bool:
    now = timezone.now()
    row = WebhookEvent.objects.filter(pk=event.pk)
    if not failures:
        done = {"handled_at": now, "next_attempt_at": None, "error": "", "updated_at": now}
        if event.outcome == EventOutcome.FAILED:
            # What the event itself had changed, whatever its handlers did.
            before = (entry["outcome"] for entry in event.history)
            done["outcome"] = next(
                (each for each in before if each != EventOutcome.FAILED), EventOutcome.APPLIED
            )
        row.update(**done)
        return True
    gave_up = event.attempts >= TRIES
    seconds = FIRST_PAUSE * GROWTH ** (event.attempts - 1)
    pause = timedelta(seconds=backoff.spread(seconds * 0.75, seconds * 1.25))
    row.update(
        error=failures[0][:255], next_attempt_at=None if gave_up else now + pause, updated_at=now
    )
    if gave_up and event.outcome != EventOutcome.FAILED:
        row.update(outcome=EventOutcome.FAILED, history=_history_with(event, now))
    return False
