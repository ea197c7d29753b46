"""The JSON API: the pages' rules, for a front end."""

import base64
import json
from typing import Any
from unittest.mock import patch
from urllib.parse import parse_qs, urlsplit

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.test import Client, RequestFactory, override_settings
from django.urls import reverse
from rest_framework import versioning
from rest_framework.exceptions import (
    APIException,
    PermissionDenied,
    ValidationError,
)
from rest_framework.renderers import JSONRenderer, StaticHTMLRenderer
from rest_framework.test import APIClient
from rest_framework.views import APIView

from django_identity.api.permissions import HasClaim
from django_identity.api.problems import exception_handler
from django_identity.exceptions import EmailTaken, ServiceUnavailable
from django_identity.models import (
    AuthorizationRequest,
    Consent,
    LinkedIdentity,
    TokenGrant,
)
from django_identity.views import account
from tests import fake_service
from tests.factories import LONG_AGO, make_claim, make_identity, make_user
from tests.fake_service import http, refusal
from tests.gates.test_gates_closed import device
from tests.problems import MEMBERS
from tests.views.bad_input.refusals import CutOff, lines_of_ours, unchanged

pytestmark = pytest.mark.django_db(transaction=True)

ENDPOINTS = ("me", "login", "callback", "connect", "disconnect")
UNSAFE = ENDPOINTS[1:]
METHODS = {"me": "get"}
JSON = "application/json"
CODE = "CNX-AB12-CD34"
SCOPES = {
    "scopes": ["profile:read", "kyc:read", "claims:read"],
    "connect_scopes": ["profile:basic", "kyc:status"],
}


@pytest.fixture
def browser() -> APIClient:
    return APIClient()


@pytest.fixture
def user() -> User:
    return make_user()


@pytest.fixture
def signed_in(browser: APIClient, user: User) -> APIClient:
    browser.force_login(user)
    return browser


def ask(client: APIClient, name: str, body: object = None, **options: Any) -> Any:
    send = getattr(client, METHODS.get(name, "post"))
    return send(reverse(f"identity_api:{name}"), body, format="json", **options)


@pytest.mark.parametrize(
    "kind",
    [versioning.URLPathVersioning, versioning.AcceptHeaderVersioning],
)
def test_the_versions_of_the_sites_own_api_are_not_ours(signed_in, monkeypatch, kind):
    """Whichever way a request of the site says one, and without a default."""
    monkeypatch.setattr(APIView, "versioning_class", kind)
    monkeypatch.setattr(versioning.BaseVersioning, "allowed_versions", ["v1"])
    for accept in (JSON, "application/json; version=v9"):
        answer = ask(signed_in, "disconnect", {}, HTTP_ACCEPT=accept)
        assert answer.data["disconnected"] is False


def is_refused(answer: Any, status: int, code: str) -> bool:
    return (answer.status_code, answer.json()["code"]) == (status, code)


def begin(client: APIClient, **body: object) -> str:
    """Returns the state that goes to the service."""
    response = ask(client, "login", body)
    assert response.status_code == 200
    return parse_qs(urlsplit(response.json()["authorization_url"]).query)["state"][0]


def sign_in(client: APIClient, **body: object) -> Any:
    return ask(client, "callback", {"state": begin(client, **body), "code": "a-code"})


def hand_in(client: APIClient, code: str = CODE) -> Any:
    return ask(client, "connect", {"connect_code": code})


@pytest.mark.parametrize("name", ENDPOINTS)
def test_every_endpoint_has_its_manners(service, name):
    """Never stored or framed; every refusal is a problem, with the members of a gate's."""
    client, address = APIClient(), reverse(f"identity_api:{name}")
    answer, wrong_method = ask(client, name), client.put(address)
    for response in (answer, wrong_method):
        assert response["Cache-Control"] == "private, no-store"
        assert response["Referrer-Policy"] == "no-referrer"
        assert response["X-Frame-Options"] == "DENY"
        if response.status_code == 200:
            assert response["Content-Type"] == JSON
        else:
            assert response["Content-Type"] == "application/problem+json"
            assert response.json().keys() - {"code_spent"} == MEMBERS
            assert response.json()["title"] == response.reason_phrase
    assert is_refused(wrong_method, 405, "method_not_allowed")
    for end in ("/other", "/default", "/"):
        assert client.get(f"{address}{end}").status_code == 404, end


