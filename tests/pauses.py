"""A call that stands still where a test says so, while the test does something else."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

from tests.concurrency import PATIENCE, alone


class Held:
    """A call in a thread of its own. It waits before each of the functions that were named."""

    def __init__(self) -> None:
        self.result: Future[Any] = Future()
        self._arrived = threading.Semaphore(0)
        self._may_go_on = threading.Semaphore(0)
        self._is_dead = False

    def wait(self) -> None:
        """Until it stands before the next function."""
        assert self._arrived.acquire(timeout=PATIENCE)

    def go_on(self) -> None:
        self._may_go_on.release()

    def die(self) -> None:
        """It goes no further, as if its process were killed there."""
        self._is_dead = True
        self.go_on()

    def stand(self) -> None:
        self._arrived.release()
        assert self._may_go_on.acquire(timeout=PATIENCE)
        if self._is_dead:
            raise SystemExit


@contextmanager
def held(
    call: Callable[[], object],
    *,
    before: list[tuple[Any, str]],
) -> Iterator[Held]:
    """``call`` has begun. ``before``: modules and names of functions, where it stands still."""
    mine = threading.local()
    held = Held()

    def begin() -> object:
        mine.is_held = True
        return alone(call)

    def standing(function: Callable[..., Any]) -> Callable[..., Any]:
        def stand_and_call(*arguments: Any, **how: Any) -> Any:
            if getattr(mine, "is_held", False):
                held.stand()
            return function(*arguments, **how)

        return stand_and_call

    with ExitStack() as stack:
        for module, name in before:
            replaced = standing(getattr(module, name))
            stack.enter_context(mock.patch.object(module, name, replaced))
        pool = stack.enter_context(ThreadPoolExecutor(1))
        held.result = pool.submit(begin)
        try:
            yield held
        finally:
            # Where a test has failed, it stands there yet.
            held.die()
