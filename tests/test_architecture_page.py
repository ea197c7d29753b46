"""The page on the architecture names functions and packages that exist."""

from __future__ import annotations

import re
from pathlib import Path
from pkgutil import resolve_name

import pytest

DOCS = Path(__file__).parents[1] / "docs"
PAGE = (DOCS / "architecture.md").read_text("utf-8")
PICTURE = (DOCS / "images" / "architecture.svg").read_text("utf-8")
ROOT = Path(__file__).parents[1]
NAMES = sorted(set(re.findall(r"`([a-z_]+(?:\.\w+)+)`", PAGE)))


def test_the_page_names_functions() -> None:
    """The three journeys name functions of every room."""
    rooms = {"operators", "arrival", "standing", "upkeep", "erasure", "events"}
    named = {name.split(".")[1] for name in NAMES if name.startswith("lifecycle.")}
    assert named == rooms - {"operators"}
    assert len(NAMES) > 40


@pytest.mark.parametrize("name", NAMES)
def test_every_name_exists(name: str) -> None:
    """Each dotted name on the page can be imported."""
    resolve_name(f"django_identity.{name}")


def test_the_picture_shows_every_layer() -> None:
    """The modules that the import rules list are in the picture."""
    rules = (ROOT / ".importlinter").read_text("utf-8")
    house = rules.split("[importlinter:contract:lifecycle]")[0]
    layers = house.split("layers =")[1].split("exhaustive_ignores")[0]
    modules = set(re.findall(r"[a-z_]+", layers)) - {"lifecycle", "models"}
    assert {module for module in modules if module not in PICTURE} == set()
