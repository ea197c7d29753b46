"""Commit each sabotage in a copy of the tree, and print which test notices it.

``python -m tests.sabotage`` takes all of them, ``… NAME`` a room or one sabotage. The tests of the
room run first, and the default suite where these stay green. The tree itself stays as it is.
"""

# ruff: noqa: T201  this is a command
import argparse
import signal
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic

from tests.sabotage.rooms import ROOMS
from tests.sabotage.sabotage import Room, Sabotage, Unusable
from tests.sabotage.workshop import NotRun, Workshop

AT_ONCE = 2
SUITE = ("tests",)
#: A room, and one of its sabotages, or None for the room as it is.
Job = tuple[Room, Sabotage | None]


def chosen(names: Sequence[str]) -> list[Job]:
    """The sabotages with these names, or of these rooms, or all. Raises ``Unusable``."""
    every = [(room, each) for room in ROOMS for each in room.sabotages]
    known = {name for room, each in every for name in (room.name, each.name)}
    if unknown := sorted({*names} - known):
        raise Unusable(f"no room and no sabotage is called {', '.join(unknown)}")
    jobs: list[Job] = []
    for room, each in every:
        if not names or {room.name, each.name} & {*names}:
            each.changed()
            jobs.append((room, each))
    return jobs


def first_failure(workshop: Workshop, room: Room, sabotage: Sabotage | None) -> str:
    """In the tests of the room, then in the default suite. Raises ``NotRun``."""
    found = workshop.first_failure(room.tests, sabotage)
    if found or sabotage is None:
        return found
    found = workshop.first_failure(SUITE, sabotage)
    # Of the suite nobody has seen that it is green without the sabotage.
    if found and workshop.first_failure([found], None):
        raise NotRun(f"{found} fails without it, too")
    return found


def tried(workshop: Workshop, job: Job) -> bool | None:
    """Print the row of the table. Returns whether a test fails, or None if nobody can tell."""
    room, sabotage = job
    began = monotonic()
    fails = None
    try:
        answer = first_failure(workshop, room, sabotage)
        fails = bool(answer)
    except NotRun as error:
        answer = str(error)
    title = f": {sabotage.name}" if sabotage else ", as it is"
    answer = answer or ("not noticed" if sabotage else "green")
    print(f"{room.name}{title} | {answer} | {monotonic() - began:.0f} s", flush=True)
    return fails


def run(jobs: Sequence[Job], pool: ThreadPoolExecutor, workshop: Workshop) -> int:
    """Print the table. Returns how many sabotages nobody has noticed."""
    rooms = [*dict.fromkeys(room for room, _sabotage in jobs)]
    # A room that fails as it is would notice everything.
    fails = pool.map(partial(tried, workshop), [(room, None) for room in rooms])
    green = [room for room, failed in zip(rooms, fails, strict=True) if failed is False]
    left = [job for job in jobs if job[0] in green]
    noticed = sum(map(bool, pool.map(partial(tried, workshop), left)))
    print(f"{noticed} of {len(jobs)} noticed")
    return len(jobs) - noticed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="a room or a sabotage")
    parser.add_argument("--list", action="store_true", help="print them, and run none")
    parser.add_argument("--seconds", type=float, default=1200, help="limit of one run")
    asked = parser.parse_args()
    try:
        jobs = chosen(asked.names)
    except Unusable as error:
        print(f"Error: {error}.", file=sys.stderr)
        return 2
    if asked.list:
        for room, sabotage in jobs:
            print(f"{room.name}: {sabotage.name} | {sabotage.breaks}")
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
