"""A site whose URL patterns a test replaces, and what the map says of it."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.urls import clear_url_caches

from tests.commands.run_command import run
from tests.instruments import replaced_urls

Change = Callable[..., None]


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch, settings: Any) -> Change:
    """Gives the site other URL patterns."""
    settings.ROOT_URLCONF = "tests.instruments.replaced_urls"

    def change(*patterns: Any) -> None:
        monkeypatch.setattr(replaced_urls, "urlpatterns", list(patterns))
        clear_url_caches()

    return change


def listed(*options: object) -> list[str]:
    """The lines without their titles, and with ``; `` between the columns."""
    lines = run("identity_gates", *options).out.splitlines()[1:]
    return [re.sub(" {2,}", "; ", line) for line in lines]
