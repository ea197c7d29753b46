"""``api/me``, ``login``, ``callback`` and ``disconnect``: the pages' rules, for a frontend."""

from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.contrib.auth.models import User
from django.test import override_settings
from django.urls import reverse
from rest_framework.test import APIClient

from django_identity.models import AuthorizationRequest, Consent, LinkedIdentity, TokenGrant
from tests.factories import LONG_AGO, make_claim, make_identity, make_user
from tests.fake_service import FakeService, http
from tests.views.bad_input.refusals import lines_of_ours, unchanged

pytestmark = pytest.mark.django_db(transaction=True)

LOCAL = "django.contrib.auth.backends.ModelBackend"
ENDPOINTS = ("me", "login", "callback", "connect", "disconnect")
METHODS = {"me": "get"}


@pytest.fixture
def browser() -> APIClient:
    return APIClient()


def ask(client: APIClient, name: str, body: object = None, **options: Any) -> Any:
    send = getattr(client, METHODS.get(name, "post"))
    return send(reverse(f"identity_api:{name}"), body, format="json", **options)


def begin(client: APIClient, **body: object) -> str:
    """Returns the state that goes to the service."""
    response = ask(client, "login", body)
    assert response.status_code == 200
    return parse_qs(urlsplit(response.json()["authorization_url"]).query)["state"][0]


def sign_in(client: APIClient, **body: object) -> Any:
    return ask(client, "callback", {"state": begin(client, **body), "code": "a-code"})


@pytest.mark.parametrize("name", ENDPOINTS)
def test_the_addresses_are_short(name: str) -> None:
    """``api/me``, with an application's alias if there are several."""
    assert reverse(f"identity_api:{name}") == f"/identity/api/{name}"
    assert reverse(f"identity_api:{name}", args=["other"]) == f"/identity/api/{name}/other"


def test_a_whole_sign_in(service: FakeService, browser: APIClient) -> None:
    """Begin, come back, see what holds, disconnect: no page of ours in between."""
    assert sign_in(browser, next="/adults/").json() == {"next": "/adults/"}
    told = ask(browser, "me").json()
    assert told.pop("csrf_token")
    assert told.pop("kyc_holds_until")[:2] == "20"
    assert told == {
        "is_authenticated": True,
        "is_linked": True,
        "consent_revoked_at": None,
        "kyc_level": "level_2",
        "kyc_status": "verified",
        "claims": {"age_over_18": True},
        "scopes": ["profile:read", "kyc:read", "claims:read"],
        "connect_scopes": ["profile:basic", "kyc:status"],
    }
    assert ask(browser, "disconnect").json()["code"] == "no_other_way_in"
    LinkedIdentity.objects.update(account_made=False)
    assert ask(browser, "disconnect").json() == {"disconnected": True, "signed_out": True}
    assert not LinkedIdentity.objects.exists()
    assert not TokenGrant.objects.exists()
    assert ask(browser, "me").json()["is_authenticated"] is False
    assert service.calls("token") == 1


def test_a_session_planted_beforehand_is_not_signed_in(
    service: FakeService, browser: APIClient
) -> None:
    """Signing in and linking change the session's key, and keep what it holds."""
    session = browser.session
    session["basket"] = "kept"
    session.save()
    browser.cookies["sessionid"] = session.session_key
    assert sign_in(browser).status_code == 200
    assert browser.cookies["sessionid"].value != session.session_key
    LinkedIdentity.objects.all().delete()
    browser.force_login(make_user(), backend=LOCAL)
    before = browser.session.session_key, dict(browser.session)
    assert sign_in(browser).status_code == 200
    assert before[1].items() <= dict(browser.session).items()
    assert browser.session.session_key != before[0]


def test_the_authorization_address_is_the_pages(service: FakeService, browser: APIClient) -> None:
    """Nothing in the body alters a protocol parameter: an unknown member is refused."""
    body = {"next": "/", "scope": "all", "redirect_uri": "https://evil.example", "state": "x"}
    refused = ask(browser, "login", body)
    assert (refused.status_code, refused.json()["code"]) == (400, "unknown_member")
    assert not AuthorizationRequest.objects.exists()
    response = ask(browser, "login", {"next": "/"})
    sent = parse_qs(urlsplit(response.json()["authorization_url"]).query)
    assert sent["redirect_uri"] == ["http://testserver/identity/callback/"]
    assert sent["scope"] == ["profile:read kyc:read claims:read"]
    assert len(sent["state"][0]) >= 27
    cookie = response.cookies["identity_browser"]
    assert (cookie["httponly"], cookie["samesite"]) == (True, "Lax")


@pytest.mark.parametrize("body", [{"next": ""}, {}])
def test_without_a_next_page_a_sign_in_leads_where_the_site_says(
    service: FakeService, browser: APIClient, body: Any
) -> None:
    """As from the package's own page."""
    assert sign_in(browser, **body).json() == {"next": "/"}


FRONT_END = "https://app.example.org"
TRUSTED = [FRONT_END, "https://*.example.net", "http://localhost:5173"]


