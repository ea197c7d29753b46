"""A table of the package that has a row for each case is read by its columns, and forgets none."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from django_identity import event_types
from django_identity.event_types import KINDS, Effect, EventType
from django_identity.exceptions.table import ERRORS
from django_identity.lifecycle.said import effects
from django_identity.lifecycle.standing import standing
from django_identity.texts import labels
from tests.factories import make_identity, make_user

ROOT = Path(event_types.__file__).parent
DOCS = Path(__file__).parents[1] / "docs"
#: The table itself; who plays the service; and what people read for each type.
MAY_NAME_TYPES = ("event_types.py", "sandbox", "testing/drill", "texts/labels.py")


def files() -> Iterator[tuple[str, ast.Module]]:
    for path in ROOT.rglob("*.py"):
        name = str(path.relative_to(ROOT))
        if not name.startswith(MAY_NAME_TYPES):
            yield name, ast.parse(path.read_text())


def names_a_type(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return node.value.id == "EventType"
    return isinstance(node, ast.Constant) and node.value in set(EventType)


def test_nobody_goes_by_the_name_of_an_event_type():
    """``KINDS`` has a column for what types have in common, so that a new type is one row."""
    naming = [name for name, tree in files() if any(map(names_a_type, ast.walk(tree)))]
    assert naming == []


def test_each_effect_has_a_function():
    assert {*effects.EFFECTS} == {*Effect}


def test_people_read_a_name_for_each_event_type():
    assert {*KINDS} <= {*labels.WORDS}


def test_the_docs_say_what_each_event_does():
    assert named_in("webhooks.md", "What an event does") == {*KINDS}


def test_the_docs_help_with_codes_that_exist():
    """What helps a person who is locked out."""
    codes = named_in("admin.md", "A person who is locked out")
    assert codes
    assert codes <= {*ERRORS}


def named_in(page: str, heading: str) -> set[str]:
    """What stands in backticks in the first cells of the first table below the heading."""
    text = (DOCS / page).read_text("utf-8").partition(f"## {heading}\n")[2]
    table = text[text.index("|---") :].partition("\n\n")[0]
    cells = re.findall(r"^\| (`[^|]+) \|", table, re.MULTILINE)
    return {*re.findall(r"`([^`]+)`", "\n".join(cells))}


class Unforeseen:
    """A kind of requirement that somebody adds to the union, and nowhere else."""

    code = "unforeseen"


@pytest.mark.django_db
def test_a_requirement_without_a_case_opens_nothing():
    """It is a type error at each reader, and at run time nothing is open."""
    of = standing.standing_with(make_identity(make_user()), [])
    asked: Any = Unforeseen()
    for read in (of.shortfall, labels.has_words):
        with pytest.raises(AssertionError):
            read(asked)