@pytest.mark.parametrize(
    ("found", "detail"),
    [
        ({"missing": ["No."]}, "missing: No."),
        # Of many rows, the second one's: as Django REST framework says it now, and as it did.
        ({1: {"missing": ["No."]}}, "missing: No."),
        ([{}, {"missing": ["No."]}], "missing: No."),
        ("No.", "No."),
        ([], "Invalid input."),
    ],
)
def test_an_invalid_body_of_a_sites_own_view(found, detail):
    response = exception_handler(ValidationError(found), {})
    assert response is not None
    assert response.data["code"] == "invalid"
    assert response.data["detail"] == detail
    assert response.data["missing"] == ""


class OwnView(APIView):
    """A site's own, for browsers and for scripts."""

    renderer_classes = (StaticHTMLRenderer, JSONRenderer)
    permission_classes = (HasClaim("age_over_18"),)

    def get_exception_handler(self) -> Any:
        return exception_handler

    def get(self, request: Any) -> None:
        raise EmailTaken


@pytest.mark.parametrize("permissions", [OwnView.permission_classes, ()])
def test_a_page_of_a_sites_own_view_is_no_problem(permissions):
    """A browser would show its text, and not the page, if it came as a problem."""
    view = OwnView.as_view(permission_classes=permissions)
    kinds = {"text/html": "text/html; charset=utf-8", JSON: "application/problem+json"}
    for accepted, kind in kinds.items():
        response = view(RequestFactory().get("/", headers={"Accept": accepted}))
        assert response.render()["Content-Type"] == kind


OF_OTHERS = {
    "iss": "https://auth.example",
    "scope": "profile:read",
    "session_state": "s",
}


@pytest.mark.parametrize("further", [{}, OF_OTHERS], ids=["alone", "with others"])
def test_a_callback_takes_the_whole_query_of_the_redirect(service, browser, further):
    """A client ignores members that it does not know (RFC 6749 §4.1.2)."""
    denied = {"state": begin(browser), "error": "access_denied", "code": "", **further}
    answer = ask(browser, "callback", {"error_description": "No.", **denied})
    assert answer.json()["code"] == "access_denied"

    arrived = {"state": begin(browser), "code": "a-code", **further}
    assert ask(browser, "callback", arrived).status_code == 200


class Taken(APIException):
    """As some packages write theirs: without the framework's classes for texts."""

    status_code = 409

    def __init__(self, detail: Any) -> None:
        self.detail = detail


class Closed(APIException):
    status_code = 499


@pytest.mark.parametrize(
    ("error", "status", "detail"),
    [
        (Closed("Gone."), 499, "Gone."),
        (Taken("Taken."), 409, "Taken."),
        (Taken({"seat": "Taken."}), 409, "seat: Taken."),
        (Taken(["Taken."]), 409, "Taken."),
        (PermissionDenied(["No.", "Never."]), 403, "No."),
        (PermissionDenied(["missing"]), 403, "missing"),
    ],
)
def test_an_odd_error_of_a_sites_own_view_keeps_its_status(error, status, detail):
    response = exception_handler(error, {})
    assert response is not None
    assert response.status_code == status
    assert response.data["status"] == status
    assert response.data["detail"] == detail


def half_done(request: Any) -> None:
    make_user("half")
    raise ServiceUnavailable("down")


def test_an_error_of_ours_rolls_a_sites_own_view_back():
    """With ``ATOMIC_REQUESTS``: as the framework's own handler does."""
    view = OwnView.as_view(permission_classes=())
    given = {**connection.settings_dict, "ATOMIC_REQUESTS": True}
    with patch.object(connection, "settings_dict", given), transaction.atomic():
        with patch.object(OwnView, "get", lambda _view, request: half_done(request)):
            view(RequestFactory().get("/"))
        assert connection.needs_rollback
    assert not User.objects.exists()


