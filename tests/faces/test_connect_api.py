"""``POST api/connect``: the same rules as the page, and errors for machines."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client, override_settings
from django.urls import include, path, reverse
from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request
from rest_framework.test import APIClient

from django_identity.api.views import ConnectView
from django_identity.lifecycle.arrival import limits
from django_identity.models import LinkedIdentity
from tests import hostile
from tests.hostile import HostileService, http
from tests.records import make_identity, make_user

pytestmark = pytest.mark.django_db(transaction=True)

CODE = "CNX-AB12-CD34"
LOCAL = "django.contrib.auth.backends.ModelBackend"


class HeaderAuthentication(BaseAuthentication):
    """A site's own authentication: whoever the header names."""

    def authenticate(self, request: Request) -> tuple[User, None] | None:
        name = request.headers.get("X-User")
        return (User.objects.get(username=name), None) if name else None

    def authenticate_header(self, request: Request) -> str:
        return "X-User"


class OwnConnectView(ConnectView):
    authentication_classes = (HeaderAuthentication,)


urlpatterns = [
    path("own", OwnConnectView.as_view()),
    path("identity/", include("django_identity.urls")),
]


@pytest.fixture
def user() -> User:
    return make_user()


@pytest.fixture
def browser(user: User) -> APIClient:
    client = APIClient()
    client.force_login(user, backend=LOCAL)
    return client


def hand_in(client: APIClient, code: object = CODE, **headers: str) -> Any:
    address = reverse("identity:api:connect")
    return client.post(address, {"connect_code": code}, format="json", headers=headers)


def refusal(code: str, status: str = "400 Bad Request", **beside: object) -> bytes:
    return hostile.answer({"success": False, "error": {"code": code}, **beside}, status=status)


def test_the_address_is_short() -> None:
    """``api/connect``, with an application's alias if there are several."""
    assert reverse("identity:api:connect") == "/identity/api/connect"
    assert reverse("identity:api:connect", args=["other"]) == "/identity/api/connect/other"


def test_a_code_verifies_the_account(
    service: HostileService, browser: APIClient, user: User, caplog: pytest.LogCaptureFixture
) -> None:
    """The answer says what the site now holds, and whose code it was, masked; the log does not."""
    caplog.set_level("DEBUG", logger="django_identity")
    response = hand_in(browser, "my code: cnx ab12 cd34")
    assert response.status_code == 200
    assert response.json() == {
        "consent": "granted",
        "linked_via": "connect",
        "connect_person": "Ada O., a***@example.org",
        "scopes": ["profile:basic", "kyc:status"],
        "kyc_level": "level_2",
        "kyc_status": "verified",
        "kyc_provider": "KYC",
        "kyc_verified_at": "2026-11-01T10:00:00Z",
    }
    assert LinkedIdentity.objects.get().user == user
    assert response["Cache-Control"] == "no-store"
    assert hand_in(browser).json() == response.json()
    assert service.calls("request") == 1
    assert "identity.connect.redeemed" in caplog.text
    assert not [part for part in ("AB12", "ab12", "subject-1", "ada@") if part in caplog.text]


