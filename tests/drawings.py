"""Drawings of who asks whom, in order: ``python -m tests.drawings`` draws all of them anew.

The steps are those of a run against the sandbox, which ``tests/test_drawings.py`` makes.
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from django.template import Context, Engine

IMAGES = Path(__file__).parents[1] / "docs" / "images"
TEMPLATE = Path(__file__).with_name("drawing.svg")
#: Set: the test writes the files, which it compares otherwise.
DRAW = "DRAW_STEPS"
BROWSER, SITE, SERVICE = "browser", "site", "service"
#: Where each line of life stands.
PLACES = {BROWSER: 120, SITE: 430, SERVICE: 740}
NAMES = {BROWSER: "person's browser", SITE: "site", SERVICE: "service"}
TOP, ROW = 92, 46


class Step(NamedTuple):
    """A request and its answer; from the site to itself: what it then has."""

    sender: str
    receiver: str
    said: str
    means: str = ""


def drawn(title: str, steps: Sequence[Step]) -> str:
    rows = []
    for number, step in enumerate(steps):
        begin, end = PLACES[step.sender], PLACES[step.receiver]
        way = 1 if end > begin else -1
        rows.append(
            {
                "number": number + 1,
                "step": step,
                "y": TOP + ROW * number,
                "begin": begin,
                "end": end,
                "inset": 4 * way,
                "back": -4 * way,
                # The words of a long arrow stand in its first half.
                "middle": 155 * way,
            },
        )
    lives = [(NAMES[who], x) for who, x in PLACES.items()]
    shown = {
        "title": title,
        "rows": rows,
        "lives": lives,
        "height": TOP + ROW * len(rows),
    }
    return Engine().from_string(TEMPLATE.read_text("utf-8")).render(Context(shown))


def main() -> int:
    os.environ[DRAW] = "1"
    return pytest.main(["-q", "-m", "integration", "tests/test_drawings.py"])


if __name__ == "__main__":
    sys.exit(main())
