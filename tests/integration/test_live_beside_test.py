"""One site, live beside test, against one sandbox over TLS: nothing mixes."""

from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.test import Client, override_settings
from django.urls import reverse

from django_identity.gates import claims_of
from django_identity.models import LinkedIdentity
from tests.sandbox.driver import Application, Sandbox, certificates, started
from tests.service.environment import environment
from tests.views.connect.pages import page_of

pytestmark = pytest.mark.django_db(transaction=True)

HOST = "https://testserver"
ALIASES = {"live": "default", "test": "try"}
OTHER = {"live": "test", "test": "live"}
BOTH_WAYS = pytest.mark.parametrize("mode", list(ALIASES))


def address(name: str, mode: str) -> str:
    """The path of a page of the application of ``mode``."""
    return reverse(f"identity:{name}", args=[] if mode == "live" else [ALIASES[mode]])


def begin(client: Client, mode: str) -> str:
    """Press the button of ``mode``; the address that it leads to."""
    leaving = client.post(address("login", mode), {"next": "/"}, secure=True)
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
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    ca_file, server_file = certificates(tmp_path_factory.mktemp("certificates"))
    with (
        environment(SSL_CERT_FILE=str(ca_file)),
        started("--tls-cert", str(server_file)) as sandbox,
    ):
        yield sandbox


@pytest.fixture
def sandbox(secure: Sandbox) -> Iterator[Sandbox]:
    """Both credential sets of one of its applications are two applications of the site."""
    cache.clear()
    callbacks = [HOST + address("callback", mode) for mode in ALIASES]
    registered = Application(secure, redirect_uris=callbacks)
    settings = {}
    for mode, alias in ALIASES.items():
        registered.use(mode)
        settings[alias] = {
            "ENVIRONMENT": mode,
            "BASE_URL": secure.api,
            "AUTH_URL": secure.origin,
            "CLIENT_ID": registered.client_id,
            "CLIENT_SECRET": registered.client_secret,
            "REDIRECT_URI": HOST + address("callback", mode),
        }
    with override_settings(DJANGO_IDENTITY=settings):
        yield secure


@BOTH_WAYS
def test_each_signs_in_its_own_people(
    sandbox: Sandbox, client: Client, mode: str
) -> None:
    """Over TLS of a private authority; gates open, claims are of that environment."""
    person, callback = approve(sandbox, begin(client, mode), mode)
    assert client.get(callback, secure=True)["Location"] == "/"
    identity = LinkedIdentity.objects.get(subject=person)
    assert (identity.application, identity.environment) == (ALIASES[mode], mode)
    assert client.get("/", secure=True).content.decode() == identity.user.get_username()
    assert "age_over_18" in claims_of(identity.user, application=ALIASES[mode])
    assert claims_of(identity.user, application=ALIASES[OTHER[mode]]) == {}


@BOTH_WAYS
def test_a_code_of_the_other_environment_links_nobody(
    sandbox: Sandbox, client: Client, mode: str
) -> None:
    """Somebody swaps it into the callback of a sign-in that began here."""
    _, foreign = approve(sandbox, begin(Client(), OTHER[mode]), OTHER[mode])
    code = parse_qs(urlsplit(foreign).query)["code"][0]
    state = parse_qs(urlsplit(begin(client, mode)).query)["state"][0]
    answer = client.get(
        address("callback", mode), {"code": code, "state": state}, secure=True
    )
    page_of(answer, "environment_mismatch")
    assert not LinkedIdentity.objects.exists()
    assert not User.objects.exists()
