"""What people are told on their way: names, what worked, what ended, what was open too long."""

import re
from typing import Any

import pytest
from django.core.exceptions import PermissionDenied
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from django_identity.backends import BACKEND_PATH
from django_identity.lifecycle import erasure
from django_identity.lifecycle.operators import interventions
from django_identity.models import Consent, LinkedIdentity
from django_identity.policy import IdentityPolicy
from django_identity.views.pages import status_words
from tests.factories import make_identity, make_user
from tests.fake_service import FakeService
from tests.sign_in import begin, come_back
from tests.views.connect.pages import LOCAL

pytestmark = pytest.mark.django_db(transaction=True)


def test_pages_name_the_service_and_the_site(
    client: Client, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The titles, the button, and the sentences; the site's links and reasons."""
    page = client.get("/identity/login/").content.decode()
    assert "testserver" not in page
    assert "<title>Continue with your identity service</title>" in page
    given = {**settings.DJANGO_IDENTITY["default"], "SERVICE_NAME": "VerifyMe"}
    settings.DJANGO_IDENTITY = {"default": given}
    monkeypatch.setattr(IdentityPolicy, "help_url", "/help/")
    monkeypatch.setattr(IdentityPolicy, "site_name", "Ajo Circle")
    monkeypatch.setattr(IdentityPolicy, "reasons", {"age_over_18": "A circle is a contract."})
    page = client.get("/identity/login/?missing=age_over_18").content.decode()
    assert "<title>Needed: you are 18 or older \N{EN DASH} Ajo Circle</title>" in page
    assert "You will go to VerifyMe, sign in there, and decide what Ajo Circle may know." in page
    assert "<span>Continue with VerifyMe</span>" in page
    assert "A circle is a contract." in page
    assert '<a href="/help/">Help</a>' in page
    assert "identity service" not in page


@pytest.mark.parametrize(
    ("how", "done"),
    [("sign-in", "You are signed in."), ("link", "Your account is connected"),
     ("renewal", "Your details were checked again.")],
)  # fmt: skip
def test_what_worked_is_said(client: Client, service: FakeService, how: str, done: str) -> None:
    """On the page that comes next, but not above a closed gate, which may say the contrary."""
    if how != "sign-in":
        user = make_user()
        client.force_login(user, backend=LOCAL)
    if how == "renewal":
        make_identity(user)
    come_back(client, begin(client, "/gated/"))
    page = client.get("/identity/account/").content.decode()
    assert re.search(f'role="status">{done}[^<]*You are verified at level 2.</p>', page)
    response = come_back(client, begin(client, "/gated/"))
    assert response["Location"] == "/gated/"
    page = client.get("/gated/", follow=True).content.decode()
    assert "<title>Needed:" in page
    assert "You are verified" not in page
    assert "You are verified" not in client.get("/identity/account/").content.decode()


@pytest.mark.parametrize(
    ("how", "words"),
    [("person", "you took back your consent."), ("site", "we ended your connection."),
     ("erasure", "your data here is erased, as you asked."),
     ("erasure that is pending", "your data here is erased, as you asked.")],
)  # fmt: skip
def test_a_session_that_ended_says_why(
    client: Client, monkeypatch: pytest.MonkeyPatch, how: str, words: str
) -> None:
    """The person took back the consent, an operator ended the connection, or all is erased."""
    identity = make_identity(make_user())
    client.force_login(identity.user, backend=BACKEND_PATH)
    assert client.get(reverse("identity:account")).status_code == 200
    if how == "site":
        interventions.revoke([identity])
    elif how == "person":
        identity.consent, identity.revoked_at = Consent.REVOKED, timezone.now()
        identity.save()
    else:
        if how == "erasure that is pending":
            monkeypatch.setattr(IdentityPolicy, "erase_user", lambda *_given: 1 / 0)
        erasure.erase_subject("default", "test", identity.subject)
    page = client.get(reverse("identity:account"), follow=True).content.decode()
    assert "You were signed out" in page
    assert f": {words}" in page
    # A session of another kind ends with none of these.
    if how == "person":
        client.force_login(identity.user, backend=LOCAL)
        assert "signed out" not in client.get(reverse("identity:login")).content.decode()


def test_who_is_not_verified_is_told_so() -> None:
    assert status_words(LinkedIdentity(kyc_status="pending")) == "You are not verified yet."


@pytest.mark.parametrize("name", ["login", "connect", "disconnect", "connected", "sign_out"])
def test_a_page_that_was_open_too_long(service: FakeService, name: str) -> None:
    """Without its token a form changes nothing, and a page of ours leads back to it."""
    client = Client(enforce_csrf_checks=True)
    user = make_user()
    identity = make_identity(user)
    client.force_login(user, backend=LOCAL)
    response = client.post(reverse(f"identity:{name}"), {"next": "/loans/"})
    page = response.content.decode()
    assert response.status_code == 403
    assert "<title>Error: This page was open too long</title>" in page
    assert f'href="{reverse(f"identity:{name}")}?next=%2Floans%2F"' in page
    identity.refresh_from_db()
    assert service.requests == []


def records_of_ours(caplog: pytest.LogCaptureFixture) -> list[Any]:
    return [each for each in caplog.records if each.name == "django_identity" and each.levelno > 20]


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        ({}, "CSRF cookie not set."),
        ({"origin": "https://testserver"}, "Origin checking failed - https://testserver does not"),
        ({"origin": "https://x:8443"}, "Origin checking failed - https://x:8443 does not match"),
        ({"referer": "https://x/of/zoe?zoe=1"}, "Referer checking failed - https://x does not"),
    ],
    ids=["slow person", "X-Forwarded-Proto is missing", "CSRF_TRUSTED_ORIGINS", "no origin"],
)
def test_the_log_tells_a_slow_person_from_a_wrong_setting(
    service: FakeService, caplog: pytest.LogCaptureFixture, sent: dict[str, str], reason: str
) -> None:
    """With Django's own reason, and of an address the host alone."""
    browser = Client(enforce_csrf_checks=True)
    is_secure = "referer" in sent
    response = browser.post(reverse("identity:login"), headers=sent, secure=is_secure)
    [line] = records_of_ours(caplog)
    assert (response.status_code, line.code) == (403, "form_expired")
    assert reason in line.getMessage()
    assert "zoe" not in line.getMessage()


