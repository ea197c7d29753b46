"""A site, a service that plays the spec, and a browser without a person."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import pytest
from django.http import HttpResponse
from django.test import Client, override_settings
from django.urls import reverse

from tests.hostile import HostileService, hostile_service


@pytest.fixture
def service() -> Iterator[HostileService]:
    with (
        hostile_service() as running,
        override_settings(DJANGO_IDENTITY={"default": running.settings()}),
    ):
        yield running


def begin(client: Client, next_url: str = "") -> str:
    """Press the button; returns the state that went to the service."""
    response = client.post(reverse("identity:login"), {"next": next_url})
    assert response.status_code == 302
    return parse_qs(urlsplit(response["Location"]).query)["state"][0]


def come_back(client: Client, state: str, **query: str) -> HttpResponse:
    given = {"code": "a-code", "state": state, **query}
    return client.get(reverse("identity:callback"), given)


def sign_in(client: Client, next_url: str = "") -> HttpResponse:
    return come_back(client, begin(client, next_url))