def test_a_whole_sign_in(service, browser, caplog):
    state = begin(browser, next="/adults/")
    session = browser.session
    session["basket"] = "kept"
    session.save()
    browser.cookies["sessionid"] = session.session_key
    arrived = ask(browser, "callback", {"state": state, "code": "a-code"})
    assert arrived.json() == {"next": "/adults/"}
    assert browser.session["basket"] == "kept"
    assert browser.session.session_key != session.session_key
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
        **SCOPES,
    }
    assert ask(browser, "disconnect").json()["code"] == "no_other_way_in"
    assert "identity.disconnect_failed code=" in caplog.text
    LinkedIdentity.objects.update(made_account="")
    ended = {"disconnected": True, "signed_out": True}
    row = LinkedIdentity.objects.get()
    caplog.set_level("INFO", logger="django_identity")

    assert ask(browser, "disconnect").json() == ended
    assert not LinkedIdentity.objects.exists()
    # With it an operator finds the row that a restored backup brings back.
    linked = row.created_at.isoformat()
    said = f"identity.disconnected identity={row.pk} linked={linked}"
    assert said in caplog.text
    assert not TokenGrant.objects.exists()
    assert ask(browser, "me").json()["is_authenticated"] is False
    assert service.calls("token") == 1


FRONT_END = "https://app.example.org"
TRUSTED = [FRONT_END, "https://*.example.net", "http://localhost:5173"]


ELSEWHERE = (
    "//evil.example",
    "https://evil.example/",
    "javascript:alert(1)",
    "adults/",
    "https:app",
    "https://app.example.org.evil.example/",
    "https://app.example.org@evil.example/",
    "https://evil.example\\@app.example.org/",
    "http://app.example.org/",
    "https://app.example.org:444/",
    "https://a.example.net/",
    "https://*.example.net/",
    "https://[",
    "https://app.example.org/\nx",
    "/" * 2001,
    f"{FRONT_END}/{'a' * 2000}",
    "///app.example.org",
    "/\\evil.example",
)


@override_settings(CSRF_TRUSTED_ORIGINS=TRUSTED)
def test_a_foreign_next_page_is_refused(service, browser):
    for given in ELSEWHERE:
        response = ask(browser, "login", {"next": given})
        assert is_refused(response, 400, "next_refused"), given
    assert not AuthorizationRequest.objects.exists()


@pytest.mark.parametrize(
    "given",
    ["/adults/?a=1", f"{FRONT_END}/adults?a=1#b", FRONT_END, "http://localhost:5173/"],
)
def test_a_next_page_is_of_the_site_or_of_a_named_origin(service, browser, given):
    with override_settings(CSRF_TRUSTED_ORIGINS=TRUSTED):
        assert sign_in(browser, next=given).json() == {"next": given}
        state = begin(browser, next=given)
        query = {"state": state, "code": "a-code"}
        page = browser.get(reverse("identity:callback", query=query))
    assert page["Location"] == given


def test_a_bad_callback_is_a_problem_with_a_code(service, browser, caplog):
    caplog.set_level(0)
    state = begin(browser)
    assert is_refused(
        ask(browser, "callback", {"state": state}),
        400,
        "callback_invalid",
    )
    caplog.clear()

    response = ask(browser, "callback", {"state": state, "error": "<script>"})

    assert is_refused(response, 400, "authorization_refused")
    (line,) = lines_of_ours(caplog)
    assert " code=authorization_refused " in line
    assert f" reference={response.json()['reference']} " in line
    assert state not in caplog.text
    assert "<script" not in response.content.decode() + caplog.text
    unchanged(response)
    assert service.requests == []
    assert not User.objects.exists()


def test_nobody_learns_what_the_site_would_ask_for(django_assert_num_queries):
    """The first call of a frontend: 200, no query, and the CSRF token of the calls after it."""
    strict = APIClient(enforce_csrf_checks=True)
    with django_assert_num_queries(0):
        response = ask(strict, "me")
    told = response.json()
    expected = {
        "is_authenticated": False,
        "is_linked": False,
        "claims": {},
        "kyc_level": "",
        "kyc_holds_until": None,
        **SCOPES,
    }
    assert response.status_code == 200
    assert told.items() >= expected.items()
    assert strict.cookies["csrftoken"].value
    assert ask(strict, "login", {}).status_code == 403
    begun = ask(strict, "login", {}, headers={"X-CSRFToken": told["csrf_token"]})
    assert begun.status_code == 200


