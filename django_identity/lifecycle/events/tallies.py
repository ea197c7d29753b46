"""Count sign-ins, re-fetches, refused events and the use of webhook secrets for each day.

A process collects what a delivery leaves no row of for some seconds, so that a flood of refused
deliveries costs few writes. What it has collected when it ends is lost; the first counts at once.
"""

import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from functools import cache

from django.conf import settings
from django.db import DatabaseError
from django.db.models import F
from django.utils import timezone
from django.utils.crypto import salted_hmac

from django_identity.conf import Application
from django_identity.models import DailyTally

COLLECTED_FOR = 10.0
SALT = "django_identity.webhook_secret"


@dataclass(frozen=True, slots=True)
class DayCount:
    """The count of one day (UTC)."""

    day: date
    count: int


@dataclass(slots=True)
class _Collected:
    """The counts of this process that are not written yet, and when it wrote the last ones."""

    counts: Counter[str] = field(default_factory=Counter)
    written_at: float = -COLLECTED_FOR


_collected: dict[str, _Collected] = {}
_writing = threading.Lock()


def collect(name: str, *, application: Application) -> None:
    """Count ``name`` today, with the other counts of some seconds. Must run outside transactions.

    A count that cannot be written is no error: the delivery has its answer already.
    """
    with _writing:
        ours = _collected.setdefault(application.alias, _Collected())
        ours.counts[name] += 1
        now = time.monotonic()
        if now < ours.written_at + COLLECTED_FOR:
            return
        ours.written_at = now
        counts, ours.counts = ours.counts, Counter()
    with suppress(DatabaseError):
        for each, number in counts.items():
            add(each, application=application, count=number)


def forget() -> None:
    """Forget what this process has collected. For tests."""
    _collected.clear()


def add(name: str, *, application: Application, count: int = 1) -> None:
    """Add ``count`` to today's count of ``name``.

    Call it outside of transactions or at the end of one, because all workers use the same row.
    """
    if count <= 0:
        return
    row = DailyTally(
        day=_today(), application=application.alias, environment=application.environment, name=name
    )
    today = DailyTally.objects.filter(
        day=row.day, application=row.application, environment=row.environment, name=name
    )
    if not today.update(count=F("count") + count):
        DailyTally.objects.bulk_create([row], ignore_conflicts=True)
        today.update(count=F("count") + count)


def per_day(name: str, *, application: str, environment: str, days: int) -> tuple[DayCount, ...]:
    """The counts of the last ``days`` days, oldest first. A day without a row counts 0."""
    first = _today() - timedelta(days=days - 1)
    held = dict(
        DailyTally.objects.filter(
            day__gte=first, application=application, environment=environment, name=name
        ).values_list("day", "count")
    )
    each_day = (first + timedelta(days=passed) for passed in range(days))
    return tuple(DayCount(day, held.get(day, 0)) for day in each_day)


def _today() -> date:
    now: datetime = timezone.now()
    return now.astimezone(UTC).date()


def count_signed(application: Application, secret: str) -> None:
    """Count a delivery that ``secret`` signed, if there are several secrets."""
    if len(application.webhook_secrets) > 1:
        collect(next(secret_names(secret)), application=application)


def secret_names(secret: str) -> Iterator[str]:
    """The name of ``secret`` in the tallies, under the site's current key, then its older keys."""
    for key in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS):
        yield _secret_name(secret, str(key))


@cache
def _secret_name(secret: str, key: str) -> str:
    return f"secret.{salted_hmac(SALT, secret, secret=key, algorithm='sha256').hexdigest()[:8]}"
