"""The functions for tasks and commands: publish due identities and jobs, and do them.

The database rows tell what is due, not the broker, so lost, late or repeated messages are safe. The
generators yield the result of each re-fetch. A caller may stop at any point; leases of rows that
were not started are then released.
"""

import logging
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db import InterfaceError, OperationalError
from django.db.models import Case, Q, When
from django.utils import timezone

from django_identity import background, conf, database
from django_identity.conf import Application
from django_identity.exceptions import IdentityError
from django_identity.lifecycle.erasure.retention import Purged, purge
from django_identity.lifecycle.events import tallies
from django_identity.lifecycle.upkeep import claims, due_rows, follow_up, tokens
from django_identity.lifecycle.upkeep.claims import Refetched
from django_identity.lifecycle.upkeep.threads import work_off
from django_identity.models import Job, JobRun, LinkedIdentity, TallyName, disabled_account, under
from django_identity.service import budget
from django_identity.telemetry import Operation, measured

# Small, so that a lost worker delays few rows, and urgent tasks wait for few.
CHUNK = 20
# A refresh, the claims, and the KYC level once a day.
CALLS_EACH = 3
# The limit of published rows without a rate limit.
MOST_IN_HAND = 100_000
# A sweep hands out as many rows as workers finish in this time.
HANDED_OUT_AHEAD = 120.0
MOST_GRANTS = 1000
# Well below the time limit of the tasks, which kills the worker.
LONGEST_WORK = 240.0
COUNTED = {Refetched.STORED: TallyName.REFETCHED, Refetched.FAILED: TallyName.REFETCH_FAILED}
TASK_OF = {Job.KEEP_ALIVE: background.TaskName.KEEP_ALIVE, Job.PURGE: background.TaskName.PURGE}
DISABLED_PAUSE = timedelta(days=1)
UNEXPECTED = "unexpected_error"
EVERY = timedelta(hours=1)
#: The jobs that a sweep publishes when they are due.
HOURLY = (Job.KEEP_ALIVE, Job.PURGE)
# A job that was published and not done is published again after this time.
ASKED_AGAIN_AFTER = timedelta(minutes=10)

logger = logging.getLogger("django_identity.upkeep")

Tally = Counter[Refetched]


@dataclass(slots=True)
class Upkept:
    """What was done. ``purged`` is None if no purge was due."""

    events: int = 0
    kept_alive: int = 0
    purged: Purged | None = None
    refetched: Tally = field(default_factory=Counter)


def run_all(*, stop: Callable[[], bool] = lambda: False) -> Upkept:
    """Do what is due: erasures, event handlers, the hourly jobs, re-fetches. The urgent work first.

    No re-fetch begins after four minutes, or when ``stop`` returns true. The rest stays due.
    """
    ends_at = time.monotonic() + LONGEST_WORK
    done = Upkept()
    with record_run(Job.RETRY_PENDING):
        done.events = follow_up.retry_pending(stop=stop)
    if stop():
        return done
    for job in take_due_jobs():
        with record_run(job):
            if job is Job.KEEP_ALIVE:
                done.kept_alive = keep_alive(stop=stop)
            else:
                done.purged = purge()
    _mark_vanished_keys()
    with record_run(Job.SWEEP):
        done.refetched = _count_until(ends_at, stop, refetch_due())
    return done


def sweep() -> int:
    """Publish all due identities in chunks. Returns their number.

    Several sweeps may run at once. If publishing fails, the leases are released.
    """
    handed_out = 0
    with measured(Operation.SWEEP) as measurement:
        _mark_vanished_keys()
        for page in _take_due():
            for start in range(0, len(page), CHUNK):
                chunk = page[start : start + CHUNK]
                if not _publish(background.TaskName.REFETCH_CHUNK, chunk):
                    due_rows.let_go(page[start:])
                    measurement.outcome = "broker_unavailable"
                    return handed_out
                handed_out += len(chunk)
    return handed_out


