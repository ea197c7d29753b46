"""When a row is due that is attempted until it succeeds: events with their handlers, and erasures.

- An event is due a minute after it is stored, in case the process dies before it is applied
  (``WebhookEvent.of``). When it is applied, it is due at once if a handler or an erasure waits for
  it (``events``). An operator may make it due again (``follow_up.replay``).
- An erasure is due at once when it is requested.
- After a failure a row is due after a pause that grows (``next_attempt``, ``backoff``).
- A row that a worker has taken (``take_row``) is due in ten minutes: a dead worker costs a try.

A row whose date (``next_attempt_at``) is empty is done, or given up. Re-fetches have a date of
another kind, because most of them succeed and come again: see ``due``.
"""

import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q, QuerySet
from django.utils import timezone

from django_identity import database
from django_identity.lifecycle.ground import backoff
from django_identity.models.choices import AttemptedRecord

MOST_AT_ONCE = 500
LONGEST_SECONDS = 60.0
# A row is due again after this time, if its worker dies.
HIDDEN_FOR = timedelta(minutes=10)
Stop = Callable[[], bool]


def attempt_due(rows: QuerySet[Any], run: Callable[[int], bool], *, stop: Stop) -> int:
    """Attempt the due ones of ``rows``, the oldest first, for a minute. Returns how many are done.

    ``run`` takes a key. None begins after ``stop``.
    """
    due = rows.filter(next_attempt_at__lte=timezone.now()).order_by("next_attempt_at")
    keys = list(due.values_list("pk", flat=True)[:MOST_AT_ONCE])
    ends_at = time.monotonic() + LONGEST_SECONDS
    done = 0
    for key in keys:
        if stop() or time.monotonic() > ends_at:
            break
        done += run(key)
    return done


def take_row(rows: QuerySet[Any], key: int) -> Any | None:
    """Take one of ``rows`` to attempt it, if it is due. None if it is not, or if it is locked.

    The attempt is counted first, in case it crashes its worker.
    """
    now = timezone.now()
    with database.atomic():
        # An UPDATE under these conditions would deadlock on MariaDB, which locks by any index. A
        # row that somebody else has locked is due again, and must not hold up those behind it.
        free = rows.select_for_update(skip_locked=True)
        row = free.filter(pk=key, next_attempt_at__lte=now).first()
        if row is not None:
            row.attempts += 1
            row.next_attempt_at = now + HIDDEN_FOR
            row.error = ""
            row.save(update_fields=["attempts", "next_attempt_at", "error"])
    return row


def next_attempt(attempts: int) -> datetime:
    """When a row is due again that has failed so often."""
    return timezone.now() + timedelta(seconds=backoff.pause(attempts))


def is_taken(row: AttemptedRecord) -> bool:
    """Whether a worker has the row now: it is due later and has zero failures."""
    if row.next_attempt_at is None or row.error:
        return False
    return row.attempts > 0 and row.next_attempt_at > timezone.now()


def taken() -> Q:
    """The condition of ``is_taken``."""
    return Q(next_attempt_at__gt=timezone.now(), attempts__gt=0, error="")
