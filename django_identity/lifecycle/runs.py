"""What is known of upkeep's runs: when the newest one began, what it did, and the pause.

It is one row. Nothing that is urgent waits for it.
"""

from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db.models import QuerySet, Subquery
from django.utils import timezone

from django_identity import database
from django_identity.models import UpkeepRun
from django_identity.models.choices import NEVER

#: Upkeep that has not begun for so long does not run.
LATE = timedelta(minutes=15)
ROW = 1


def newest() -> UpkeepRun:
    """The newest run, or an empty one if there was none."""
    row = _row().first()
    if row is None:
        return UpkeepRun()
    return row


def has_begun_lately(run: UpkeepRun) -> bool:
    """Whether upkeep runs. A begin in the future is of a clock that has been set back since."""
    return abs(timezone.now() - run.begun_at) <= LATE


def late() -> datetime:
    """What was due before this time is late."""
    return timezone.now() - LATE


def begin(**columns: Any) -> None:
    """A run begins now. ``columns``: what else is known of it."""
    _set(begun_at=timezone.now(), **columns)


def hand_out(rows: int) -> None:
    """The run has handed so many rows to workers."""
    _set(handed_out=rows)


def note(results: Mapping[Any, int]) -> None:
    """Add the results of re-fetches that have just ended."""
    if not results:
        return
    now = timezone.now()
    with database.atomic():
        # Locked, because many workers add to one run.
        locked = UpkeepRun.objects.select_for_update()
        row, _is_new = locked.get_or_create(pk=ROW)
        is_first_of_run = row.served_at < row.begun_at
        # Where upkeep does not run, an event may still cause a re-fetch.
        is_of_no_run = now - row.begun_at > LATE
        tally = Counter(row.results)
        if is_first_of_run or is_of_no_run:
            tally.clear()
        tally.update(results)
        row.results = dict(tally)
        row.served_at = now
        row.save(update_fields=["results", "served_at"])


# The pause


def is_paused() -> bool:
    """Whether re-fetches pause."""
    return _row().filter(paused_until__gt=timezone.now()).exists()


def end_of_pause() -> Subquery:
    """The end of the newest pause, for a query of other rows."""
    return Subquery(_row().values("paused_until"))


def pause(*, until: datetime) -> None:
    """Pause re-fetches until then. A longer pause stays as it is."""
    UpkeepRun.objects.get_or_create(pk=ROW)
    _row().filter(paused_until__lt=until).update(paused_until=until)


def resume() -> None:
    """End the pause."""
    _set(paused_until=NEVER)


def _row() -> QuerySet[UpkeepRun]:
    return UpkeepRun.objects.filter(pk=ROW)


def _set(**columns: Any) -> None:
    UpkeepRun.objects.update_or_create(pk=ROW, defaults=columns)