@pytest.mark.parametrize(
    ("answer", "status", "expected"),
    [
        (refusal("INVALID_CONNECT_CODE"), 400,
         {"code": "invalid_connect_code", "recovery": "restart", "code_spent": True}),
        (refusal("POA_REQUIRED", "403 No", kyc_required=True, kyc_url="https://k.example/"), 403,
         {"code": "verification_policy_not_met", "recovery": "verify", "code_spent": True,
          "kyc_url": "https://k.example/"}),
        (refusal("POA_REQUIRED", "403 No", kyc_url="javascript:1"), 403,
         {"code": "verification_policy_not_met", "recovery": "verify", "code_spent": True}),
        (refusal("ENVIRONMENT_MISMATCH", "403 No"), 502,
         {"code": "environment_mismatch", "recovery": "contact", "code_spent": True}),
        (http(b"", status="429 Slow", headers="Retry-After: 7\r\n"), 503,
         {"code": "rate_limited", "recovery": "retry", "code_spent": True, "retry_after": 7}),
        (hostile.html("500 Oops"), 502,
         {"code": "connect_outcome_unknown", "recovery": "restart", "code_spent": True}),
        (http(b'{"success": true, "data": {"status": "approved"}}'), 502,
         {"code": "malformed_answer", "recovery": "retry", "code_spent": True}),
    ],
    ids=lambda value: str(value)[:40],
)  # fmt: skip
def test_errors_are_for_machines(
    service: HostileService, browser: APIClient, caplog: pytest.LogCaptureFixture,
    answer: bytes, status: int, expected: dict[str, Any],
) -> None:  # fmt: skip
    """A stable code, what to do next, and the reference that stands in the log."""
    service.answers["request"] = answer
    response = hand_in(browser)
    problem = response.json()
    reference, detail = problem.pop("reference"), problem.pop("detail")
    assert problem.pop("title")
    of_all = {"type": "about:blank", "status": status, "missing": ""}
    assert (response.status_code, problem) == (status, of_all | expected)
    assert f"reference={reference} " in caplog.text
    assert detail
    assert CODE not in caplog.text + str(response.content)


@pytest.mark.parametrize("given", ["", "hello", None, 7, ["CNX-AB12-CD34"], {}, "x" * 5000])
def test_what_is_no_code_is_not_sent(
    service: HostileService, browser: APIClient, given: object
) -> None:
    """Whatever its type, it is one kind of problem."""
    response = hand_in(browser, given)
    assert response.status_code == 400
    assert response.json()["code"] == "connect_code_malformed"
    assert response.json()["code_spent"] is False
    assert service.requests == []


@pytest.mark.parametrize(
    ("body", "kind", "status", "code"),
    [
        (b"{", "application/json", 400, "parse_error"),
        (b"[]", "application/json", 400, "parse_error"),
        (b'"CNX-AB12-CD34"', "application/json", 400, "parse_error"),
        (b"connect_code=CNX-AB12-CD34", "application/x-www-form-urlencoded", 415,
         "unsupported_media_type"),
    ],
)  # fmt: skip
def test_other_bodies_are_problems_too(
    service: HostileService, browser: APIClient, body: bytes, kind: str, status: int, code: str
) -> None:
    """The framework's own errors have the same form."""
    response = browser.post(reverse("identity:api:connect"), body, content_type=kind)
    assert response.status_code == status
    assert response.json()["code"] == code
    assert response.json().keys() >= {"detail", "recovery", "reference"}
    assert service.requests == []


def test_nobody_is_told_to_sign_in(service: HostileService) -> None:
    """Without a user nothing is sent."""
    response = hand_in(APIClient())
    assert response.status_code in (401, 403)
    assert response.json()["code"] == "not_authenticated"
    assert service.requests == []


def test_a_session_needs_its_token(service: HostileService, user: User) -> None:
    """Another site cannot make a signed-in browser hand a code in."""
    client = APIClient(enforce_csrf_checks=True)
    client.force_login(user, backend=LOCAL)
    response = hand_in(client)
    assert (response.status_code, response.json()["code"]) == (403, "permission_denied")
    assert service.requests == []
    client.get(reverse("identity:connect"))
    token = client.cookies["csrftoken"].value
    assert hand_in(client, **{"X-CSRFToken": token}).status_code == 200


def test_the_sites_own_authentication(service: HostileService, user: User) -> None:
    """A site that knows its users otherwise uses that."""
    with override_settings(ROOT_URLCONF=__name__):
        client = APIClient(enforce_csrf_checks=True)
        body = {"connect_code": CODE}
        assert client.post("/own", body, format="json").status_code == 401
        given = client.post("/own", body, format="json", headers={"X-User": user.username})
    assert given.status_code == 200
    assert LinkedIdentity.objects.get().user == user


