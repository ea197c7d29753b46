"""A table of the package that has a row for each case is read by its columns, and forgets none."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from django_identity import event_types
from django_identity.event_types import EventType
from django_identity.lifecycle.standing import standing
from django_identity.requirements import Requirement
from django_identity.texts import labels
from tests.factories import make_identity, make_user

ROOT = Path(event_types.__file__).parent
#: The table itself; who plays the service; and what people read for each type.
MAY_NAME_TYPES = ("event_types.py", "sandbox", "instruments/drill", "texts/labels.py")


def files() -> Iterator[tuple[str, ast.Module]]:
    for path in ROOT.rglob("*.py"):
        name = str(path.relative_to(ROOT))
        if not name.startswith(MAY_NAME_TYPES):
            yield name, ast.parse(path.read_text())


def names_a_type(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return node.value.id == "EventType"
    return isinstance(node, ast.Constant) and node.value in set(EventType)


def test_nobody_goes_by_the_name_of_an_event_type() -> None:
    """``KINDS`` has a column for what types have in common, so that a new type is one row."""
    assert {
        name
        for name, tree in files()
        if any(names_a_type(node) for node in ast.walk(tree))
    } == set()


class Unforeseen:
    """A kind of requirement that somebody adds to the union, and nowhere else."""

    code = "unforeseen"


@pytest.mark.django_db
def test_a_requirement_without_a_case_opens_nothing() -> None:
    """It is a type error at each reader, and at run time nothing is open."""
    of = standing.standing_with(make_identity(make_user()), [])
    asked: Any = Unforeseen()
    for read in (of.shortfall, labels.has_words):
        with pytest.raises(AssertionError):
            read(asked)


def test_each_match_over_requirements_ends_in_assert_never() -> None:
    kinds = {kind.__name__ for kind in Requirement.__args__}
    for name, tree in files():
        for node in ast.walk(tree):
            if not isinstance(node, ast.Match):
                continue
            patterns = [case.pattern for case in node.cases]
            matched = {
                each.cls.id
                for each in patterns
                if isinstance(each, ast.MatchClass) and isinstance(each.cls, ast.Name)
            }
            if matched & kinds:
                last = ast.unparse(node.cases[-1])
                assert "assert_never" in last, name
