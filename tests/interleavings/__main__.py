"""Follow scenarios to their ends, and print what was met.

``python -m tests.interleavings`` follows those of the leg of CI, and then sees whether each
sabotage is found; ``… NAME`` follows one scenario, or sabotages the package by that name, however
long it takes, and tells the shortest way to each violation.
"""

# ruff: noqa: E402, T201  Django is set up before its models are imported; this is a command
import argparse
import gc
import logging
import multiprocessing
import os
import sys
from functools import partial

os.environ["DJANGO_SETTINGS_MODULE"] = "tests.interleavings.settings"

import django

django.setup()

from django.core.management import call_command

from tests.interleavings.explorer import Found
from tests.interleavings.scenarios import SABOTAGES, SCENARIOS

CORES = 2
ALL = SCENARIOS | SABOTAGES


def explored(name: str, *, seconds: float) -> tuple[str, Found]:
    return name, ALL[name].explore(seconds=seconds)


def tell(name: str, found: Found) -> None:
    print(
        f"{name}: {len(found.states)} states, {found.transitions} transitions,"
        f" {found.ends} ends, {found.seconds:.1f} s, to the end: {found.is_whole},"
        f" {len(found.stories)} violations",
        flush=True,
    )
    for broken, story in found.stories.items():
        print(f"\n    {broken}", *story, sep="\n        ", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--seconds", type=float, default=3600.0, help="the time limit")
    asked = parser.parse_args()
    leg = [row for row in SCENARIOS if not row.endswith("long")]
    names = asked.names or [*leg, *SABOTAGES]

    logging.disable()
    call_command("migrate", verbosity=0)
    gc.freeze()
    ill = 0
    # Each fork has tables of its own.
    with multiprocessing.get_context("fork").Pool(CORES) as pool:
        explore = partial(explored, seconds=asked.seconds)
        for name, found in pool.imap_unordered(explore, names):
            ill += not ALL[name].is_well(found)
            tell(name, found)
    print(f"{len(names)} followed, {ill} not as expected")
    return ill


if __name__ == "__main__":
    sys.exit(main())
