"""Whether upkeep runs, and why its work is late all the same."""

from collections.abc import Iterator
from datetime import datetime

from django.db.models import QuerySet
from django.utils import timezone

from django_identity import background, conf
from django_identity.conf import Application
from django_identity.lifecycle import runs
from django_identity.lifecycle.operators.doctor.finding import Finding, Level
from django_identity.lifecycle.upkeep import FAILURES, due
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


def check_upkeep() -> Iterator[Finding]:
    """Of each application: its newest run, and what is late."""
    found = [runs.run_of(site) for site in conf.applications()]
    if not background.has_broker():
        yield _without_broker(found)
    for site, run in zip(conf.applications(), found, strict=True):
        if run.begun_at < timezone.now() - runs.LATE:
            yield _not_running(site, run)
        else:
            yield _running(site, run)
            yield from _late_events(site)


def _without_broker(found: list[UpkeepRun]) -> Finding:
    """What it means that this process knows no broker: is it cron that does the work?"""
    if any(run.handed_out is not None for run in found):
        said = "this process knows none, though workers run upkeep"
        return Finding("broker", Level.WARNING, said, IMPORT_IT)
    said = "none is configured: cron has to run identity_upkeep every minute"
    return Finding("broker", Level.WARNING, said)


def _not_running(site: Application, run: UpkeepRun) -> Finding:
    """Upkeep has not begun lately. Then nothing else is the cause of what is late."""
    said = f"{site.alias}: upkeep has not run yet"
    if run.has_begun:
        said = f"{site.alias}: upkeep has not run since {_moment(run.begun_at)}"

    rows = number_of(due(site).filter(refetch_due_at__lte=_late()))
    events = number_of(_waiting(site))
    if rows or events:
        said += f"; {rows} re-fetch(es) and {events} event(s) are late"
    will_be_due = LinkedIdentity.objects.under(site).filter(refetch_due_at__gt=_late())
    is_needed = rows or events or will_be_due.exists()
    return Finding(
        "upkeep", Level.PROBLEM if is_needed else Level.WARNING, said, RUN_IT
    )


def _running(site: Application, run: UpkeepRun) -> Finding:
    """How the newest run went. If re-fetches are late: why."""
    rows = number_of(due(site).filter(refetch_due_at__lte=_late()))
    if rows:
        said = f"{site.alias}: {rows} row(s) due for over 15 minutes"
        cause, remedy = _why_late(site, run)
        return Finding("due_rows", Level.PROBLEM, f"{said}; {cause}", remedy)

    said = f"{site.alias}: upkeep ran at {_moment(run.begun_at)}"
    if run.is_paused:
        said += f"; re-fetches pause until {_moment(run.paused_until)}"
        return Finding("upkeep", Level.WARNING, said, END_THE_PAUSE)
    if run.has_served:
        said += f"; {_results(run)} in {run.seconds:.0f} s"
    return Finding("upkeep", Level.FINE, said)


def _why_late(site: Application, run: UpkeepRun) -> tuple[str, str]:
    """Why re-fetches are late though upkeep runs, and what to do."""
    if run.is_paused:
        return f"re-fetches pause until {_moment(run.paused_until)}", END_THE_PAUSE
    if run.served_at < _late():
        remedy = ENDS_EARLY if run.handed_out is None else NOBODY_TAKES_IT
        return "upkeep runs, and none was re-fetched meanwhile", remedy

    cause = f"of the newest run: {_results(run)}"
    if run.results.keys() <= FAILURES:
        return cause, THEY_FAIL
    is_limit = sum(run.results.values()) >= site.refetches_per_minute
    remedy = RAISE_THE_RATE if is_limit else ADD_WORKERS
    return cause, remedy.format(site.refetches_per_minute)


def _late_events(site: Application) -> Iterator[Finding]:
    if events := number_of(_waiting(site)):
        said = f"{site.alias}: {events} event(s) wait for their handlers for over 15 minutes"
        yield Finding("handlers", Level.PROBLEM, said, TOO_SLOW)


def _waiting(site: Application) -> QuerySet[WebhookEvent]:
    return WebhookEvent.objects.filter(
        application=site.alias, next_attempt_at__lte=_late()
    )


def _results(run: UpkeepRun) -> str:
    return ", ".join(
        f"{result}: {count}" for result, count in sorted(run.results.items())
    )


def _late() -> datetime:
    return timezone.now() - runs.LATE


def _moment(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M} UTC"
