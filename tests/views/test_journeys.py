"""What people are told on their way: names, what worked, what ended, what was open too long."""

import re
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from django_identity.backends import BACKEND_PATH
from django_identity.lifecycle.leaving import erasure
from django_identity.lifecycle.operators import interventions
from django_identity.policy import IdentityPolicy
from tests.deliveries import deliver
from tests.factories import make_identity, make_user
from tests.sign_in import begin, come_back
from tests.views.bad_input.refusals import CutOff, lines_of_ours
from tests.views.connect.pages import LOCAL

pytestmark = pytest.mark.django_db(transaction=True)


def test_pages_name_the_service_and_the_site(client, settings, monkeypatch):
    page = client.get("/identity/login/").content.decode()
    assert "testserver" not in page
    assert "<title>Continue with your identity service</title>" in page
    given = {**settings.DJANGO_IDENTITY, "SERVICE_NAME": "VerifyMe"}
    settings.DJANGO_IDENTITY = given
    monkeypatch.setattr(IdentityPolicy, "help_url", "/help/")
    monkeypatch.setattr(IdentityPolicy, "site_name", "Ajo Circle")
    monkeypatch.setattr(
        IdentityPolicy, "reasons", {"age_over_18": "A circle is a contract."}
    )
    page = client.get("/identity/login/?missing=age_over_18").content.decode()
    assert "<title>You need to be 18 or older \N{EN DASH} Ajo Circle</title>" in page
    assert (
        "You will go to VerifyMe, sign in there, and decide what Ajo Circle may know."
        in page
    )
    assert "<span>Continue with VerifyMe</span>" in page
    assert "A circle is a contract." in page
    assert '<a href="/help/">Help</a>' in page
    assert "identity service" not in page


@pytest.mark.parametrize(
    ("how", "done"),
    [("sign-in", "You are signed in."), ("link", "Your account is connected"),
     ("renewal", "Your details were checked again.")],
)  # fmt: skip
def test_what_worked_is_said(client, service, how, done):
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
    assert "<title>You need" in page
    assert "You are verified" not in page
    assert "You are verified" not in client.get("/identity/account/").content.decode()


@pytest.mark.parametrize(
    ("how", "words"),
    [("person", "you took back your consent."), ("site", "we ended your connection."),
     ("erasure", "your data here is erased."),
     ("erasure that is pending", "your data here is erased.")],
)  # fmt: skip
def test_a_session_that_ended_says_why(client, monkeypatch, how, words):
    identity = make_identity(make_user())
    client.force_login(identity.user, backend=BACKEND_PATH)
    if how == "site":
        interventions.revoke([identity])
    elif how == "person":
        deliver("consent.revoked")
    else:
        if how == "erasure that is pending":
            monkeypatch.setattr(IdentityPolicy, "erase_user", lambda *_given: 1 / 0)
        erasure.erase_subject(identity.subject)
    page = client.get(reverse("identity:account"), follow=True).content.decode()
    assert "You were signed out" in page
    assert f": {words}" in page
    # A session of another kind ends with none of these.
    if how == "person":
        client.force_login(identity.user, backend=LOCAL)
        page = client.get(reverse("identity:login")).content.decode()
        assert "signed out" not in page


@pytest.mark.parametrize(
    "name", ["login", "connect", "disconnect", "connected", "sign_out"]
)
def test_a_page_that_was_open_too_long(service, name):
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


@pytest.mark.parametrize(
    ("headers", "reason"),
    [
        ({"Origin": "https://testserver"}, "CSRF cookie not set."),
        ({}, "Referer checking failed - no Referer."),
        (
            {"Origin": "https://shop.example:8443"},
            "Origin checking failed - https://shop.example:8443 does not match any trusted",
        ),
        (
            {"Referer": "https://ada@shop.example/ada/?token=secret"},
            "Referer checking failed - another address does not match any trusted origins.",
        ),
        (
            {"Referer": "https://shop.example/ada/?token=secret"},
            "Referer checking failed - https://shop.example does not match any trusted origins.",
        ),
    ],
)  # fmt: skip
def test_the_log_says_why_a_form_was_refused(headers, reason, caplog):
    """Django's own reason, as of a proxy that drops the port; of an address only its origin."""
    client = Client(enforce_csrf_checks=True)
    page = client.post(reverse("identity:login"), secure=True, headers=headers)
    assert page.status_code == 403
    (line,) = lines_of_ours(caplog)
    assert "code=form_expired" in line
    assert f"detail={reason}" in line
    assert not re.search(r"\bada\b|token|secret", caplog.text)


CUT_OFF = {"wsgi.input": CutOff(), "content_type": "application/x-www-form-urlencoded"}
BROKEN_FORMS: dict[str, dict[str, Any]] = {
    "cut off": CUT_OFF,
    "no boundary": {"content_type": "multipart/form-data"},
    "odd boundary": {"content_type": "multipart/form-data; boundary=é"},
    "missing parts": {"content_type": "multipart/form-data; boundary=x"},
}


@pytest.mark.parametrize("name", ["login", "connect", "disconnect", "sign_out"])
@pytest.mark.parametrize("how", BROKEN_FORMS.values(), ids=BROKEN_FORMS)
def test_a_form_that_cannot_be_read_is_no_error_of_the_site(name, how, caplog):
    """Django answers it as it refuses a form, and nobody is called for it."""
    client = Client(enforce_csrf_checks=True)
    client.cookies["csrftoken"] = "a" * 32
    page = client.generic("POST", reverse(f"identity:{name}"), b"next=/", **how)
    assert page.status_code in (400, 403)
    assert "identity.sign_in.failed error=" not in caplog.text
    assert not [each for each in caplog.records if each.levelname == "ERROR"]


def test_a_denial_is_calm(client, service):
    """Nothing failed: no warning, no reference, and what was asked for stays known."""
    state = begin(client, "/adults/")
    query = {"error": "access_denied", "state": state}
    page = client.get(reverse("identity:callback"), query, follow=True).content.decode()
    assert "<title>You did not share anything</title>" in page
    assert "Name, e-mail address, country and photo" in page
    assert 'href="/adults/"' in page
    assert not re.search("Reference|Error|emblem-warning", page)