def _mark_vanished_keys() -> None:
    """Make credentials due whose signing key the service has withdrawn."""
    for application in _reachable_applications():
        due_rows.mark_vanished_keys(application)


def publish_due_jobs() -> None:
    """Publish the hourly jobs that are due, whatever beat knows of them."""
    for job in take_due_jobs():
        _publish(TASK_OF[job])


def _publish(task: background.TaskName, *arguments: object) -> bool:
    """Whether the broker took the message. What it did not take, a later sweep publishes."""
    try:
        background.publish_now(task, *arguments)
    except Exception as error:  # noqa: BLE001  any transport's own errors
        logger.warning("the broker takes nothing (%s)", type(error).__name__)
        return False
    return True


def refetch_chunk(ids: Sequence[int], *, stop: Callable[[], bool] = lambda: False) -> Tally:
    """Re-fetch those of ``ids`` that are still due and free.

    Stops when the service takes no calls, the time is over, or ``stop`` returns true (the worker
    shuts down). The remaining rows stay due.
    """
    return _count_until(time.monotonic() + LONGEST_WORK, stop, _refetch_each(ids))


def _count_until(ends_at: float, stop: Callable[[], bool], outcomes: Generator[Refetched]) -> Tally:
    """Count the outcomes until that time, or until ``stop`` returns true. Then close them."""
    tally: Tally = Counter()
    with closing(outcomes):
        for outcome in outcomes:
            tally[outcome] += 1
            if stop() or time.monotonic() >= ends_at:
                break
    return tally


def refetch_one(identity_id: int) -> Refetched | None:
    """Re-fetch one identity. Returns None if it is not due or another worker has it."""
    return next(_refetch_each([identity_id]), None)


def refetch_due(*, most: int | None = None) -> Generator[Refetched]:
    """Re-fetch in this process until nothing is due."""
    left = sys.maxsize if most is None else most
    for application in _reachable_applications():
        outcome = None
        for page in due_rows.take(application, most=left, page=CHUNK):
            for outcome in _refetch_each(page):
                left -= 1
                yield outcome
            if outcome is Refetched.NOT_NOW:
                # The service of the next application may be up.
                break


def refetch_these(ids: Iterable[int]) -> Generator[Refetched]:
    """Re-fetch these identities, due or not."""
    given, now = list(ids), timezone.now()
    not_due = Q(refetch_due_at=None) | Q(refetch_due_at__gt=now)
    LinkedIdentity.objects.filter(not_due, pk__in=given).update(refetch_due_at=now)
    yield from _refetch_each(given)


def count_due() -> int:
    """The number of due identities."""
    now = timezone.now()
    return sum(due_rows.due(site, now=now).count() for site in conf.applications())


def takes_no_calls() -> bool:
    """Whether an application has due identities and its service is down."""
    now = timezone.now()
    away = [site for site in conf.applications() if not budget.may_try(site)]
    return any(due_rows.due(application, now=now).exists() for application in away)


def keep_alive(*, stop: Callable[[], bool] = lambda: False) -> int:
    """Refresh unused grants that expire within five days, the first ones. Returns their number."""
    ends_at = time.monotonic() + LONGEST_WORK
    ours = under(_reachable_applications(), path="identity__")
    grants = tokens.expiring_unused().filter(ours).select_related("identity")
    refreshed = 0
    for grant in grants.order_by("refresh_expires_at")[:MOST_GRANTS]:
        if stop() or time.monotonic() >= ends_at:
            break
        try:
            refreshed += tokens.keep_alive(grant.identity)
        except IdentityError as error:
            logger.info("a grant was not kept alive (%s)", error.code)
    return refreshed


def _reachable_applications() -> list[Application]:
    """The applications whose service is up, as far as this site knows."""
    return [site for site in conf.applications() if budget.may_try(site)]


