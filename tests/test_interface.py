"""docs/interface.md: a row for each statement, with tests that exist."""

import ast
import re
from pathlib import Path

TESTS = Path(__file__).parent
ROW = re.compile(r"^\| (\d+) \| [^|]+ \| ([^|]+) \| ([^|]+) \|", re.MULTILINE)
NAME = re.compile(r"`([\w/]+\.py)::(\w+)`")


def test_each_row_names_a_test_of_each_half() -> None:
    """Or says that the statement is not this half's; every test that is named exists."""
    page = (TESTS.parent / "docs" / "interface.md").read_text("utf-8")
    rows = ROW.findall(page)
    assert [int(number) for number, *_halves in rows] == list(range(1, 153))
    for number, *halves in rows:
        assert all(NAME.search(half) or half == "not ours" for half in halves), number
    missing = [f"{file}::{name}" for file, name in NAME.findall(page) if name not in names_in(file)]
    assert missing == []


def names_in(file: str) -> set[str]:
    path = TESTS / file
    tree = ast.parse(path.read_text("utf-8")) if path.exists() else ast.Module([], [])
    return {each.name for each in tree.body if isinstance(each, ast.FunctionDef)}