def test_me_is_what_the_gates_see(signed_in, user, django_assert_num_queries):
    """Claims that ran out or were revoked are not there; two queries beside session and user."""
    identity = make_identity(user, kyc_said_at=LONG_AGO, scopes=["kyc:read"])
    make_claim(identity)
    make_claim(identity, "country_resident", "NG", valid_until=LONG_AGO)
    make_claim(identity, "unique_human", revoked_at=LONG_AGO)
    with django_assert_num_queries(4):
        told = ask(signed_in, "me").json()
    expected = {
        "is_linked": True,
        "claims": {"age_over_18": True},
        "kyc_level": "level_2",
        "kyc_status": "run_out",
        "kyc_holds_until": "2020-01-03T00:00:00Z",
    }
    assert told.items() >= expected.items()
    LinkedIdentity.objects.update(kyc_status="rejected")
    assert ask(signed_in, "me").json()["kyc_status"] == "rejected"
    LinkedIdentity.objects.update(consent=Consent.REVOKED, revoked_at=LONG_AGO)
    told = ask(signed_in, "me").json()
    assert told["is_linked"] is False
    assert told["claims"] == {}
    assert told["consent_revoked_at"] == "2020-01-01T00:00:00Z"
    # Whoever signed in with a password stays signed in, and may disconnect twice.
    for is_linked in (True, False):
        ended = {"disconnected": is_linked, "signed_out": False}
        assert ask(signed_in, "disconnect").json() == ended


def test_a_device_neither_reads_nor_links_nor_disconnects(browser, user):
    make_claim(make_identity(user))
    browser.force_authenticate(device(user))
    assert ask(browser, "me").json()["is_linked"] is False
    for refused in (ask(browser, "disconnect"), hand_in(browser)):
        assert refused.status_code == 401
        assert refused["WWW-Authenticate"] == "Session"
    for page in (account.account, account.download, account.disconnect):
        request: Any = RequestFactory().get("/")
        request.user, request.session = device(user), {}
        assert page(request).status_code == 302
    assert LinkedIdentity.objects.filter(user=user).exists()


def test_the_answer_to_a_code_says_what_the_site_now_holds(service, signed_in, caplog):
    caplog.set_level("DEBUG", logger="django_identity")
    told = hand_in(signed_in).json()
    assert told["scopes"] == SCOPES["connect_scopes"]
    assert told["connect_person"] == "Ada O., a***@example.org"
    assert told["kyc_verified_at"] == "2026-11-01T10:00:00Z"
    assert hand_in(signed_in).json() == told
    assert service.calls("request") == 1
    assert "identity.connect.redeemed" in caplog.text
    assert not [part for part in ("AB12", "subject-1", "ada@") if part in caplog.text]


@pytest.mark.parametrize(
    ("answer", "status", "expected"),
    [
        (
            refusal(
                "POA_REQUIRED",
                "403 No",
                kyc_required=True,
                kyc_url="https://k.example/",
            ),
            403,
            {
                "code": "verification_policy_not_met",
                "recovery": "verify",
                "kyc_url": "https://k.example/",
            },
        ),
        (
            http(b"", status="429 Slow", headers="Retry-After: 7\r\n"),
            503,
            {"code": "rate_limited", "recovery": "retry", "retry_after": 7},
        ),
        (
            fake_service.answer({"success": True, "data": {"request_id": "req_9"}}),
            502,
            {"code": "malformed_answer", "recovery": "retry", "request_id": "req_9"},
        ),
    ],
    ids=lambda value: str(value)[:40],
)
def test_errors_are_for_machines(service, signed_in, caplog, answer, status, expected):
    service.answers["request"] = answer
    response = hand_in(signed_in)
    problem = response.json()
    reference = problem.pop("reference")
    assert problem.pop("title")
    assert problem.pop("detail")
    of_all = {
        "type": "about:blank",
        "status": status,
        "missing": "",
        "code_spent": True,
    }

    assert response.status_code == status
    assert problem == of_all | expected
    assert f"reference={reference} " in caplog.text
    assert CODE not in caplog.text + str(response.content)