@pytest.mark.parametrize("way", ["page", "api"])
def test_a_policy_that_raises_is_named_in_the_log(
    service: FakeService,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    way: str,
) -> None:
    """Beside Django's 500: the method, the kind of error, and a reference that both lines have."""

    def may_sign_up(self: IdentityPolicy, **_about: object) -> bool:
        raise ZeroDivisionError("ada@example.org")

    monkeypatch.setattr(IdentityPolicy, "may_sign_up", may_sign_up)
    client = Client(raise_request_exception=False)
    state = begin(client)
    if way == "page":
        response: Any = come_back(client, state)
    else:
        body = {"code": "a-code", "state": state}
        address = reverse("identity_api:callback")
        response = client.post(address, body, content_type="application/json")
    assert response.status_code == 500
    [line] = records_of_ours(caplog)
    assert (line.event, line.levelname) == ("identity.sign_in.failed", "ERROR")
    assert (line.method, line.error) == ("may_sign_up", "ZeroDivisionError")
    assert "example.org" not in line.getMessage()
    [djangos] = [each for each in caplog.records if each.name == "django.request"]
    assert f"django_identity: reference {line.reference}" in str(djangos.exc_text)


def test_what_django_answers_itself_is_no_trouble(
    service: FakeService, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A policy may refuse with Django's 403."""

    def may_sign_up(self: IdentityPolicy, **_about: object) -> bool:
        raise PermissionDenied

    monkeypatch.setattr(IdentityPolicy, "may_sign_up", may_sign_up)
    client = Client(raise_request_exception=False)
    assert come_back(client, begin(client)).status_code == 403
    assert records_of_ours(caplog) == []


def test_a_denial_is_calm(client: Client, service: FakeService) -> None:
    """Nothing failed: no warning, no reference, and what was asked for stays known."""
    state = begin(client, "/adults/")
    query = {"error": "access_denied", "state": state}
    page = client.get(reverse("identity:callback"), query).content.decode()
    assert "<title>You did not share anything</title>" in page
    assert "Name, e-mail address, country and photo" in page
    assert 'href="/adults/"' in page
    assert not re.search("Reference|Error|emblem-warning", page)
