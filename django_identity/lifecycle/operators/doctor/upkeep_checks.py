"""Whether upkeep runs, and why its work is late all the same."""

from datetime import datetime

from django.utils import timezone

from django_identity import background, conf
from django_identity.lifecycle import due, runs
from django_identity.lifecycle.operators.doctor.finding import (
    Diagnosis,
    Finding,
    fine,
    problem,
    warning,
)
from django_identity.lifecycle.operators.doctor.service_checks import Why
from django_identity.lifecycle.upkeep import FAILURES
from django_identity.models import LinkedIdentity, UpkeepRun, WebhookEvent
from django_identity.models.querysets import number_of

RUN_IT = (
    "Run a worker with beat, or identity_upkeep every minute. If they run: the worker must know the"
    " task django_identity.upkeep (autodiscover_tasks) and listen to its queue (-Q,"
    " CELERY_TASK_ROUTES)."
)
IMPORT_IT = (
    "Import the site's Celery app in the __init__.py of its package, so that web processes find the"
    " broker. Until then an event waits for upkeep, up to a minute."
)
END_THE_PAUSE = (
    "The service asked for it (429), or an operator did. Lower REFETCHES_PER_MINUTE, or ask the"
    " service for more calls a minute. identity_refetch --pause 0 ends the pause."
)
NOBODY_TAKES_IT = (
    "Its messages expire, because no worker takes them. A worker must know the task"
    " django_identity.refetch_due (autodiscover_tasks) and listen to its queue (-Q,"
    " CELERY_TASK_ROUTES)."
)
ENDS_EARLY = (
    "identity_upkeep ends before its re-fetches: see what it prints, and for how long."
)
THEY_FAIL = "The findings about the service, the keys and failing re-fetches say why."
RAISE_THE_RATE = (
    "Raise REFETCHES_PER_MINUTE, which is {}, if the service allows more calls."
)
ADD_WORKERS = (
    "Add threads or workers: REFETCHES_PER_MINUTE, which is {}, is not the limit."
)
TOO_SLOW = (
    "A run attempts 500 events, for a minute: make the handlers shorter, or run upkeep in more"
    " workers. The log lines identity.event.handler_failed name those that fail."
)


def check_upkeep() -> Diagnosis:
    """The newest run, and what is late."""
    run = runs.newest()
    if not background.has_broker():
        yield _without_broker(run)
    if runs.has_begun_lately(run):
        yield _running(run)
        yield from _late_events()
    else:
        yield _not_running(run)


def _without_broker(run: UpkeepRun) -> Finding:
    """What it means that this process knows no broker: is it cron that does the work?"""
    if run.handed_out is not None:
        message = "this process knows none, though workers run upkeep"
        return warning("broker", message, IMPORT_IT)
    message = "none is configured: cron has to run identity_upkeep every minute"
    return warning("broker", message)


def _not_running(run: UpkeepRun) -> Finding:
    """Upkeep has not begun lately. Then nothing else is the cause of what is late."""
    message = "upkeep has not run yet"
    if run.has_begun:
        message = f"upkeep has not run since {_moment(run.begun_at)}"
    if run.begun_at > timezone.now():
        message += ", by a clock that was ahead"

    rows = _late_rows()
    events = _late_event_count()
    if rows or events:
        message += f"; {rows} re-fetch(es) and {events} event(s) are late"
        return problem("upkeep", message, RUN_IT)
    # Nothing is late yet, but without upkeep it will be.
    if LinkedIdentity.objects.served().filter(refetch_due_at__gt=runs.late()).exists():
        return problem("upkeep", message, RUN_IT)
    return warning("upkeep", message, RUN_IT)


def _running(run: UpkeepRun) -> Finding:
    """How the newest run went. If re-fetches are late: why."""
    rows = _late_rows()
    if rows:
        why = _why_late(run)
        message = f"{rows} row(s) due for over 15 minutes; {why.cause}"
        return problem("due_rows", message, why.remedy)

    message = f"upkeep ran at {_moment(run.begun_at)}"
    if run.is_paused:
        return warning("upkeep", f"{message}; {_pause(run)}", END_THE_PAUSE)
    if run.has_served:
        message += f"; {_results(run)} in {run.seconds:.0f} s"
    return fine("upkeep", message)


def _why_late(run: UpkeepRun) -> Why:
    """Why re-fetches are late though upkeep runs, and what to do."""
    if run.is_paused:
        return Why(_pause(run), END_THE_PAUSE)
    if run.served_at < runs.late():
        remedy = ENDS_EARLY if run.handed_out is None else NOBODY_TAKES_IT
        return Why("upkeep runs, and none was re-fetched meanwhile", remedy)

    cause = f"of the newest run: {_results(run)}"
    if run.results.keys() <= FAILURES:
        return Why(cause, THEY_FAIL)
    rate = conf.application().refetches_per_minute
    is_limit = sum(run.results.values()) >= rate
    remedy = RAISE_THE_RATE if is_limit else ADD_WORKERS
    return Why(cause, remedy.format(rate))


def _late_events() -> Diagnosis:
    events = _late_event_count()
    if events:
        message = f"{events} event(s) wait for their handlers for over 15 minutes"
        yield problem("handlers", message, TOO_SLOW)


def _late_rows() -> int:
    return number_of(due.rows().filter(refetch_due_at__lte=runs.late()))


def _late_event_count() -> int:
    events = WebhookEvent.objects.all()
    return number_of(events.filter(next_attempt_at__lte=runs.late()))


def _results(run: UpkeepRun) -> str:
    return ", ".join(
        f"{result}: {count}" for result, count in sorted(run.results.items())
    )


def _pause(run: UpkeepRun) -> str:
    return f"re-fetches pause until {_moment(run.paused_until)}"


def _moment(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M} UTC"
