"""The list of sabotages is kept: each still changes one place of the package."""

import ast

import pytest

from tests.sabotage.rooms import ROOMS
from tests.sabotage.sabotage import Room, Sabotage
from tests.sabotage.workshop import ROOT

ALL = [sabotage for room in ROOMS for sabotage in room.sabotages]


@pytest.mark.parametrize("sabotage", ALL, ids=[each.name for each in ALL])
def test_text_is_found_exactly_once(sabotage: Sabotage) -> None:
    """If you have changed this line: name the rule's new place in ``tests/sabotage``."""
    changed = sabotage.changed()
    ast.parse(changed)
    assert sabotage.after in changed


@pytest.mark.parametrize("room", ROOMS, ids=[room.name for room in ROOMS])
def test_room_names_test_files(room: Room) -> None:
    assert [path for path in room.tests if not (ROOT / path).is_file()] == []


def test_each_has_a_name_of_its_own() -> None:
    names = [each.name for each in (*ROOMS, *ALL)]

    assert len({*names}) == len(names)
