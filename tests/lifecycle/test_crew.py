"""Rows are worked off in threads, and every row that nobody began stays where it was."""

from __future__ import annotations

import threading
from collections import deque
from contextlib import closing

import pytest

from django_identity.lifecycle.upkeep.threads import work_off


def test_all_is_done_once_and_at_the_same_time() -> None:
    """Four items meet at a barrier, which one thread alone would never pass."""
    met = threading.Barrier(4, timeout=5)
    left = deque(range(4))

    def work(item: int) -> int:
        met.wait()
        return item * 10

    assert sorted(work_off(left, work, threads=4)) == [(0, 0), (1, 10), (2, 20), (3, 30)]
    assert not left


def test_who_stops_early_gets_the_rest_back() -> None:
    """What is in hand is finished, what was not begun stays in the list."""
    left, begun = deque(range(100)), []

    def work(item: int) -> None:
        begun.append(item)

    with closing(work_off(left, work, threads=2)) as results:
        next(results)
    assert sorted([*begun, *left]) == list(range(100))


def test_an_error_comes_out_and_ends_the_work() -> None:
    """In the thread of the caller; the others take nothing more."""
    left = deque(range(100))

    def work(item: int) -> None:
        if item == 3:
            raise ValueError(item)

    with pytest.raises(ValueError, match="3"):
        list(work_off(left, work, threads=2))
