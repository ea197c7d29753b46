"""Tokens, django-ninja and a stream: the snippets of ``docs/beside.md`` on a running site."""

from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from django_identity.testing.sandbox import SandboxPerson
from tests.sites.browser import Browser
from tests.sites.running_site import RunningSite
from tests.sites.site_table import MEMBER, steps_of

pytestmark = steps_of("beside_others")
#: In which a stream must have ended: its pause, and a slow machine.
SOON = 20.0


class App:
    """A front end that keeps the person's tokens. It has no cookie."""

    def __init__(
        self,
        site: RunningSite,
        client: httpx.Client,
        tokens: dict[str, str],
    ) -> None:
        self._address = site.address
        self._client = client
        self._tokens = tokens
        self._headers = {"Authorization": f"Bearer {tokens['access']}"}

    def ask(self, path: str) -> httpx.Response:
        return self._client.get(self._address + path, headers=self._headers)

    def begin(self) -> httpx.Response:
        """Begin to renew, by the token alone."""
        address = f"{self._address}/identity/api/login"
        return self._client.post(address, json={"next": "/"}, headers=self._headers)

    def refresh(self) -> httpx.Response:
        kept = {"refresh": self._tokens["refresh"]}
        return self._client.post(f"{self._address}/tokens/refresh/", json=kept)


@contextmanager
def exchanging(site: RunningSite, browser: Browser) -> Iterator[App]:
    """Exchange the session of ``browser`` for tokens."""
    token = browser.open("/identity/api/me").json()["csrf_token"]
    answer = browser.send("/tokens/", {"X-CSRFToken": token})
    assert answer.status_code == 200
    with site.new_client() as client:
        yield App(site, client, answer.json())


@pytest.fixture
def app(site: RunningSite, browser: Browser, person: SandboxPerson) -> Iterator[App]:
    browser.sign_in(person)
    with exchanging(site, browser) as signed_in:
        yield signed_in


def test_a_session_is_exchanged_for_tokens(app, browser):
    """A page of another site could not, and a token alone begins no renewal."""
    assert app.ask("/by-token/wine").json() == {"drink": "wine"}
    assert app.refresh().status_code == 200
    assert browser.send("/tokens/", {}).status_code == 403
    refused = app.begin()
    assert refused.status_code == 403
    assert refused.json()["code"] == "session_needed"


@pytest.mark.parametrize("ending", ["revoked", "everywhere"])
def test_no_token_is_refreshed_after_the_sessions_ended(
    app,
    site,
    browser,
    person,
    ending,
):
    """By a revocation, or "sign out everywhere"; another person's tokens go on."""
    with Browser(site) as other:
        other.sign_in(site.sandbox.create_person())
        with exchanging(site, other) as bystander:
            if ending == "revoked":
                site.sandbox.revoke_consent(person)
                site.settle()
            else:
                browser.open("/identity/account/")
                browser.submit(holding="everywhere", everywhere="1")
            assert app.refresh().status_code == 401
            assert bystander.refresh().status_code == 200
    # A gate asks about the person, and not about the token.
    closed = app.ask("/by-token/wine")
    assert closed.status_code == (403 if ending == "revoked" else 200)


def test_a_gate_around_an_operation_of_ninja(site, browser, person):
    """Nobody: 401. Somebody without the proof: 403 as a problem. Open: the operation's answer."""
    nobody = browser.fetch("/ninja/wine")
    assert nobody.status_code == 401
    assert nobody.json()["code"] == "not_signed_in"
    browser.sign_in_locally(MEMBER)
    lacking = browser.fetch("/ninja/wine")
    assert lacking.status_code == 403
    assert lacking.json()["code"] == "claim_missing"
    assert lacking.headers["Content-Type"] == "application/problem+json"
    with Browser(site) as adult:
        adult.sign_in(person)
        opened = adult.fetch("/ninja/wine")
        assert opened.json() == {"drink": "wine"}
        assert "private" in opened.headers["Cache-Control"]
        assert adult.fetch("/ninja/offers/NG").json()["claims"]["age_over_18"] is True
        elsewhere = adult.fetch("/ninja/offers/PT").json()
        assert elsewhere["code"] == "claim_missing"
        assert elsewhere["missing"] == "country_resident=PT"
        assert adult.fetch("/ninja/offers/a=b").status_code == 422
