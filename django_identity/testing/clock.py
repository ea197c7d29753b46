"""A clock for the site that a test can move."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from unittest import mock

from django.utils import timezone

from django_identity.testing.sandbox import RunningSandbox


class Clock:
    """Real time plus an offset. ``sandbox`` moves too."""

    def __init__(
        self,
        real: Callable[[], datetime],
        sandbox: RunningSandbox | None,
    ) -> None:
        self._real = real
        self._sandbox = sandbox
        self._offset = timedelta()

    def now(self) -> datetime:
        return self._real() + self._offset

    def advance(self, **span: float) -> None:
        """``advance(hours=25)``, with the arguments of ``timedelta``."""
        passed = timedelta(**span)
        self._offset += passed
        if self._sandbox is not None:
            self._sandbox.control("POST", "clock", advance=passed.total_seconds())


@contextmanager
def moved_clock(sandbox: RunningSandbox | None = None) -> Iterator[Clock]:
    """A clock for ``django.utils.timezone.now`` until the block ends.

    Code that imported ``now`` itself or uses ``time`` still sees the real time.
    """
    clock = Clock(timezone.now, sandbox)
    with mock.patch.object(timezone, "now", clock.now):
        yield clock