def test_somebody_comes_in_with_a_code(service: HostileService) -> None:
    """With the policy's leave, and never from another site's page."""
    policy = "tests.faces.connect.test_coming_in.DoorOpen"
    with override_settings(DJANGO_IDENTITY={"default": service.settings(POLICY=policy)}):
        client = APIClient(enforce_csrf_checks=True)
        assert hand_in(client).json()["code"] == "permission_denied"
        assert service.requests == []
        client.get(reverse("identity:connect"))
        token = client.cookies["csrftoken"].value
        assert hand_in(client, **{"X-CSRFToken": token}).status_code == 200
        assert client.get("/").content.decode() == User.objects.get().username


def test_a_subject_of_another_user(service: HostileService, browser: APIClient) -> None:
    """A plain no, and nothing changes."""
    make_identity(make_user("owner"))
    response = hand_in(browser)
    assert (response.status_code, response.json()["code"]) == (403, "subject_taken")
    assert LinkedIdentity.objects.get().user.username == "owner"


@pytest.mark.parametrize(
    ("policy", "forwarded", "one_person"),
    [
        ("django_identity.policy.IdentityPolicy", "203.0.113.{}", True),
        ("tests.faces.connect.pages.BehindAProxy", "203.0.113.{}", False),
        ("tests.faces.connect.pages.BehindAProxy", "203.0.113.{}, 198.51.100.1", True),
        ("tests.faces.connect.pages.BehindAProxy", "2001:db8:0:{}::1", False),
        ("tests.faces.connect.pages.BehindAProxy", "2001:db8::{}", True),
        ("tests.faces.connect.pages.BehindAProxy", "no address", False),
    ],
)
def test_tries_count_by_the_persons_address(
    service: HostileService, policy: str, forwarded: str, one_person: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """What the site's policy reads; an address that is none counts for nobody but the user."""
    monkeypatch.setattr(limits, "MOST_TRIES_OF_NETWORK", 5)
    service.answers["request"] = refusal("INVALID_CONNECT_CODE")
    settings = {"default": service.settings(POLICY=policy)}
    statuses = []
    with override_settings(DJANGO_IDENTITY=settings):
        for number in range(1, 7):
            client = APIClient()
            client.force_login(make_user(f"user-{number}"), backend=LOCAL)
            header = {"X-Forwarded-For": forwarded.format(number)}
            statuses.append(hand_in(client, f"CNX-AB12-{number:04}", **header).status_code)
    assert statuses == [400] * 5 + [429 if one_person else 400]


def test_waiting_is_told(service: HostileService, browser: APIClient, user: User) -> None:
    """429 with ``Retry-After``, in JSON and on the page; the code was not sent."""
    service.answers["request"] = refusal("INVALID_CONNECT_CODE")
    for number in range(5):
        hand_in(browser, f"CNX-AB12-{number:04}")
    response = hand_in(browser)
    problem = response.json()
    assert (response.status_code, problem["code"]) == (429, "too_many_tries")
    assert 590 <= problem["retry_after"] == int(response["Retry-After"]) <= 600
    assert problem["code_spent"] is False
    page = Client()
    page.force_login(user, backend=LOCAL)
    shown = page.post(reverse("identity:connect"), {"connect_code": CODE})
    assert (shown.status_code, "The limit is 5 codes in 10 minutes" in shown.content.decode()) == (
        429,
        True,
    )
    assert 590 <= int(shown["Retry-After"]) <= 600
    assert service.calls("request") == 5


@pytest.mark.parametrize("method", ["get", "put", "patch", "delete"])
def test_other_methods_are_none(service: HostileService, browser: APIClient, method: str) -> None:
    """POST alone."""
    response = getattr(browser, method)(reverse("identity:api:connect"))
    assert (response.status_code, response.json()["code"]) == (405, "method_not_allowed")
