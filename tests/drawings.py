"""Drawings of who asks whom, in order: ``python -m tests.drawings`` draws all of them anew.

The steps are those of a run against the sandbox, which ``tests/test_drawings.py`` makes.
"""

import os
import sys
from collections.abc import Sequence
from html import escape
from pathlib import Path
from textwrap import dedent
from typing import NamedTuple

import pytest

IMAGES = Path(__file__).parents[1] / "docs" / "images"
#: Set: the test writes the files, which it compares otherwise.
DRAW = "DRAW_STEPS"
BROWSER, SITE, SERVICE = "browser", "site", "service"
#: Where each line of life stands.
PLACES = {BROWSER: 120, SITE: 430, SERVICE: 740}
NAMES = {BROWSER: "person's browser", SITE: "site", SERVICE: "service"}
WIDTH, TOP, ROW = 860, 92, 46
STYLE = """
    svg { background: #fff }
    .who { fill: #f5f7fa; stroke: #5b6b82 }
    .life { stroke: #c3ccd8; stroke-width: 1.5 }
    .rows { fill: #fff8e6; stroke: #b08a2e }
    text { fill: #1d2733 }
    .name { font-weight: 600 }
    .note { font-size: 12px; fill: #4a5768 }
    .arrow { stroke: #2f5fb3; stroke-width: 1.6; fill: none; marker-end: url(#tip) }
    .tip { fill: #2f5fb3 }
    @media (prefers-color-scheme: dark) {
      svg { background: #12161c }
      .who { fill: #232c38; stroke: #8797ad } .life { stroke: #3a4656 }
      .rows { fill: #2b2616; stroke: #d0ab52 } text { fill: #e8edf3 } .note { fill: #a9b6c6 }
      .arrow { stroke: #7fa8f0 } .tip { fill: #7fa8f0 }
    }
"""


class Step(NamedTuple):
    """A request and its answer; from the site to itself: what it then has."""

    sender: str
    receiver: str
    said: str
    means: str = ""


def drawn(title: str, steps: Sequence[Step]) -> str:
    """The steps as SVG, from top to bottom."""
    told = ". ".join(
        f"{number}. {step.sender} to {step.receiver}: {step.said}"
        for number, step in enumerate(steps, 1)
    )
    height = TOP + ROW * len(steps)
    rows = [_row(number, step) for number, step in enumerate(steps)]
    return (
        dedent(f"""\
        <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}"
          role="img" aria-labelledby="title desc" text-anchor="middle"
          font-family="system-ui, sans-serif" font-size="14">
          <title id="title">{escape(title)}</title>
          <desc id="desc">{escape(told)}.</desc>
          <style>STYLE  </style>
          <defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5"
            markerWidth="7" markerHeight="7" orient="auto">
            <path class="tip" d="M0 0L10 5L0 10z"/></marker></defs>
        """).replace("STYLE", STYLE)
        + "".join(f"  {line}\n" for line in (*_lives(height), *rows))
        + "</svg>\n"
    )


def _lives(height: int) -> list[str]:
    return [
        f'<path class="life" d="M{x} 52V{height - 8}"/>'
        f'<rect class="who" x="{x - 75}" y="14" width="150" height="38" rx="6"/>'
        f'<text class="name" x="{x}" y="38">{NAMES[who]}</text>'
        for who, x in PLACES.items()
    ]


def _row(number: int, step: Step) -> str:
    y = TOP + ROW * number
    begin, end = PLACES[step.sender], PLACES[step.receiver]
    said = f"{number + 1}  {escape(step.said)}"
    if step.sender == step.receiver:
        return (
            f'<rect class="rows" x="{begin - 180}" y="{y - 20}" width="360" height="40" rx="6"/>'
            f'<text x="{begin}" y="{y - 3}">{said}</text>'
            f'<text class="note" x="{begin}" y="{y + 13}">{escape(step.means)}</text>'
        )
    # The words of a long arrow stand in its first half.
    middle = begin + (155 if end > begin else -155)
    inset = 4 if end > begin else -4
    return (
        f'<path class="arrow" d="M{begin + inset} {y}H{end - inset}"/>'
        f'<text x="{middle}" y="{y - 6}">{said}</text>'
        f'<text class="note" x="{middle}" y="{y + 15}">{escape(step.means)}</text>'
    )


def main() -> int:
    os.environ[DRAW] = "1"
    return pytest.main(["-q", "tests/test_drawings.py"])


if __name__ == "__main__":
    sys.exit(main())