def _take_due() -> Iterator[list[int]]:
    """Pages of due rows, only as many as the rate limit allows before the leases end."""
    for application in _reachable_applications():
        if budget.is_away(application):
            # One row is enough to probe a service that was down.
            yield from due_rows.take(application, most=1, page=1)
            continue
        in_hand = MOST_IN_HAND
        if application.rate_limit is not None:
            calls, seconds = application.rate_limit
            in_hand = max(1, int(calls / seconds * HANDED_OUT_AHEAD / CALLS_EACH))
        yield from due_rows.take(application, in_hand=in_hand)


def _refetch_each(ids: Sequence[int]) -> Generator[Refetched]:
    """Re-fetch the due and free rows among ``ids``, until the service takes no calls."""
    counts: Counter[tuple[str, Refetched]] = Counter()
    left = deque(_due_among(ids))
    # Threads wait for the service at the same time. SQLite has one writer at a time anyway.
    threads = 1
    if left and database.connection().vendor != "sqlite":
        threads = conf.application(left[0].application).refetch_threads
    try:
        with closing(work_off(left, _refetch, threads=threads)) as results:
            for identity, outcome in results:
                if outcome is not None:
                    counts[identity.application, outcome] += 1
                    yield outcome
                if outcome is Refetched.NOT_NOW:
                    return
    finally:
        if left:
            due_rows.let_go([identity.pk for identity in left])
        # Once for the whole chunk, because all workers update one row a day.
        for (alias, outcome), count in counts.items():
            if outcome in COUNTED:
                tallies.add(COUNTED[outcome], application=conf.application(alias), count=count)


def _due_among(ids: Sequence[int]) -> list[LinkedIdentity]:
    """The due rows of active accounts, under the applications that are set up."""
    now, ours = timezone.now(), under(conf.applications())
    rows = LinkedIdentity.objects.filter(ours, pk__in=ids, refetch_due_at__lte=now)
    is_disabled = Case(When(disabled_account(), then=True), default=False)
    found = rows.annotate(is_disabled=is_disabled).defer("credential")
    if len(ids) <= CHUNK:
        # With a longer list, grants would be old when their turn comes.
        found = found.select_related("grant")
    due: list[Any] = list(found.order_by("refetch_due_at", "pk"))
    if disabled := [row.pk for row in due if row.is_disabled]:
        # A disabled account may be enabled again without notice.
        rows.filter(pk__in=disabled).update(
            refetch_due_at=now + DISABLED_PAUSE, refetch_taken_until=None, refetch_started=False
        )
    return [row for row in due if not row.is_disabled]


def _refetch(identity: LinkedIdentity) -> Refetched | None:
    """Re-fetch a row that was just read. Returns None if another worker has it."""
    if not due_rows.start(identity):
        return None
    try:
        return claims.refetch(identity, grant=getattr(identity, "grant", None))
    except (OperationalError, InterfaceError):
        # Nothing can be written now. The lease expires by itself.
        raise
    except Exception as error:  # noqa: BLE001  one identity must not stop the others
        # Only the class: the message may quote personal data.
        logger.error("re-fetching identity #%s: %s", identity.pk, type(error).__name__)
        claims.note_failure(identity, code=UNEXPECTED)
        return Refetched.FAILED


@contextmanager
def record_run(job: Job) -> Iterator[None]:
    """Record that ``job`` is done, unless the body raises."""
    yield
    JobRun.objects.update_or_create(job=job, defaults={"done_at": timezone.now()})


def take_due_jobs() -> list[Job]:
    """The hourly jobs that are due. Only one of several callers gets each."""
    now = timezone.now()
    due = []
    for job in HOURLY:
        JobRun.objects.get_or_create(job=job)
        waiting = JobRun.objects.filter(
            job=job, done_at__lt=now - EVERY, asked_at__lt=now - ASKED_AGAIN_AFTER
        )
        if waiting.update(asked_at=now):
            due.append(job)
    return due


def last_done() -> Mapping[Job, datetime]:
    """When each job was last done. A job that never was is missing."""
    runs = JobRun.objects.exclude(done_at=JobRun._meta.get_field("done_at").default)
    return {Job(run.job): run.done_at for run in runs}
