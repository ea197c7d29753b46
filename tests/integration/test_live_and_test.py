"""A site of either environment, against one sandbox over TLS: nothing mixes."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from urllib.parse import parse_qs, urlsplit

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.test import Client, override_settings
from django.urls import reverse

from django_identity.gates import claims_of
from django_identity.models import LinkedIdentity
from tests.factories import again
from tests.sandbox.driver import Application, Sandbox, certificates, started
from tests.service.environment import environment
from tests.views.connect.pages import page_of

pytestmark = pytest.mark.django_db(transaction=True)

HOST = "https://testserver"
OTHER = {"live": "test", "test": "live"}
BOTH_WAYS = pytest.mark.parametrize("mode", list(OTHER))


def begin(client: Client) -> str:
    """Press the button; the address that it leads to."""
    leaving = client.post(reverse("identity:login"), {"next": "/"}, secure=True)
    assert leaving.status_code == 302, leaving.content
    return str(leaving["Location"])


def approve(sandbox: Sandbox, location: str, mode: str) -> tuple[str, str]:
    """Somebody of ``mode`` approves; who, and the callback's path and query."""
    person = sandbox.control("POST", "users", environment=mode, verified=True)[
        "user_id"
    ]
    approved = sandbox.control("POST", "authorizations", url=location, user_id=person)
    return person, str(approved["callback"]).removeprefix(HOST)


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    ca_file, server_file = certificates(tmp_path_factory.mktemp("certificates"))
    with (
        environment(SSL_CERT_FILE=str(ca_file)),
        started("--tls-cert", str(server_file)) as running,
    ):
        yield running


@pytest.fixture
def registered(sandbox: Sandbox) -> Application:
    cache.clear()
    return Application(sandbox, redirect_uris=[HOST + reverse("identity:callback")])


def site(registered: Application, mode: str) -> AbstractContextManager[None]:
    """The site with the credentials of ``mode``."""
    registered.use(mode)
    return override_settings(
        DJANGO_IDENTITY={
            "ENVIRONMENT": mode,
            "BASE_URL": registered.sandbox.api,
            "AUTH_URL": registered.sandbox.origin,
            "CLIENT_ID": registered.client_id,
            "CLIENT_SECRET": registered.client_secret,
        }
    )


@BOTH_WAYS
def test_each_signs_in_its_own_people(sandbox, registered, client, mode):
    """Over TLS of a private authority; gates open while the site is of that environment."""
    with site(registered, mode):
        person, callback = approve(sandbox, begin(client), mode)
        assert client.get(callback, secure=True)["Location"] == "/"
        identity = LinkedIdentity.objects.get(subject=person)
        assert identity.environment == mode
        name = identity.user.get_username()
        assert client.get("/", secure=True).content.decode() == name
        assert "age_over_18" in claims_of(again(identity.user))
    with site(registered, OTHER[mode]):
        assert claims_of(again(identity.user)) == {}
        assert client.get("/", secure=True).content.decode() == ""


@BOTH_WAYS
def test_a_code_of_the_other_environment_links_nobody(
    sandbox, registered, client, mode
):
    """Somebody swaps it into the callback of a sign-in that began here."""
    with site(registered, OTHER[mode]):
        _, foreign = approve(sandbox, begin(Client()), OTHER[mode])
    code = parse_qs(urlsplit(foreign).query)["code"][0]
    with site(registered, mode):
        state = parse_qs(urlsplit(begin(client)).query)["state"][0]
        client.get(
            reverse("identity:callback"), {"code": code, "state": state}, secure=True
        )
        answer = client.get(reverse("identity:answer"), secure=True)
    page_of(answer, "environment_mismatch")
    assert not LinkedIdentity.objects.exists()
    assert not User.objects.exists()
