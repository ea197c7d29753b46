"""The page on security: every test that it names exists, and every threat names one."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

TESTS = Path(__file__).parent
PAGE = (TESTS.parent / "docs" / "security.md").read_text()
NAMED = sorted(set(re.findall(r"`([\w/]+\.py)::(\w+)`", PAGE)))
ATTACKERS = 7


@cache
def defined_in(file: str) -> set[str]:
    path = TESTS / file
    parsed = ast.parse(path.read_text() if path.exists() else "")
    return {node.name for node in parsed.body if isinstance(node, ast.FunctionDef)}


def test_every_named_test_exists() -> None:
    """A defence that nothing tests any more must not be promised."""
    assert len(NAMED) > 80
    assert not [(file, name) for file, name in NAMED if name not in defined_in(file)]


def test_every_threat_names_a_test() -> None:
    """Each table after the first ends its rows with tests, whoever attacks."""
    tables = re.findall(r"^\| (?:threat|mistake) .*\n\|[-|]+\n((?:\|.*\n)+)", PAGE, re.MULTILINE)
    assert len(tables) == ATTACKERS
    rows = [row for table in tables for row in table.splitlines()]
    assert not [row for row in rows if "::test_" not in row.rsplit(" | ", 1)[1]]