@pytest.mark.parametrize(
    "given",
    [
        "//evil.example", "https://evil.example/", "javascript:alert(1)", "adults/", "https:app",
        "https://app.example.org.evil.example/", "https://app.example.org@evil.example/",
        "https://evil.example\\@app.example.org/", "http://app.example.org/",
        "https://app.example.org:444/", "https://a.example.net/", "https://*.example.net/",
        "https://[", "https://app.example.org/\nx", "/" * 2001, f"{FRONT_END}/{'a' * 2000}",
        "///app.example.org", "/\\evil.example",
    ],
)  # fmt: skip
def test_a_foreign_next_page_is_refused(
    service: FakeService, browser: APIClient, given: str
) -> None:
    """With a code, and not dropped in silence; a wildcard is no origin."""
    with override_settings(CSRF_TRUSTED_ORIGINS=TRUSTED):
        response = ask(browser, "login", {"next": given})
    assert (response.status_code, response.json()["code"]) == (400, "next_refused")
    assert not AuthorizationRequest.objects.exists()


@pytest.mark.parametrize(
    "given", ["/adults/?a=1", f"{FRONT_END}/adults?a=1#b", FRONT_END, "http://localhost:5173/"]
)
def test_a_next_page_is_of_the_site_or_of_a_named_origin(
    service: FakeService, browser: APIClient, given: str
) -> None:
    """The callback tells the front end, and the page of the callback redirects to it."""
    with override_settings(CSRF_TRUSTED_ORIGINS=TRUSTED):
        assert sign_in(browser, next=given).json() == {"next": given}
        state = begin(browser, next=given)
        page = browser.get(reverse("identity:callback"), {"state": state, "code": "a-code"})
    assert page["Location"] == given


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"state": "{state}"}, "callback_invalid"),
        ({"state": "{state}", "code": "a", "error": "access_denied"}, "callback_invalid"),
        ({"state": "{state}", "code": " a\n"}, "callback_invalid"),
        ({"state": "{state} ", "code": "a"}, "callback_invalid"),
        ({"state": "x" * 43, "code": "a"}, "request_unknown"),
        ({"state": "{state}", "error": "access_denied"}, "access_denied"),
        ({"state": "{state}", "error": "<script>"}, "authorization_refused"),
    ],
)
def test_a_bad_callback(
    service: FakeService, browser: APIClient, caplog: pytest.LogCaptureFixture, body: Any,
    code: str,
) -> None:  # fmt: skip
    """A problem with a code, one line; nothing is asked of the service, no session, nobody made."""
    caplog.set_level(0)
    state = begin(browser)
    if isinstance(body, dict) and isinstance(body.get("state"), str):
        body = {**body, "state": body["state"].format(state=state)}
    response = ask(browser, "callback", body)
    assert (response.status_code, response.json()["code"]) == (400, code)
    (line,) = lines_of_ours(caplog)
    assert f" code={code} " in line
    assert f" reference={response.json()['reference']} " in line
    assert state not in caplog.text
    assert "<script" not in response.content.decode() + caplog.text
    assert "code_spent" not in response.json()
    unchanged(response)
    assert service.requests == []
    assert not User.objects.exists()


def test_a_state_is_good_once_and_in_its_own_browser(
    service: FakeService, browser: APIClient
) -> None:
    """A replay is refused, and so is a callback that another browser began."""
    state = begin(browser)
    elsewhere = ask(APIClient(), "callback", {"state": state, "code": "a"})
    assert elsewhere.json()["code"] == "request_unknown"
    assert ask(browser, "callback", {"state": state, "code": "a"}).status_code == 200
    browser.cookies.pop("sessionid")
    again = ask(browser, "callback", {"state": state, "code": "a"})
    assert again.json()["code"] == "request_used"
    assert service.calls("token") == 1


@pytest.mark.parametrize("name", ["login", "callback"])
def test_a_foreign_page_signs_nobody_in(service: FakeService, name: str) -> None:
    """Without Django's CSRF token nothing begins and nothing is completed."""
    strict = APIClient(enforce_csrf_checks=True)
    response = ask(strict, name, {"state": "x" * 43, "code": "a"})
    assert (response.status_code, response.json()["code"]) == (403, "permission_denied")
    assert service.requests == []


def test_nobody_learns_what_the_site_would_ask_for(django_assert_num_queries: Any) -> None:
    """The first call of a frontend: 200, no query, and the CSRF token of the calls after it."""
    strict = APIClient(enforce_csrf_checks=True)
    with django_assert_num_queries(0):
        response = ask(strict, "me")
    told = response.json()
    assert (response.status_code, told["is_authenticated"], told["is_linked"]) == (
        200,
        False,
        False,
    )
    assert (told["claims"], told["kyc_level"], told["kyc_holds_until"]) == ({}, "", None)
    assert told["scopes"] == ["profile:read", "kyc:read", "claims:read"]
    assert told["connect_scopes"] == ["profile:basic", "kyc:status"]
    assert strict.cookies["csrftoken"].value
    refused = ask(strict, "login", {})
    assert refused.status_code == 403
    begun = ask(strict, "login", {}, headers={"X-CSRFToken": told["csrf_token"]})
    assert begun.status_code == 200


