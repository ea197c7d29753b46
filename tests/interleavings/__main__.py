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

os.environ["DJANGO_SETTINGS_MODULE"] = "tests.interleavings.settings"

import django

django.setup()

from django.core.management import call_command

from tests.interleavings.explorer import Found
from tests.interleavings.sabotages import SABOTAGES
from tests.interleavings.scenarios import SCENARIOS

CORES = 2


def _explored(name: str) -> tuple[str, Found]:
    chosen = SABOTAGES.get(name) or SCENARIOS[name]
    return name, chosen.explore(seconds=ASKED.seconds)


def _is_well(name: str, found: Found) -> bool:
    """Whether a scenario is clean, or the expected violation shows a sabotage."""
    if name in SABOTAGES:
        return found.breaks(SABOTAGES[name].shown_by)
    return found.is_whole and not found.stories


def _print(name: str, found: Found, *, with_stories: bool) -> None:
    counts = (
        f"{found.states} states, {found.transitions} transitions, {found.ends} ends"
    )
    whole = "" if found.is_whole else ", not to the end"
    violations = f", {len(found.stories)} violations" if found.stories else ""
    print(f"{name}: {counts}, {found.seconds:.1f} s{whole}{violations}", flush=True)
    if with_stories:
        for wrong, story in found.stories.items():
            print(f"\n    {wrong}", *story, "", sep="\n        ", flush=True)


def _parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m tests.interleavings", None, __doc__)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="a scenario or a sabotage"
    )
    parser.add_argument("--all", action="store_true", help="also what takes minutes")
    parser.add_argument("--list", action="store_true", help="print the names")
    parser.add_argument(
        "--seconds", type=float, default=3600.0, help="give up after so many"
    )
    return parser.parse_args()


def main() -> int:
    asked = ASKED
    chosen = [row for row in SCENARIOS if asked.all or not row.endswith("long")]
    names = asked.names or [*chosen, *SABOTAGES]
    if asked.list:
        print("\n".join(names))
        return 0

    logging.disable(logging.CRITICAL)
    call_command("migrate", verbosity=0)
    gc.freeze()
    ill = 0
    # Each fork has tables of its own.
    with multiprocessing.get_context("fork").Pool(CORES) as pool:
        for name, found in pool.imap_unordered(_explored, names):
            is_well = _is_well(name, found)
            ill += not is_well
            _print(name, found, with_stories=bool(asked.names) or not is_well)
    print(f"{len(names)} followed, {ill} not as expected")
    return ill


if __name__ == "__main__":
    ASKED = _parsed()
    sys.exit(main())