def test_a_wait_is_told_with_retry_after(service, signed_in):
    service.answers["request"] = refusal("INVALID_CONNECT_CODE")
    for number in range(5):
        hand_in(signed_in, f"CNX-AB12-{number:04}")
    response = hand_in(signed_in)
    problem = response.json()
    assert is_refused(response, 429, "too_many_tries")
    assert 590 <= problem["retry_after"] == int(response["Retry-After"]) <= 600
    assert problem["code_spent"] is False
    shown = signed_in.post(reverse("identity:connect"), {"connect_code": CODE})
    assert shown.status_code == 429
    assert "The limit is 5 codes in 10 minutes" in shown.content.decode()
    assert 590 <= int(shown["Retry-After"]) <= 600
    assert service.calls("request") == 5


# What the reader refuses by itself is in ``test_strict_json.py``.
BODIES = {
    "200,000 brackets": b"[" * 200_000,
    "a name twice": b'{"next": "/a", "next": "/b"}',
    "a list": b"[]",
    "a megabyte": json.dumps({"next": "/" * 1_000_000}).encode(),
    "padded": b"{}" + b" " * 70_000,
}
# What a browser that was once asked for a password adds to each request by itself.
BASIC = {"authorization": "Basic " + base64.b64encode(b"ada:a password").decode()}


@pytest.mark.parametrize("body", [*BODIES.values(), None], ids=[*BODIES, "cut off"])
def test_a_body_that_cannot_be_read_is_refused(signed_in, body):
    how: Any = {"wsgi.input": CutOff()} if body is None else {}
    for name in ("login", "callback", "connect"):
        address = reverse(f"identity_api:{name}")
        response = signed_in.generic("POST", address, body or b"{}", JSON, **how)
        assert is_refused(response, 400, "parse_error")


FOREIGN_ORIGIN = {"origin": "https://evil.example"}
# What a form or a fetch in "no-cors" can send; and JSON, which needs the token as any other body.
FORMS = ("application/x-www-form-urlencoded", "multipart/form-data", "text/plain", "")


@pytest.mark.parametrize("content_type", [*FORMS, JSON])
def test_a_foreign_form_changes_nothing(user, content_type):
    """Credentials that a browser adds by itself do not make a foreign form the person's own."""
    make_identity(user)
    by_session, by_password = (Client(enforce_csrf_checks=True) for _ in range(2))
    by_session.force_login(user)
    for name in UNSAFE:
        for client, headers in ((by_session, FOREIGN_ORIGIN), (by_password, BASIC)):
            address = reverse(f"identity_api:{name}")
            how = {"content_type": content_type, "headers": headers}
            assert is_refused(
                client.post(address, b"", **how),
                403,
                "permission_denied",
            )
    assert LinkedIdentity.objects.count() == 1


def test_a_token_comes_from_no_foreign_form(user):
    """A token in the header is put there by a program, so the request is its own."""
    make_identity(user)
    strict = APIClient(enforce_csrf_checks=True)
    strict.force_authenticate(user)
    assert ask(strict, "disconnect").status_code == 403
    token = {"authorization": "Bearer of-ada"}
    assert ask(strict, "disconnect", headers=token).json()["disconnected"] is True


@pytest.mark.parametrize(
    ("name", "usable"),
    [
        ("login", {"next": "/"}),
        ("callback", {"state": "s" * 43, "code": "a-code"}),
        ("connect", {"connect_code": CODE}),
    ],
)
def test_members_are_texts(signed_in, name, usable):
    for member in usable:
        for value in (None, ["a"], {"a": "a"}):
            answer = ask(signed_in, name, {**usable, member: value})
            assert answer.status_code == 400
            assert answer.json()["code"] in {"null", "invalid"}


@pytest.mark.parametrize(
    ("name", "usable"),
    [("login", {}), ("connect", {"connect_code": CODE})],
)
def test_a_member_that_is_not_known_is_refused(signed_in, name, usable):
    answer = ask(signed_in, name, {**usable, "role": "all"})
    assert is_refused(answer, 400, "unknown_member")
