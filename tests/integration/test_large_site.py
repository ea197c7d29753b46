"""A URLconf with a hundred thousand patterns is mapped and compared."""

import time
from typing import Any

import pytest
from django.urls import clear_url_caches, path

from django_identity.instruments import gate_map
from django_identity.instruments.gate_map import text
from tests.gates.gated_views import adult, view
from tests.instruments import replaced_urls

pytestmark = pytest.mark.urls("tests.instruments.replaced_urls")


def patterns(door: Any) -> list[Any]:
    gated = adult(view)
    return [
        path("door/", door),
        *(path(f"pages/{number}/", gated) for number in range(50_000)),
        *(path(f"shops/{number}/<int:key>/", gated) for number in range(40_000)),
        *(path(f"<slug:page>/{number}/", gated) for number in range(10_000)),
    ]


def mapped(monkeypatch: pytest.MonkeyPatch, door: Any) -> list[str]:
    monkeypatch.setattr(replaced_urls, "urlpatterns", patterns(door))
    clear_url_caches()
    return list(text.lines(gate_map.addresses()))


def test_one_opened_address_among_a_hundred_thousand(monkeypatch):
    """In minutes of one processor, and without a word about the others."""
    began = time.process_time()
    before = mapped(monkeypatch, adult(view))
    changed = text.changed(before, mapped(monkeypatch, view))
    assert [line.split()[0] for line in changed] == ["-/door/", "+/door/"]
    assert len(before) > 100_001
    assert time.process_time() - began < 120
