"""A clock for the site that a test can move."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from django.utils import timezone

Follower = Callable[[timedelta], object]


class Clock:
    """Real time plus an offset. Each move also calls the ``followers``."""

    def __init__(self, real: Callable[[], datetime], *followers: Follower) -> None:
        self._real = real
        self._followers = followers
        self._offset = timedelta()

    def now(self) -> datetime:
        return self._real() + self._offset

    def advance(self, **span: float) -> None:
        """``advance(hours=25)``, with the arguments of ``timedelta``."""
        passed = timedelta(**span)
        self._offset += passed
        for follow in self._followers:
            follow(passed)


@contextmanager
def moved_clock(*followers: Follower) -> Iterator[Clock]:
    """A clock for ``django.utils.timezone.now`` until the block ends.

    Code that imported ``now`` itself or uses ``time`` still sees the real time.
    """
    real = timezone.now
    clock = Clock(real, *followers)
    timezone.now = clock.now
    try:
        yield clock
    finally:
        timezone.now = real
