"""Identities whose re-fetch is due: taken by one caller each, for a time, and let go.

``refetch_due_at`` says that a row is due, and moves only when its re-fetch ends. Taking it sets
``refetch_taken_until``, which no index holds, so that taking is cheap; whoever dies leaves a row
that comes back by itself. A row is *handed out* (it waits in a queue) or *started* (somebody works
on it); failures are counted at the start, so that a row that kills its workers cannot do it often.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from datetime import datetime, timedelta

from django.db import connection, transaction
from django.db.models import F, Q, QuerySet
from django.utils import timezone

from django_identity.conf import Application
from django_identity.lifecycle.upkeep.claims import backed_off
from django_identity.models import LinkedIdentity

PAGE = 500
# Longer than a chunk waits in its queue when workers keep up with the budget.
HANDED_OUT_FOR = timedelta(minutes=10)
# Longer than one re-fetch can last, with every wait and time-out at its longest.
STARTED_FOR = timedelta(minutes=5)
MOST_LOST_WORKERS = 3
WORKER_LOST = "worker_lost"

logger = logging.getLogger("django_identity.upkeep")


def due(application: Application, *, now: datetime) -> QuerySet[LinkedIdentity]:
    """What is due, taken or not, the longest due first."""
    rows = LinkedIdentity.objects.filter(
        application=application.alias,
        environment=application.environment,
        refetch_due_at__lte=now,
    )
    return rows.order_by("refetch_due_at", "pk")


def take(
    application: Application,
    *,
    most: int | None = None,
    in_hand: int | None = None,
    page: int = PAGE,
) -> Iterator[list[int]]:
    """Hand due rows out, the longest due first, in pages of ids that are this caller's alone.

    ``most`` rows at most, and none more than ``in_hand`` together with what others have in hand: so
    what waits in queues stays bounded, however much is due.
    """
    now = timezone.now()
    rows = due(application, now=now)
    left = sys.maxsize if most is None else most
    free_hands = sys.maxsize if in_hand is None else in_hand
    while min(left, free_hands) > 0:
        # SQLite must not read before it writes in one transaction: two could not both go on.
        with transaction.atomic() if _can_skip_locked() else nullcontext():
            found = list(_locked(rows)[: min(page, left, free_hands)])
            won = _hand_out([row for row in found if not is_taken(row, now)], now=now)
        if not found:
            return
        left -= len(won)
        free_hands -= len(won) + sum(is_taken(row, now) for row in found)
        if won:
            yield won
        last = found[-1]
        # The first condition lets the index begin there; the second one is exact.
        rows = (
            due(application, now=now)
            .filter(refetch_due_at__gte=last.refetch_due_at)
            .exclude(refetch_due_at=last.refetch_due_at, pk__lte=last.pk)
        )


def start(identity: LinkedIdentity) -> bool:
    """Begin work on a row as it was read just now; its failures are counted first.

    False if somebody else has begun, or it has changed, or it has lost too many workers.
    """
    now = timezone.now()
    if identity.refetch_started and is_taken(identity, now):
        return False
    if _has_lost_too_many(identity):
        _set_aside(identity)
        return False
    until = now + STARTED_FOR
    begun = _unchanged(identity).update(
        refetch_taken_until=until,
        refetch_started=True,
        refetch_failures=F("refetch_failures") + 1,
    )
    identity.refetch_taken_until = until
    return bool(begun)


def let_go(ids: Iterable[int]) -> None:
    """Give back rows that were handed out and not started: they are due as before."""
    LinkedIdentity.objects.filter(pk__in=list(ids), refetch_started=False).update(
        refetch_taken_until=None
    )


def is_taken(row: LinkedIdentity, now: datetime) -> bool:
    return row.refetch_taken_until is not None and row.refetch_taken_until > now


def _locked(rows: QuerySet[LinkedIdentity]) -> QuerySet[LinkedIdentity]:
    """The next rows; where the database can, passing over those that another sweep is taking."""
    wanted = rows.only(
        "pk", "refetch_due_at", "refetch_taken_until", "refetch_started", "refetch_failures"
    )
    return wanted.select_for_update(skip_locked=True) if _can_skip_locked() else wanted


def _can_skip_locked() -> bool:
    return bool(connection.features.has_select_for_update_skip_locked)


def _hand_out(rows: list[LinkedIdentity], *, now: datetime) -> list[int]:
    """Take what is free by one conditional UPDATE, and say which of it was still free."""
    for row in rows:
        if _has_lost_too_many(row):
            _set_aside(row)
    ids = [row.pk for row in rows if not _has_lost_too_many(row)]
    if not ids:
        return []
    until = timezone.now() + HANDED_OUT_FOR
    free = Q(refetch_taken_until=None) | Q(refetch_taken_until__lte=now)
    asked = LinkedIdentity.objects.filter(pk__in=ids)
    won = asked.filter(free, refetch_due_at__lte=now).update(
        refetch_taken_until=until, refetch_started=False
    )
    if won == len(ids):
        return ids
    mine = set(asked.filter(refetch_taken_until=until).values_list("pk", flat=True))
    return [pk for pk in ids if pk in mine]


def _has_lost_too_many(row: LinkedIdentity) -> bool:
    """Whether work on it was begun often enough and never came to an end."""
    return row.refetch_started and row.refetch_failures >= MOST_LOST_WORKERS


def _set_aside(row: LinkedIdentity) -> None:
    """Put it off as after a failure, unless somebody has taken it up since it was read."""
    put_off = _unchanged(row).update(
        refetch_due_at=backed_off(row.refetch_failures),
        refetch_taken_until=None,
        refetch_started=False,
        last_error=WORKER_LOST,
        updated_at=timezone.now(),
    )
    if put_off:
        logger.error("re-fetching identity #%s ended none of its workers' work", row.pk)


def _unchanged(row: LinkedIdentity) -> QuerySet[LinkedIdentity]:
    """The row, as long as it is due and nobody has taken it up or ended with it since it was read.

    An event may make it due anew meanwhile; the re-fetch that is about to begin serves that, too.
    """
    return LinkedIdentity.objects.filter(
        pk=row.pk,
        refetch_due_at__lte=timezone.now(),
        refetch_taken_until=row.refetch_taken_until,
        refetch_started=row.refetch_started,
    )
