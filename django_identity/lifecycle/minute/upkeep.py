"""What is done each minute, by workers or by cron: urgent work, old data, and re-fetches.

``run`` does it here; ``run_with_workers`` hands the re-fetches to workers, and ``refetch_due`` does
them. The database tells what is due, so lost, late or repeated messages are safe: see ``due``.
"""

import time
from collections import Counter
from collections.abc import Generator, Iterable
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any, NamedTuple

from django.db.models import QuerySet
from django.utils import timezone

from django_identity import background, conf, database, exceptions
from django_identity.lifecycle.ground import retention, runs
from django_identity.lifecycle.ground.attempts import Stop
from django_identity.lifecycle.leaving import pending_erasures
from django_identity.lifecycle.minute import follow_up, refetch
from django_identity.lifecycle.said import due
from django_identity.logs import LogEvent, log_failure, log_trouble, models_in_the_way
from django_identity.models import (
    AuthorizationRequest,
    ConnectRedemption,
    Consent,
    LinkedIdentity,
    LinkedVia,
    SubjectLock,
)

LONGEST_RUN = 60.0
MOST_OUTAGES = 2
MOST_UNREADABLE = 2
SHORTEST_PAUSE = 1.0  # After a 429 that names no time.
PURGED_AT_ONCE = 1000
HELD_FOR = timedelta(days=1)


class Refetched(StrEnum):
    """The result of a re-fetch."""

    STORED = "stored"
    #: The claims are stored. The level could not be read, and is retried after a growing pause.
    LEVEL_UNREAD = "stored, but the level could not be read"
    #: It is retried after a growing pause.
    FAILED = "failed"
    #: The same, and the service may be down. The second one in a row ends a run.
    OUTAGE = "no answer"
    #: The same, and a key may be missing from the settings.
    UNREADABLE = "tokens that no key opens"
    #: The service takes no calls now, or rejects the application. It ends a run.
    NOT_NOW = "not now"
    #: A revocation, an event or a sign-in came first. Nothing of the answer was stored.
    OVERTAKEN = "overtaken"
    #: The grant is gone, or the account is disabled. A sign-in makes it due again.
    REAUTHORIZATION_NEEDED = "needs reauthorization"


#: After these alone a run has done nothing.
FAILURES = frozenset(
    {Refetched.FAILED, Refetched.OUTAGE, Refetched.UNREADABLE, Refetched.NOT_NOW},
)
#: These prove that a key of the settings opens what is stored.
OPENED = frozenset({Refetched.STORED, Refetched.LEVEL_UNREAD, Refetched.OVERTAKEN})


@dataclass(slots=True)
class Course:
    """The course of a run so far: it tells where the run ends. Outages are counted in a row."""

    is_turned_away: bool = False
    outages: int = 0
    unreadable: int = 0
    has_opened: bool = False

    def note_outcome(self, outcome: Refetched) -> None:
        """Take the newest outcome into account."""
        if outcome is Refetched.NOT_NOW:
            self.is_turned_away = True
        if outcome is Refetched.OUTAGE:
            self.outages += 1
        else:
            self.outages = 0
        if outcome in OPENED:
            self.has_opened = True
            self.unreadable = 0
        if outcome is Refetched.UNREADABLE:
            self.unreadable += 1

    @property
    def is_over(self) -> bool:
        """Whether the run ends here.

        Unreadable tokens end it at once if they come first: then the key is missing for everybody,
        and each further row would only fail. A run survives one corrupt row among others.
        """
        if self.is_turned_away or self.outages == MOST_OUTAGES:
            return True
        if self.unreadable and not self.has_opened:
            return True
        return self.unreadable == MOST_UNREADABLE


class Tended(NamedTuple):
    """How many erasures, and handlers of how many events, are done."""

    erasures: int
    events: int


# A minute


def run(*, stop: Stop = lambda: False) -> tuple[Tended, Counter[Refetched]]:
    """Do all due upkeep in this process: for cron, in place of workers.

    Returns what is done, and the results of re-fetches.
    """
    runs.begin()
    tended = tend(stop=stop)
    tally = Counter[Refetched]()
    if not stop():
        tally = refetch_for_a_minute(stop=stop)
    return tended, tally


def run_with_workers(*, stop: Stop = lambda: False) -> None:
    """Do the urgent work and the old data here, and publish messages for the re-fetches.

    One for each 20 due rows, up to ``REFETCHES_PER_MINUTE``.
    """
    runs.begin()
    tend(stop=stop)
    left = 0
    if not runs.is_paused():
        left = due.rows()[: conf.application().refetches_per_minute].count()

    messages: list[tuple[int]] = []
    while left > 0:
        rows = min(left, due.ROWS_AT_ONCE)
        messages.append((rows,))
        left -= rows
    background.publish(background.TaskName.REFETCH_DUE, messages)


def tend(*, stop: Stop = lambda: False) -> Tended:
    """Erasures, then events with their handlers, then old data."""
    erasures = pending_erasures.retry(stop=stop)
    events = 0
    if not stop():
        events = follow_up.retry_pending(stop=stop)
    if not stop():
        purge()
    return Tended(erasures, events)


