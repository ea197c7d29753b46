"""The work after an event was acknowledged: requested erasures and the site's handlers.

A row is due until its work is done. An attempt is counted before it starts, so that a handler that
crashes its worker is not retried for ever.
"""

from datetime import datetime, timedelta
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone

from django_identity import database
from django_identity.handlers import KNOWN_TYPES, EventType, Handler, handlers_of
from django_identity.lifecycle import erasure, events
from django_identity.logs import LogEvent, log_trouble
from django_identity.models import EventOutcome, WebhookEvent
from django_identity.service import backoff

# The last attempt is 10 to 21 hours after the first.
TRIES = 12


def run_handlers(event_id: int) -> bool:
    """Run the remaining handlers of one event, if it is due. Returns whether all are done.

    Each handler runs in its own transaction, which also records that the handler is done.
    """
    event: WebhookEvent | None = erasure.take(WebhookEvent.objects.all(), event_id, error="")
    if event is None:
        return False
    if not event.outcome:
        # The process that stored it died before it applied it.
        event, _had_outcome = events.apply(event)
    if event.event_type == EventType.DATA_DELETION_REQUESTED:
        erasure.retry_pending()
        event.refresh_from_db()
    if event.attempts > TRIES:
        return _conclude(event, "ProcessEnded")  # The last attempt crashed its worker.
    failures = [
        _failure(event, name, handler)
        for name, handler in handlers_of(event.event_type).items()
        if name not in event.handled_by
    ]
    return _conclude(event, next(filter(None, failures), ""))


def retry_pending(*, stop: erasure.Stop = lambda: False) -> int:
    """Retry all events that are due. Returns the number that are done."""
    return erasure.attempt_due(WebhookEvent.objects.all(), run_handlers, stop=stop)


def replay(chosen: QuerySet[WebhookEvent], *, again: bool = False) -> int:
    """Make the handlers of ``chosen`` due that have not succeeded, or with ``again`` all.

    Returns the number of events. Left out are those whose content is deleted, and those that a
    worker has now: their handlers would run twice. Upkeep runs the others within a minute.
    """
    now = timezone.now()
    changes: dict[str, Any] = {"handled_by": []} if again else {}
    # What a worker has is due later, and has no error.
    rows = chosen.exclude(event_id="").exclude(next_attempt_at__gt=now, error="")
    return rows.update(attempts=0, next_attempt_at=now, handled_at=None, **changes)


def choose_events(
    event_ids: list[str], *, failed: bool = False, since: datetime | None = None
) -> QuerySet[WebhookEvent]:
    """The stored events with these ids (or all), that failed, or that were received since then."""
    chosen = WebhookEvent.objects.all()
    if event_ids:
        chosen = chosen.filter(event_id__in=event_ids)
    if failed:
        chosen = chosen.filter(outcome=EventOutcome.FAILED)
    return chosen.filter(received_at__gte=since) if since else chosen


def _failure(event: WebhookEvent, name: str, handler: Handler) -> str:
    """Run one handler. Returns an empty text, or the class of its exception."""
    done = [*event.handled_by, name]
    try:
        with database.atomic():
            handler(event)
            WebhookEvent.objects.filter(pk=event.pk).update(handled_by=done)
    except Exception as error:  # noqa: BLE001  the site's own code may raise anything
        facts = {"row": event.pk, "handler": name, "attempt": event.attempts}
        log_trouble(LogEvent.HANDLER_FAILED, error, application=event.application, **facts)
        return type(error).__name__
    event.handled_by = done
    return ""


def _conclude(event: WebhookEvent, failure: str) -> bool:
    """Store how the attempt ended. Returns whether all handlers are done."""
    now = timezone.now()
    columns: dict[str, Any] = {"error": failure[:255], "next_attempt_at": None}
    if not failure:
        columns["handled_at"] = now
        if event.outcome == EventOutcome.FAILED:
            is_known = event.event_type in KNOWN_TYPES
            columns["outcome"] = EventOutcome.APPLIED if is_known else EventOutcome.IGNORED
    elif event.attempts >= TRIES:
        columns["outcome"] = EventOutcome.FAILED
    else:
        columns["next_attempt_at"] = now + timedelta(seconds=backoff.pause(event.attempts))
    WebhookEvent.objects.filter(pk=event.pk).update(**columns)
    return not failure
