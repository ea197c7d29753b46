"""Our client against a provider on Authlib's server."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from django.http import HttpResponseBase
from django.test import Client, override_settings
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
from django_identity.testing import browser
from tests import urls
from tests.factories import unsealed
from tests.lifecycle.refetching import refetched
from tests.others import provider
from tests.others.provider import CLIENT_ID, CLIENT_SECRET, SUBJECT, VALUES
from tests.sandbox.driver import TLS

pytestmark = [pytest.mark.integration, pytest.mark.django_db(transaction=True)]
# The site and the provider: the live server answers for both.
urlpatterns = [*provider.urlpatterns, *urls.urlpatterns]


@pytest.fixture
def site(live_server: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    monkeypatch.setenv("AUTHLIB_INSECURE_TRANSPORT", "1")
    given = {
        "ENVIRONMENT": "test", "BASE_URL": f"{live_server.url}/api/v1",
        "AUTH_URL": live_server.url, "CLIENT_ID": CLIENT_ID, "CLIENT_SECRET": CLIENT_SECRET,
    }  # fmt: skip
    with override_settings(DJANGO_IDENTITY={"default": given}, ROOT_URLCONF=__name__):
        yield given


def came_back(client: Client) -> HttpResponseBase:
    """Press the button; the provider knows the person, who approves."""
    leaving = browser.begin(client, conf.application(), next_url="/", secure=False)
    answer = httpx.get(leaving, verify=TLS, trust_env=False)
    assert answer.status_code == 302, answer.text
    assert urlsplit(answer.headers["Location"]).netloc == "testserver"
    return browser.come_back(client, answer.headers["Location"], secure=False)


def test_a_person_signs_in(client: Client, site: dict[str, Any]) -> None:
    """Whoever they are: the subject is opaque text, learnt from ``/users/me/…``."""
    answer: Any = came_back(client)
    assert (answer.status_code, answer["Location"]) == (302, "/")
    # In another browser, to the same account.
    came_back(Client())
    identity = LinkedIdentity.objects.get()
    assert identity.subject == SUBJECT
    assert claims_of(identity.user) == VALUES
    assert standing_of(identity.user).level_shortfall("level_2") is None
    assert identity.user.last_name == "Öbi"


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
        page: Any = came_back(client)
    assert "client_rejected" in page.content.decode()
    assert not LinkedIdentity.objects.exists()