@pytest.mark.parametrize(("origin", "status"), [("https://app.example.org", 200),
                                                ("https://evil.example", 403)])  # fmt: skip
def test_a_front_end_of_another_origin_is_named_in_the_settings(origin: str, status: int) -> None:
    """The body tells it the token, for it cannot read the cookie of another host."""
    strict = APIClient(enforce_csrf_checks=True)
    with override_settings(CSRF_TRUSTED_ORIGINS=["https://app.example.org"]):
        token = ask(strict, "me", secure=True).json()["csrf_token"]
        headers = {"X-CSRFToken": token, "Origin": origin}
        assert ask(strict, "login", {}, headers=headers, secure=True).status_code == status


def test_a_level_that_ran_out_is_said_to_be_so(browser: APIClient) -> None:
    """It opens no gate, and a frontend sees why."""
    user = make_user()
    make_identity(user, kyc_said_at=LONG_AGO, scopes=["kyc:read"])
    browser.force_authenticate(user)
    told = ask(browser, "me").json()
    assert (told["kyc_level"], told["kyc_status"]) == ("level_2", "run_out")
    assert told["kyc_holds_until"] == "2020-01-03T00:00:00Z"
    assert ask(browser, "me").json()["is_linked"] is True
    LinkedIdentity.objects.update(kyc_status="rejected")
    browser.force_authenticate(User.objects.get())
    assert ask(browser, "me").json()["kyc_status"] == "rejected"


def test_me_is_what_the_gates_see(browser: APIClient, django_assert_num_queries: Any) -> None:
    """Claims that ran out, were revoked or only listed are not there; two queries."""
    user = make_user()
    identity = make_identity(user)
    make_claim(identity)
    make_claim(identity, "country_resident", "NG", valid_until=LONG_AGO)
    make_claim(identity, "unique_human", revoked_at=LONG_AGO)
    make_claim(identity, "kyc_verified", None, valid_until=None)
    browser.force_authenticate(user)
    with django_assert_num_queries(2):
        told = ask(browser, "me").json()
    assert told["claims"] == {"age_over_18": True}
    LinkedIdentity.objects.update(consent=Consent.REVOKED, revoked_at=LONG_AGO)
    browser.force_authenticate(User.objects.get())
    told = ask(browser, "me").json()
    assert (told["is_linked"], told["claims"]) == (False, {})
    assert told["consent_revoked_at"] == "2020-01-01T00:00:00Z"


def test_a_local_session_outlives_the_bond(browser: APIClient) -> None:
    """Whoever signed in with a password stays signed in, and may disconnect twice."""
    user = make_user()
    make_identity(user)
    browser.force_login(user, backend=LOCAL)
    assert ask(browser, "disconnect").json() == {"disconnected": True, "signed_out": False}
    assert ask(browser, "disconnect").json() == {"disconnected": False, "signed_out": False}
    assert ask(browser, "me").json()["is_linked"] is False


def test_a_signed_in_user_links(service: FakeService, browser: APIClient) -> None:
    """The purpose is the page's."""
    user = make_user(email="other@example.org")
    browser.force_login(user, backend=LOCAL)
    assert sign_in(browser).status_code == 200
    assert LinkedIdentity.objects.get().user == user


@pytest.mark.parametrize("name", ENDPOINTS)
def test_every_endpoint_has_its_manners(service: FakeService, name: str) -> None:
    """Never stored or framed; another method is 405, an unknown application 404: all as JSON."""
    client = APIClient()
    for response in (ask(client, name), client.put(reverse(f"identity_api:{name}"))):
        assert response["Cache-Control"] == "no-store"
        assert response["Referrer-Policy"] == "no-referrer"
        kind = "application/json" if response.status_code == 200 else "application/problem+json"
        assert response["Content-Type"] == kind
    assert (response.status_code, response.json()["code"]) == (405, "method_not_allowed")
    send = getattr(client, METHODS.get(name, "post"))
    unknown = send(reverse(f"identity_api:{name}", args=["other"]))
    assert (unknown.status_code, unknown.json()["code"]) == (404, "not_found")


def test_a_frontend_may_be_where_the_service_sends_people(
    service: FakeService, browser: APIClient
) -> None:
    """``REDIRECT_URI`` is the frontend's: the service is told so, and the exchange repeats it."""
    frontend = service.settings(REDIRECT_URI="https://app.example/back")
    with override_settings(DJANGO_IDENTITY={"default": frontend}):
        assert sign_in(browser).status_code == 200
    (sent,) = [raw for name, _, raw in service.requests if name == "token"]
    assert b"redirect_uri=https%3A%2F%2Fapp.example%2Fback" in sent


def test_a_busy_service_is_a_problem_that_says_how_long(
    service: FakeService, browser: APIClient
) -> None:
    """A frontend can tell the person when to try again."""
    service.answers["token"] = http(b"", status="429 Slow", headers="Retry-After: 55\r\n")
    response = sign_in(browser)
    assert (response.status_code, response.json()["code"]) == (503, "rate_limited")
    assert 50 < response.json()["retry_after"] == int(response["Retry-After"]) <= 60
