"""Our client against a provider on Authlib's server."""

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from django.http import HttpResponse
from django.test import Client, override_settings
from django.urls import reverse
from django.utils import timezone

from django_identity import conf
from django_identity.exceptions import InvalidGrant
from django_identity.gates import claims_of
from django_identity.lifecycle.standing import standing_of
from django_identity.lifecycle.tokens import access_token_for
from django_identity.lifecycle.upkeep import Refetched
from django_identity.models import LinkedIdentity, TokenGrant
from django_identity.secrets import Secret
from django_identity.service import ServiceClient
from tests.factories import unsealed
from tests.lifecycle.refetching import refetched
from tests.others.resources import SUBJECT, VALUES
from tests.sandbox.driver import TLS

pytestmark = [pytest.mark.integration, pytest.mark.django_db(transaction=True)]


@pytest.fixture(scope="module")
def provider() -> Iterator[dict[str, str]]:
    command = [sys.executable, "-m", "tests.others.provider"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline())
        finally:
            process.terminate()


@pytest.fixture
def site(provider: dict[str, str]) -> Iterator[dict[str, Any]]:
    given = {
        "ENVIRONMENT": "test",
        "BASE_URL": f"{provider['origin']}/api/v1",
        "AUTH_URL": provider["origin"],
        "CLIENT_ID": provider["client_id"],
        "CLIENT_SECRET": provider["client_secret"],
    }
    with override_settings(DJANGO_IDENTITY={"default": given}):
        yield given


def came_back(client: Client) -> HttpResponse:
    """Press the button; the provider knows the person, who approves."""
    leaving = client.post(reverse("identity:login"), {"next": "/"})
    answer = httpx.get(leaving["Location"], verify=TLS, trust_env=False)
    assert answer.status_code == 302, answer.text
    parts = urlsplit(answer.headers["Location"])
    return client.get(f"{parts.path}?{parts.query}")


def test_a_person_signs_in(client: Client, site: dict[str, Any]) -> None:
    """Whoever they are: the subject is opaque text, learnt from ``/users/me/…``."""
    answer = came_back(client)
    assert (answer.status_code, answer["Location"]) == (302, "/")
    identity = LinkedIdentity.objects.get()
    assert identity.subject == SUBJECT
    assert claims_of(identity.user) == VALUES
    assert standing_of(identity.user).level_shortfall("level_2") is None
    assert identity.user.last_name == "Öbi"


def test_the_same_person_comes_back(client: Client, site: dict[str, Any]) -> None:
    """In another browser, to the same account."""
    came_back(client)
    came_back(Client())
    assert LinkedIdentity.objects.count() == 1


def test_tokens_rotate(client: Client, site: dict[str, Any]) -> None:
    """An expired access token is refreshed; the spent refresh token is of no use."""
    came_back(client)
    identity, grant = LinkedIdentity.objects.get(), TokenGrant.objects.get()
    spent = unsealed(identity, "refresh_token", grant.refresh_token)
    before = unsealed(identity, "access_token", grant.access_token)
    TokenGrant.objects.update(access_expires_at=timezone.now())
    assert access_token_for(identity).reveal() != before
    assert refetched(identity) is Refetched.STORED
    with pytest.raises(InvalidGrant):
        ServiceClient(conf.application()).refresh(Secret(spent))


def test_a_wrong_secret_is_told(client: Client, site: dict[str, Any]) -> None:
    """As a mistake of the site's operators, whose reference is on the page."""
    given = {**site, "CLIENT_SECRET": "another-secret-of-some-length"}
    with override_settings(DJANGO_IDENTITY={"default": given}):
        page = came_back(client)
    assert "client_rejected" in page.content.decode()
    assert not LinkedIdentity.objects.exists()
