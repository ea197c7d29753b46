"""Identities whose re-fetch is due: each is worked on by one worker at a time.

The states of a row, by its columns (``MOST_LOST_WORKERS`` losses put a LOST row off):

=============  ==================  =======================  ===================
state          ``refetch_due_at``  ``refetch_taken_until``  ``refetch_started``
=============  ==================  =======================  ===================
not due        later, or empty     empty                    no
FREE           passed              empty, or passed         no
HANDED_OUT     passed              later                    no
STARTED        passed              later                    yes
LOST           passed              passed                   yes
=============  ==================  =======================  ===================

``take``: FREE or LOST -> HANDED_OUT (it waits in a queue). ``start``: FREE, HANDED_OUT or LOST ->
STARTED (a worker has it). ``let_go``: HANDED_OUT -> FREE. The end of a re-fetch: STARTED -> not
due. Only ``refetch_due_at`` is in an index, and only the end of a re-fetch moves it, so taking a
row is cheap. A worker that dies leaves a LOST row. Failures are counted at the start, so that a row
that kills its workers cannot do so often.
"""

import logging
import sys
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from datetime import datetime, timedelta
from enum import Enum, auto

from django.db.models import F, Q, QuerySet
from django.utils import timezone

from django_identity import database
from django_identity.conf import Application
from django_identity.exceptions import KeysUnavailable
from django_identity.lifecycle.upkeep import key_sets
from django_identity.lifecycle.upkeep.claims import backed_off
from django_identity.models import LinkedIdentity

PAGE = 500
# Longer than a chunk waits in its queue: a sweep hands out the work of two minutes.
HANDED_OUT_FOR = timedelta(minutes=5)
# Longer than the longest re-fetch, with all waits and time-outs.
STARTED_FOR = timedelta(minutes=5)
# A lease that ends even later was written by a wrong clock.
LONGEST_BELIEVED = timedelta(minutes=15)
MOST_LOST_WORKERS = 3
WORKER_LOST = "worker_lost"
MOST_KIDS = 50
MOST_MARKED = 2000

logger = logging.getLogger("django_identity.upkeep")


class State(Enum):
    """The state of a row that is due."""

    FREE = auto()
    HANDED_OUT = auto()
    STARTED = auto()
    LOST = auto()


def state_of(row: LinkedIdentity, now: datetime) -> State:
    """The state of a due row as it was read."""
    until = row.refetch_taken_until
    if until is not None and now < until <= now + LONGEST_BELIEVED:
        return State.STARTED if row.refetch_started else State.HANDED_OUT
    return State.LOST if row.refetch_started else State.FREE


def due(application: Application, *, now: datetime) -> QuerySet[LinkedIdentity]:
    """The due rows, leased or not, oldest first."""
    rows = LinkedIdentity.objects.under(application).filter(refetch_due_at__lte=now)
    return rows.order_by("refetch_due_at", "pk")


def take(
    application: Application,
    *,
    most: int = sys.maxsize,
    in_hand: int = sys.maxsize,
    page: int = PAGE,
) -> Iterator[list[int]]:
    """Hand due rows out, the longest due first, in pages of ids that are this caller's alone.

    At most ``most`` rows are handed out. With ``in_hand``, the rows that all callers together have
    in hand stay below that number, so that queues stay bounded however much is due.
    """
    now = timezone.now()
    can_skip = database.connection().features.has_select_for_update_skip_locked
    rows = wanted = due(application, now=now).only(
        "pk", "refetch_due_at", "refetch_taken_until", "refetch_started", "refetch_failures"
    )
    while min(most, in_hand) > 0:
        # On SQLite two transactions that read before they write would block each other.
        with database.atomic() if can_skip else nullcontext():
            locked = rows.select_for_update(skip_locked=True) if can_skip else rows
            found = list(locked[: min(page, most, in_hand)])
            free = [row for row in found if state_of(row, now) in (State.FREE, State.LOST)]
            won = _hand_out(free, now=now)
        if not found:
            return
        most -= len(won)
        in_hand -= len(won) + len(found) - len(free)
        if won:
            yield won
        last = found[-1]
        # The first condition is for the index; the second one is exact.
        rows = wanted.filter(refetch_due_at__gte=last.refetch_due_at).exclude(
            refetch_due_at=last.refetch_due_at, pk__lte=last.pk
        )


