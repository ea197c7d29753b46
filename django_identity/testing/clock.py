"""The time that a site sees, moved by a test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from django.utils import timezone

Follower = Callable[[timedelta], object]


class Clock:
    """Real time plus what it was moved by; ``followers`` are told of each move."""

    def __init__(self, real: Callable[[], datetime], *followers: Follower) -> None:
        self._real = real
        self._followers = followers
        self._offset = timedelta()

    def now(self) -> datetime:
        return self._real() + self._offset

    def advance(self, **span: float) -> None:
        """``advance(hours=25)``: the words are those of ``timedelta``."""
        passed = timedelta(**span)
        self._offset += passed
        for follow in self._followers:
            follow(passed)


@contextmanager
def moved_clock(*followers: Follower) -> Iterator[Clock]:
    """A clock that ``django.utils.timezone.now`` obeys until the block ends.

    Code that has imported ``now`` by itself, or asks ``time``, goes on in real time.
    """
    real = timezone.now
    clock = Clock(real, *followers)
    timezone.now = clock.now
    try:
        yield clock
    finally:
        timezone.now = real
