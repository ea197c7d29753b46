"""What is known of upkeep's runs: when the newest one began, and the pause.

If a re-fetch gets a 429, all re-fetches pause, in every process, for as long as the service says: a
second to an hour (``upkeep``). (A 429 for the key set is an outage.) An operator may pause them,
too. Meanwhile tokens are not refreshed (``tokens``). Sign-ins, codes, events and erasures go on.

It is one row. Nothing urgent waits for it.
"""

from datetime import datetime, timedelta
from typing import Any

from django.db.models import QuerySet, Subquery
from django.utils import timezone

from django_identity.models import UpkeepRun
from django_identity.models.choices import NEVER

#: Upkeep that has not begun for so long does not run.
LATE = timedelta(minutes=15)
ROW = 1


def newest() -> UpkeepRun:
    """The newest run, or an empty row before the first."""
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


def begin() -> None:
    """A run begins now."""
    _set(begun_at=timezone.now())


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
