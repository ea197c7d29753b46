"""The page on the interface: every file, function and test that it names exists."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

from django_identity.sandbox.instruments.switches import Switches

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "interface.md").read_text("utf-8")
FOLDERS = (ROOT / "django_identity", ROOT / "django_identity" / "sandbox", ROOT / "tests")
ROWS = [
    [cell.strip() for cell in line.strip("|\n").split(" | ")]
    for line in re.findall(r"^\| \d+ \|.*$", PAGE, re.MULTILINE)
]
NAMED = re.compile(r"`([\w/]+\.py)::([\w.]+)`")
NOT_OURS = "not ours: "
LEAST_ROWS = 140


@cache
def names_in(path: Path) -> frozenset[str]:
    """What the module defines: functions, classes, constants, and the members of its classes."""
    names: set[str] = set()
    for node in ast.parse(path.read_text("utf-8") if path.exists() else "").body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        if isinstance(node, ast.ClassDef):
            members = (each for each in node.body if isinstance(each, ast.FunctionDef))
            names |= {f"{node.name}.{each.name}" for each in members}
        if isinstance(node, ast.Assign):
            names |= {each.id for each in node.targets if isinstance(each, ast.Name)}
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
    return frozenset(names)


def test_every_statement_has_a_row() -> None:
    """About 140, numbered, each with six cells."""
    assert len(ROWS) >= LEAST_ROWS
    assert [int(row[0]) for row in ROWS] == list(range(1, len(ROWS) + 1))
    assert {len(row) for row in ROWS} == {6}


def test_what_the_rows_name_exists() -> None:
    """The package's function, the sandbox's function and the tests, unless it is not ours to do."""
    for number, _statement, *cells, _choice in ROWS:
        for folder, cell in zip(FOLDERS, cells, strict=True):
            named = NAMED.findall(cell)
            is_test = folder.name == "tests"
            assert named or (cell.startswith(NOT_OURS) and not is_test), (number, cell)
            for file, name in named:
                assert name in names_in(folder / file), (number, file, name)
                assert not is_test or name.startswith("test_"), (number, name)


def test_the_tests_below_the_rows_exist() -> None:
    """Those against other implementations."""
    named = NAMED.findall(PAGE.partition("## Other implementations")[2])
    assert named
    assert not [each for each in named if each[1] not in names_in(ROOT / "tests" / each[0])]


def test_every_switch_has_a_row() -> None:
    """Each reading that the sandbox can play is a choice on the page, and each choice is one."""
    told = set(re.findall(r"`(\w+)`", " ".join(row[5] for row in ROWS if "witch" in row[5])))
    assert told >= set(Switches.__dataclass_fields__)