def start(identity: LinkedIdentity) -> bool:
    """Begin work on a row that was just read. A failure is counted in advance.

    Returns False if another worker has begun, the row has changed, or it has lost too many workers.
    """
    now = timezone.now()
    if state_of(identity, now) is State.STARTED or _set_aside_if_lost(identity, now):
        return False
    until = now + STARTED_FOR
    begun = _unchanged(identity).update(
        refetch_taken_until=until, refetch_started=True, refetch_failures=F("refetch_failures") + 1
    )
    identity.refetch_taken_until = until
    return bool(begun)


def let_go(ids: Iterable[int]) -> None:
    """Release rows that were handed out and not started. They stay due."""
    LinkedIdentity.objects.filter(pk__in=list(ids), refetch_started=False).update(
        refetch_taken_until=None
    )


def mark_vanished_keys(application: Application) -> int:
    """Make identities due whose credentials were signed by unpublished keys. Returns their number.

    It costs one look-up in an index for each key in use, and changes a limited number at a time.
    """
    try:
        published = key_sets.current(application).kids
    except KeysUnavailable:
        return 0
    mine, now = LinkedIdentity.objects.under(application), timezone.now()
    marked = 0
    for kid in _kids_in_use(mine):
        if kid not in published:
            # Not failing rows, which have their own pause.
            waiting = mine.filter(credential_kid=kid, refetch_due_at__gt=now, refetch_failures=0)
            ids = list(waiting.values_list("pk", flat=True)[:MOST_MARKED])
            chosen = LinkedIdentity.objects.filter(pk__in=ids, refetch_due_at__gt=now)
            marked += chosen.update(refetch_due_at=now)
    return marked


def _hand_out(rows: list[LinkedIdentity], *, now: datetime) -> list[int]:
    """Lease these rows with one conditional UPDATE. Returns those that were still free."""
    ids = [row.pk for row in rows if not _set_aside_if_lost(row, now)]
    if not ids:
        return []
    until = timezone.now() + HANDED_OUT_FOR
    unbelieved = Q(refetch_taken_until__gt=now + LONGEST_BELIEVED)
    free = Q(refetch_taken_until=None) | Q(refetch_taken_until__lte=now) | unbelieved
    asked = LinkedIdentity.objects.filter(pk__in=ids)
    won = asked.filter(free, refetch_due_at__lte=now).update(
        refetch_taken_until=until, refetch_started=False
    )
    if won == len(ids):
        return ids
    mine = set(asked.filter(refetch_taken_until=until).values_list("pk", flat=True))
    return [pk for pk in ids if pk in mine]


def _set_aside_if_lost(row: LinkedIdentity, now: datetime) -> bool:
    """Postpone a row that has lost too many workers. Returns whether it has lost so many.

    A row that a worker has leased since it was read stays as it is.
    """
    if state_of(row, now) is not State.LOST or row.refetch_failures < MOST_LOST_WORKERS:
        return False
    put_off = _unchanged(row).update(
        refetch_due_at=backed_off(row.refetch_failures),
        refetch_taken_until=None,
        refetch_started=False,
        last_error=WORKER_LOST,
        updated_at=timezone.now(),
    )
    if put_off:
        logger.error("re-fetching identity #%s lost %s workers", row.pk, MOST_LOST_WORKERS)
    return True


def _unchanged(row: LinkedIdentity) -> QuerySet[LinkedIdentity]:
    """The row, if it is due and no worker has leased it or ended its re-fetch since it was read.

    An event may make the row due again meanwhile; the coming re-fetch covers that.
    """
    return LinkedIdentity.objects.filter(
        pk=row.pk,
        refetch_due_at__lte=timezone.now(),
        refetch_taken_until=row.refetch_taken_until,
        refetch_started=row.refetch_started,
    )


def _kids_in_use(rows: QuerySet[LinkedIdentity]) -> Iterator[str]:
    """Each ``kid`` of a stored credential, with one look-up in the index for each."""
    kid = ""
    kids = rows.order_by("credential_kid").values_list("credential_kid", flat=True)
    for _ in range(MOST_KIDS):
        found = kids.filter(credential_kid__gt=kid).first()
        if found is None:
            return
        kid = found
        yield kid
