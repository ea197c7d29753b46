"""Count sign-ins, re-fetches and refused events for each day."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from django.db.models import F
from django.utils import timezone

from django_identity.conf import Application
from django_identity.models import DailyTally


@dataclass(frozen=True, slots=True)
class DayCount:
    """The count of one day (UTC)."""

    day: date
    count: int


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
