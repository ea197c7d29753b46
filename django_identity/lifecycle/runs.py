"""What is known of upkeep's runs: when the newest one began, and the pause.

It is one row for each application. Nothing that is urgent waits for that row.
"""

from datetime import datetime, timedelta
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone

from django_identity.conf import Application
from django_identity.models import UpkeepRun
from django_identity.models.choices import NEVER

#: Upkeep that has not begun for so long does not run.
LATE = timedelta(minutes=15)


def run_of(application: Application) -> UpkeepRun:
    """The newest run, or an empty one if there was none."""
    row = _rows_of(application).first()
    if row is None:
        return UpkeepRun(application=application.alias)
    return row


def has_begun_lately(run: UpkeepRun) -> bool:
    """Whether upkeep runs. A begin in the future is of a clock that has been set back since."""
    return abs(timezone.now() - run.begun_at) <= LATE


def late() -> datetime:
    """What was due before this time is late."""
    return timezone.now() - LATE


def begin(application: Application) -> None:
    """A run begins now."""
    _set(application, begun_at=timezone.now())


# The pause


def is_paused(application: Application) -> bool:
    """Whether re-fetches of the application pause."""
    rows = _rows_of(application)
    return rows.filter(paused_until__gt=timezone.now()).exists()


def pause(application: Application, *, until: datetime) -> None:
    """Pause re-fetches until then. A longer pause stays as it is."""
    UpkeepRun.objects.get_or_create(application=application.alias)
    rows = _rows_of(application)
    rows.filter(paused_until__lt=until).update(paused_until=until)


def resume(application: Application) -> None:
    """End the pause."""
    _set(application, paused_until=NEVER)


def _rows_of(application: Application) -> QuerySet[UpkeepRun]:
    return UpkeepRun.objects.filter(application=application.alias)


def _set(application: Application, **columns: Any) -> None:
    UpkeepRun.objects.update_or_create(application=application.alias, defaults=columns)
