"""Follow scenarios to their ends, and print what was met.

``python -m tests.interleavings`` follows those of the leg of CI, and then sees whether each
sabotage is found; ``… NAME`` follows one scenario, or sabotages the package by that name, however
long it takes, and tells the shortest way to each violation. ``--all``: also those that take
minutes. ``--list``: the names.
"""

# ruff: noqa: E402, T201  Django is set up before its models are imported; this is a command
import argparse
import gc
import logging
import multiprocessing
import os
import sys
import traceback
from collections.abc import Iterator

os.environ["DJANGO_SETTINGS_MODULE"] = "tests.interleavings.settings"

import django

django.setup()

from django.core.management import call_command

from tests.interleavings.explorer import Found
from tests.interleavings.sabotages import SABOTAGES
from tests.interleavings.scenarios import SCENARIOS

CORES = 2


def _parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.interleavings", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="a scenario or a sabotage")
    parser.add_argument("--all", action="store_true", help="also what takes minutes")
    parser.add_argument("--list", action="store_true", help="print the names")
    parser.add_argument("--seconds", type=float, default=3600.0, help="give up after so many")
    return parser.parse_args()


def _chosen(asked: argparse.Namespace) -> list[str]:
    if asked.names:
        return list(asked.names)
    scenarios = [name for name, each in SCENARIOS.items() if asked.all or "long" not in each.how]
    return [*scenarios, *SABOTAGES]


def _explored(names: list[str], *, seconds: float) -> Iterator[tuple[str, Found]]:
    """Follow the scenarios, two at a time, each in a fork of its own, which has empty tables."""
    forks = multiprocessing.get_context("fork")
    results = forks.SimpleQueue()

    def work(name: str) -> None:
        chosen = SABOTAGES.get(name) or SCENARIOS[name]
        try:
            found = chosen.explore(seconds=seconds)
        except Exception:  # noqa: BLE001  whatever it is, it is printed: somebody waits for it
            found = Found(stories={traceback.format_exc(): []})
        results.put((name, found))

    for number, name in enumerate(names):
        if number >= CORES:
            yield results.get()
        forks.Process(target=work, args=(name,), daemon=True).start()
    for _ in names[-CORES:]:
        yield results.get()


def _is_well(name: str, found: Found) -> bool:
    """Whether a scenario is clean, or the expected violation shows a sabotage."""
    if name in SABOTAGES:
        return found.breaks(SABOTAGES[name].shown_by)
    return found.is_whole and not found.stories


def _print(name: str, found: Found, *, with_stories: bool) -> None:
    counts = f"{found.states:>6} states {found.transitions:>6} transitions {found.ends:>4} ends"
    verdict = "whole" if found.is_whole else "not to the end"
    if found.stories:
        verdict = f"{verdict}, {len(found.stories)} violations"
    print(f"{name:<64}{counts} {found.seconds:>6.1f} s  {verdict}", flush=True)
    if with_stories:
        for wrong, story in found.stories.items():
            print(f"\n    {wrong}", *story, "", sep="\n        ", flush=True)


def main() -> int:
    asked = _parsed()
    names = _chosen(asked)
    if asked.list:
        print("\n".join(names))
        return 0

    logging.disable(logging.CRITICAL)
    call_command("migrate", verbosity=0)
    gc.freeze()
    ill = []
    for name, found in _explored(names, seconds=asked.seconds):
        is_well = _is_well(name, found)
        _print(name, found, with_stories=bool(asked.names) or not is_well)
        if not is_well:
            ill.append(name)
    print(f"{len(names)} followed, {len(ill)} not as expected")
    return len(ill)


if __name__ == "__main__":
    sys.exit(main())
