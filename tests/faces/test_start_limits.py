"""Started sign-ins: twenty in ten minutes for each browser, 300 for each network address."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client, override_settings
from django.urls import reverse
from django.utils import timezone

from django_identity import tasks
from django_identity.models import AuthorizationRequest
from tests.faces.conftest import begin, sign_in
from tests.hostile import HostileService

pytestmark = pytest.mark.django_db(transaction=True)

LOGIN, API_LOGIN = "identity:login", "identity:api:login"


def limited(service: HostileService, **given: Any) -> override_settings:
    return override_settings(DJANGO_IDENTITY={"default": service.settings(**given)})


def start(client: Client, name: str = LOGIN, **extra: Any) -> Any:
    return client.post(reverse(name), {"next": "/adults/"}, **extra)


def test_the_twenty_first_start_waits(client: Client, service: HostileService) -> None:
    """The page says so, and how to go on; nothing is stored for it."""
    for _ in range(20):
        begin(client)
    response = start(client)
    assert (response.status_code, response["Retry-After"]) == (429, "600")
    assert "too_many_starts" in response.text
    assert "/identity/login/?next=%2Fadults%2F" in response.text
    assert AuthorizationRequest.objects.count() == 20
    begin(Client())


def test_an_address_has_its_own_limit(service: HostileService) -> None:
    """A visitor without cookies is a new browser each time, but not a new address."""
    with limited(service, STARTS_PER_ADDRESS=3):
        for _ in range(3):
            begin(Client())
        assert start(Client()).status_code == 429
        assert start(Client(), REMOTE_ADDR="198.51.100.7").status_code == 302
        assert start(Client(), REMOTE_ADDR="").status_code == 302


def test_a_refused_start_uses_up_nobody_elses(client: Client, service: HostileService) -> None:
    """The browser that must wait does not lock out its neighbours."""
    with limited(service, STARTS_PER_BROWSER=1, STARTS_PER_ADDRESS=3):
        begin(client)
        for _ in range(5):
            assert start(client).status_code == 429
        begin(Client())


def test_a_limit_can_be_switched_off(client: Client, service: HostileService) -> None:
    with limited(service, STARTS_PER_BROWSER=None, STARTS_PER_ADDRESS=None):
        for _ in range(25):
            begin(client)


def test_the_api_says_it_in_json(service: HostileService) -> None:
    client = Client()
    with limited(service, STARTS_PER_BROWSER=1):
        assert client.post(reverse(API_LOGIN), {}, "application/json").status_code == 200
        response = client.post(reverse(API_LOGIN), {}, "application/json")
    assert (response.status_code, response["Retry-After"]) == (429, "600")
    assert response.json()["code"] == "too_many_starts"
    assert response.json()["retry_after"] == 600


def test_expired_sign_ins_go_with_the_hourly_purge(client: Client, service: HostileService) -> None:
    sign_in(client)
    begin(client)
    tasks.purge()
    assert AuthorizationRequest.objects.count() == 2
    AuthorizationRequest.objects.update(expires_at=timezone.now())
    tasks.purge()
    assert not AuthorizationRequest.objects.exists()
