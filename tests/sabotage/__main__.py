"""Commit each sabotage in a copy of the tree, and print which test notices it.

``python -m tests.sabotage`` takes all of them, ``… NAME`` a room or one sabotage. The tests of the
room run first, and the default suite where these stay green. The tree itself stays as it is.
"""

# ruff: noqa: T201  this is a command
import argparse
import signal
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import NamedTuple

from tests.sabotage.rooms import ROOMS
from tests.sabotage.sabotage import Room, Sabotage, Unusable
from tests.sabotage.workshop import NotRun, Workshop

AT_ONCE = 2
SUITE = ("tests",)


class Job(NamedTuple):
    """One sabotage of a room, or None for the room as it is."""

    room: Room
    sabotage: Sabotage | None = None

    def __str__(self) -> str:
        if self.sabotage is None:
            return f"{self.room.name}, as it is"
        return f"{self.room.name}: {self.sabotage.name}"


class Result(NamedTuple):
    """``found``: the test that fails. ``trouble``: why nobody can tell."""

    job: Job
    seconds: float
    found: str = ""
    trouble: str = ""


def chosen(names: Sequence[str]) -> Iterator[Job]:
    """The sabotages with these names, or of these rooms, or all. Raises ``Unusable``."""
    known = {room.name for room in ROOMS}
    known.update(each.name for room in ROOMS for each in room.sabotages)
    unknown = sorted({*names} - known)
    if unknown:
        raise Unusable(f"no room and no sabotage is called {', '.join(unknown)}")
    for room in ROOMS:
        for sabotage in room.sabotages:
            if not names or room.name in names or sabotage.name in names:
                sabotage.changed()
                yield Job(room, sabotage)


def tried(workshop: Workshop, job: Job, *, with_suite: bool) -> Result:
    """The tests of the room, then the default suite."""
    began = monotonic()
    found = trouble = ""
    try:
        found = workshop.first_failure(job.room.tests, job.sabotage)
        if with_suite and not found:
            found = workshop.first_failure(SUITE, job.sabotage)
            # Of the suite nobody has seen that it is green without the sabotage.
            if found and workshop.first_failure([found], None):
                trouble = f"{found} fails without it, too"
                found = ""
    except NotRun as error:
        trouble = str(error)
    return Result(job, monotonic() - began, found, trouble)


def tell(result: Result) -> None:
    nothing = "not noticed" if result.job.sabotage else "green"
    answer = result.trouble or result.found or nothing
    print(f"{result.job} | {answer} | {result.seconds:.0f} s", flush=True)


def run(jobs: Sequence[Job], pool: ThreadPoolExecutor, workshop: Workshop) -> int:
    """Print the table. Returns how many sabotages nobody has noticed."""
    rooms = dict.fromkeys(job.room for job in jobs)
    # A room that fails as it is would notice everything.
    as_they_are = pool.map(
        lambda room: tried(workshop, Job(room), with_suite=False), rooms
    )
    ill = set()
    for result in as_they_are:
        tell(result)
        if result.found or result.trouble:
            ill.add(result.job.room)
    noticed = 0
    left = [job for job in jobs if job.room not in ill]
    for result in pool.map(lambda job: tried(workshop, job, with_suite=True), left):
        tell(result)
        noticed += bool(result.found)
    print(f"{noticed} of {len(jobs)} noticed")
    return len(jobs) - noticed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="a room or a sabotage")
    parser.add_argument("--list", action="store_true", help="print them, and run none")
    parser.add_argument("--seconds", type=float, default=1200, help="limit of one run")
    asked = parser.parse_args()
    try:
        jobs = list(chosen(asked.names))
    except Unusable as error:
        print(f"Error: {error}.", file=sys.stderr)
        return 2
    if asked.list:
        for job in jobs:
            print(f"{job} | {job.sabotage and job.sabotage.breaks}")
        return 0

    # In the background a shell lets its commands ignore Ctrl-C.
    for stop in (signal.SIGINT, signal.SIGTERM):
        signal.signal(stop, signal.default_int_handler)
    with TemporaryDirectory(prefix="sabotage-") as folder:
        workshop = Workshop(Path(folder), asked.seconds)
        with ThreadPoolExecutor(AT_ONCE) as pool:
            try:
                return min(run(jobs, pool, workshop), 1)
            except KeyboardInterrupt:
                print("Stopped.", file=sys.stderr)
                return 130
            finally:
                workshop.close()
                pool.shutdown(cancel_futures=True)


if __name__ == "__main__":
    sys.exit(main())
