"""A URLconf with a hundred thousand patterns is mapped, stored and compared."""

import json
import time
from typing import Any

import pytest
from django.urls import clear_url_caches, path

from django_identity.gates import site_map
from django_identity.gates.changes import Verdict, changes, map_as_json, map_from_json
from tests.gates import replaced_urls
from tests.gates.gated_views import adult, view

pytestmark = pytest.mark.urls("tests.gates.replaced_urls")


def patterns(door: Any) -> list[Any]:
    gated = adult(view)
    return [
        path("door/", door),
        *(path(f"pages/{number}/", gated) for number in range(50_000)),
        *(path(f"shops/{number}/<int:key>/", gated) for number in range(40_000)),
        *(path(f"<slug:page>/{number}/", gated) for number in range(10_000)),
    ]


def mapped(monkeypatch: pytest.MonkeyPatch, door: Any) -> list[site_map.Address]:
    monkeypatch.setattr(replaced_urls, "urlpatterns", patterns(door))
    clear_url_caches()
    return list(site_map.addresses())


def test_one_opened_address_among_a_hundred_thousand(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In minutes of one processor, and without a word about the others."""
    began = time.process_time()
    stored = json.dumps(map_as_json(mapped(monkeypatch, adult(view))))
    before = map_from_json(json.loads(stored))
    found = list(changes(before, mapped(monkeypatch, view)))
    assert [(each.verdict, each.address.url) for each in found] == [
        (Verdict.OPENED, "/door/")
    ]
    assert len(before) == 100_001
    assert time.process_time() - began < 120