def refetch_for_a_minute(
    most: int | None = None,
    *,
    only: int | None = None,
    stop: Stop = lambda: False,
) -> Counter[Refetched]:
    """Re-fetch ``most`` due identities, or ``REFETCHES_PER_MINUTE``. None begins after a minute.

    ``only``: see ``due.take``.
    """
    most = most or conf.application().refetches_per_minute
    tally = Counter[Refetched]()
    ends_at = time.monotonic() + LONGEST_RUN
    for outcome in refetch_due(most=most, only=only):
        tally[outcome] += 1
        if stop() or time.monotonic() >= ends_at:
            break
    return tally


def refetch_due(*, most: int, only: int | None = None) -> Generator[Refetched]:
    """Re-fetch at most ``most`` due identities, and yield each result. A caller may stop early.

    It ends at a 429, a rejected client, the second outage in a row, and unreadable tokens
    (``Course``). It raises the database's own error if the database is away.
    """
    course = Course()
    while most > 0 and not runs.is_paused():
        rows = due.take(min(most, due.ROWS_AT_ONCE), only=only)
        if not rows:
            return
        most -= len(rows)
        for row in rows:
            outcome = _refetch(row)
            yield outcome
            course.note_outcome(outcome)
            if course.is_over:
                return


def refetch_these(ids: Iterable[int]) -> Generator[Refetched]:
    """Re-fetch these identities, due or not, one after another. Those without a grant are left."""
    rows = LinkedIdentity.objects.served()
    rows = rows.filter(consent=Consent.GRANTED, linked_via=LinkedVia.OAUTH)
    for pk in ids:
        identity = rows.filter(pk=pk).first()
        if identity is not None:
            yield _refetch(identity)


def is_held_up() -> bool:
    """Whether identities are due, and re-fetches pause."""
    return runs.is_paused() and due.rows().exists()


# One row


def _refetch(identity: LinkedIdentity) -> Refetched:
    """Re-fetch a row that was just read. Its own trouble does not stop the others."""
    try:
        fetched = refetch.fetch(identity)
    except exceptions.ReauthorizationNeeded as error:
        due.give_up(identity, error.code)
        return Refetched.REAUTHORIZATION_NEEDED
    except exceptions.IdentityError as error:
        due.retry(identity, error.code)
        return _outcome_of(identity, error)
    except Exception as error:  # one identity must not stop the others
        if database.is_broken(error):
            raise  # Nothing can be written now.
        log_trouble(LogEvent.REFETCH_FAILED, error, row=identity.pk)
        due.retry(identity, "unexpected_error")
        return Refetched.FAILED

    if not fetched.is_stored:
        return Refetched.OVERTAKEN
    if fetched.failure is None:
        return Refetched.STORED
    due.retry(identity, fetched.failure.code)
    log_failure(LogEvent.REFETCH_FAILED, fetched.failure)
    return Refetched.LEVEL_UNREAD


def _outcome_of(identity: LinkedIdentity, error: exceptions.IdentityError) -> Refetched:
    """Log ``error``, and return what it means for the run."""
    if isinstance(error, exceptions.SealedValueUnreadable):
        return Refetched.UNREADABLE  # It was logged where it was met.
    if isinstance(error, exceptions.ClientRejected):
        log_trouble(LogEvent.REFETCH_FAILED, error)
        return Refetched.NOT_NOW

    log_failure(LogEvent.REFETCH_FAILED, error)
    if isinstance(error, exceptions.RateLimited):
        seconds = max(error.pause, SHORTEST_PAUSE)
        until = timezone.now() + timedelta(seconds=seconds)
        if error.may_have_arrived:
            runs.pause(until=until)
        return Refetched.NOT_NOW
    is_pending = isinstance(error, exceptions.RefreshPending)
    if is_pending or not isinstance(error, exceptions.ServiceUnavailable):
        return Refetched.FAILED
    # Of two people with such an answer everybody else would wait.
    if error.endpoint == "token" and 400 <= error.status < 500:
        return Refetched.FAILED
    return Refetched.OUTAGE


# Old data


def purge() -> None:
    """Delete old rows: events after ``EVENT_DAYS``, locks and sign-ins a day after their end.

    Redemptions are deleted ten minutes after their code was entered, also by ``connect``.
    """
    now = timezone.now()
    _delete(retention.old())
    long_ago = now - HELD_FOR
    locks = SubjectLock.objects.filter(held_at__lt=long_ago)
    _delete(locks.order_by("held_at"))
    # Who comes back too late starts again with the page that they wanted.
    sign_ins = AuthorizationRequest.objects.filter(expires_at__lt=long_ago)
    _delete(sign_ins.order_by("expires_at"))
    redemptions = ConnectRedemption.objects.filter(expires_at__lt=now)
    _delete(redemptions.order_by("expires_at"))


def _delete(rows: QuerySet[Any]) -> None:
    """Delete them in batches. Re-fetches go on if the site protects some rows."""
    model = rows.model
    try:
        while keys := list(rows.values_list("pk", flat=True)[:PURGED_AT_ONCE]):
            # With the condition: somebody may hold one of them since.
            rows.filter(pk__in=keys).delete()
    except Exception as error:  # noqa: BLE001  the site's own rules may raise anything
        models = models_in_the_way(error)
        if models is None:
            models = model._meta.label
        log_trouble(LogEvent.ERASURE_FAILED, error, models=models)
