"""``POST api/connect``: the same rules as the page, and errors for machines."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client, override_settings
from django.urls import include, path, reverse
from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request
from rest_framework.test import APIClient

from django_identity.api.views import ConnectView
from django_identity.models import LinkedIdentity
from tests import fake_service
from tests.factories import make_user
from tests.fake_service import FakeService, http

pytestmark = pytest.mark.django_db(transaction=True)

CODE = "CNX-AB12-CD34"
LOCAL = "django.contrib.auth.backends.ModelBackend"


class HeaderAuthentication(BaseAuthentication):
    """A site's own authentication: whoever the header names."""

    def authenticate(self, request: Request) -> tuple[User, None] | None:
        name = request.headers.get("Authorization", "").removeprefix("Token of ")
        return (User.objects.get(username=name), None) if name else None

    def authenticate_header(self, request: Request) -> str:
        return "Token"


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
    address = reverse("identity_api:connect")
    return client.post(address, {"connect_code": code}, format="json", headers=headers)


def refusal(code: str, status: str = "400 Bad Request", **beside: object) -> bytes:
    return fake_service.answer({"success": False, "error": {"code": code}, **beside}, status=status)


def test_a_code_verifies_the_account(
    service: FakeService, browser: APIClient, user: User, caplog: pytest.LogCaptureFixture
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
        (fake_service.html("500 Oops"), 502,
         {"code": "connect_outcome_unknown", "recovery": "restart", "code_spent": True}),
        (http(b'{"success": true, "data": {"status": "approved"}}'), 502,
         {"code": "malformed_answer", "recovery": "retry", "code_spent": True}),
    ],
    ids=lambda value: str(value)[:40],
)  # fmt: skip
def test_errors_are_for_machines(
    service: FakeService, browser: APIClient, caplog: pytest.LogCaptureFixture,
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


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ("hello", "connect_code_malformed"), (7, "connect_code_malformed"), ("", "blank"),
        (None, "null"), (["CNX-AB12-CD34"], "invalid"), ({}, "invalid"), ("x" * 5000, "max_length"),
    ],
)  # fmt: skip
def test_what_is_no_code_is_not_sent(
    service: FakeService, browser: APIClient, given: object, code: str
) -> None:
    """A text without a code, and what is no text."""
    response = hand_in(browser, given)
    assert response.status_code == 400
    assert (response.json()["code"], response.json()["code_spent"]) == (code, False)
    assert service.requests == []


def test_a_session_needs_its_token(service: FakeService, user: User) -> None:
    """Another site cannot make a signed-in browser hand a code in."""
    client = APIClient(enforce_csrf_checks=True)
    client.force_login(user, backend=LOCAL)
    response = hand_in(client)
    assert (response.status_code, response.json()["code"]) == (403, "permission_denied")
    assert service.requests == []
    client.get(reverse("identity:connect"))
    token = client.cookies["csrftoken"].value
    assert hand_in(client, **{"X-CSRFToken": token}).status_code == 200


def test_the_sites_own_authentication(service: FakeService, user: User) -> None:
    """A site that knows its users otherwise uses that."""
    with override_settings(ROOT_URLCONF=__name__):
        client = APIClient(enforce_csrf_checks=True)
        body = {"connect_code": CODE}
        assert client.post("/own", body, format="json").status_code == 403
        given = client.post("/own", body, format="json", headers={"Authorization": "Token of ada"})
    assert given.status_code == 200
    assert LinkedIdentity.objects.get().user == user


def test_waiting_is_told(service: FakeService, browser: APIClient, user: User) -> None:
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
