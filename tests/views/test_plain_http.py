"""A live application over plain http: no page, no cookie, no code, no session."""

import json
from typing import Any

import pytest
from django.test import Client, override_settings
from django.urls import reverse

from django_identity.models import AuthorizationRequest, LinkedIdentity
from tests.factories import make_identity, make_user
from tests.views.bad_input.refusals import lines_of_ours
from tests.views.connect.pages import LIVE, browser_of

pytestmark = pytest.mark.django_db

CALLBACK = "https://site.example/identity/callback/"
PAGES = ("login", "callback", "connect", "disconnect", "account", "download")
DEEDS = ("login", "connect", "disconnect")
REQUESTS = [
    *(("GET", f"identity:{name}") for name in PAGES),
    *(("POST", f"identity:{name}") for name in DEEDS),
    *(("POST", f"identity_api:{name}") for name in (*DEEDS, "callback")),
    ("GET", "identity_api:me"),
]
PROXIED = {"SECURE_PROXY_SSL_HEADER": ("HTTP_X_FORWARDED_PROTO", "https")}


@pytest.fixture
def browser(settings: Any) -> Client:
    """Somebody with a linked identity, signed in with a password."""
    settings.DJANGO_IDENTITY = {
        **settings.DJANGO_IDENTITY, **LIVE, "REDIRECT_URI": CALLBACK,
    }  # fmt: skip
    user = make_user()
    make_identity(user, environment="live")
    return browser_of(user)


@pytest.mark.parametrize(("method", "name"), REQUESTS)
def test_nothing_is_served_or_done(browser, caplog, method, name):
    """Page or problem: 403 with a code, one line in the log, no cookie, nothing changed."""
    response = browser.generic(method, reverse(name))
    text = response.content.decode()
    assert response.status_code == 403
    if name.startswith("identity_api:"):
        assert json.loads(text)["code"] == "plain_http_refused"
    else:
        assert "<code>plain_http_refused</code>" in text
    assert "subject-1" not in text
    assert not response.cookies
    assert response["Cache-Control"] == "private, no-store"
    (line,) = lines_of_ours(caplog)
    assert " code=plain_http_refused " in line
    assert LinkedIdentity.objects.count() == 1
    assert not AuthorizationRequest.objects.exists()


@pytest.mark.parametrize(
    "name",
    ["identity:login", "identity:connect", "identity:account", "identity_api:me"],
)
def test_over_https_all_is_well(browser, name):
    """Whether the site ends TLS or a proxy before it."""
    address = reverse(name)
    assert browser.get(address, secure=True).status_code == 200
    with override_settings(**PROXIED):
        for scheme, status in (("https", 200), ("http", 403)):
            answer = browser.get(address, headers={"X-Forwarded-Proto": scheme})
            assert answer.status_code == status
