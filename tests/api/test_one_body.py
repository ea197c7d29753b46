"""401 and 403 have one body: for gates, for permissions and for the API."""

from collections.abc import Callable
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.test import override_settings
from django.urls import include, path, reverse
from rest_framework.exceptions import ValidationError
from rest_framework.test import APIClient

from django_identity.api.problems import exception_handler
from django_identity.models import LinkedIdentity, StoredClaim
from tests.factories import LONG_AGO, make_claim, make_identity, make_user
from tests.gates.gated import (
    SECRET,
    AdultMixin,
    AsyncPage,
    Both,
    LocalMixin,
    VerifiedMixin,
    adult,
    async_view,
    local,
    verified,
    view,
)

pytestmark = [pytest.mark.django_db, pytest.mark.urls(__name__)]

MEMBERS = {"type", "title", "status", "code", "detail", "missing", "recovery", "reference"}
LOGIN_REQUIRED = "django.contrib.auth.middleware.LoginRequiredMiddleware"
LOCAL = "django.contrib.auth.backends.ModelBackend"


class AsyncAdults(AdultMixin, LocalMixin, VerifiedMixin, AsyncPage):
    pass


urlpatterns = [
    path("decorated", adult(local(verified(view)))),
    path("decorated-async", adult(local(verified(async_view)))),
    path("class", Both.as_view(required_claims=("age_over_18",))),
    path("class-async", AsyncAdults.as_view()),
    path("", include("tests.urls")),
]  # fmt: skip
GATED = ("decorated", "decorated-async", "class", "class-async")
LACKS: dict[str, tuple[str, str, str, Callable[[], Any]]] = {
    "the claim": (
        "claim_missing", "age_over_18", "verify",
        lambda: StoredClaim.objects.filter(claim_type="age_over_18").delete(),
    ),
    "a claim that holds": (
        "claim_missing", "age_over_18", "restart",
        lambda: StoredClaim.objects.filter(claim_type="age_over_18").update(valid_until=LONG_AGO),
    ),
    "the value": (
        "claim_missing", "country_resident=NG", "verify",
        lambda: StoredClaim.objects.filter(claim_type="country_resident").update(value="GB"),
    ),
    "the level": (
        "kyc_level_missing", "level_2", "verify",
        lambda: LinkedIdentity.objects.update(kyc_level="level_1"),
    ),
}  # fmt: skip


@pytest.fixture(autouse=True)
def _site() -> Any:
    """A site with ``LoginRequiredMiddleware``, whose pages these are."""
    with override_settings(MIDDLEWARE=[*settings.MIDDLEWARE, LOGIN_REQUIRED]):
        yield


@pytest.fixture
def ada() -> User:
    user = make_user()
    identity = make_identity(user)
    make_claim(identity)
    make_claim(identity, "country_resident", "NG")
    return user


def ask(address: str, user: User | None = None, accept: str = "application/json") -> Any:
    client = APIClient()
    if user is not None:
        client.force_login(user, backend=LOCAL)
    return client.get(f"/{address}", headers={"accept": accept})


def the_problem(response: Any, status: int) -> dict[str, Any]:
    """The body, which says its own status and is no page for a browser."""
    assert (response.status_code, response["Content-Type"]) == (status, "application/problem+json")
    body: dict[str, Any] = response.json()
    assert body.keys() == MEMBERS
    assert (body["status"], body["type"]) == (status, "about:blank")
    assert "private" in response["Cache-Control"]
    return body


def test_who_has_all_comes_in(ada: User) -> None:
    """Without this the rest would prove nothing."""
    for address in GATED:
        assert SECRET in ask(address, ada).content


def test_who_lacks_one_thing_is_told_which(ada: User) -> None:
    """The same body from every kind of gate, with the value that was asked for."""
    for lacking, (code, missing, recovery, lose) in LACKS.items():
        with transaction.atomic():
            lose()
            for address in GATED if lacking == "the value" else GATED[:1]:
                body = the_problem(ask(address, ada), 403)
                assert (body["code"], body["missing"], body["recovery"]) == (
                    code, missing, recovery,
                )  # fmt: skip
                assert body["detail"].count(". ") >= 1
                assert body["title"] == "Forbidden"
            transaction.set_rollback(True)


def test_nobody_is_told_to_sign_in_by_the_gate(ada: User) -> None:
    """401 with a challenge, and not the middleware's redirect; a page learns what is missing."""
    for address in GATED:
        response = ask(address)
        body = the_problem(response, 401)
        assert (body["code"], body["missing"]) == ("not_signed_in", "age_over_18")
        assert body["detail"].endswith(" to show: you are 18 or older.")
        assert response["WWW-Authenticate"] == "Session"
        page = ask(address, accept="text/html")
        assert page["Location"] == f"/identity/login/?next=%2F{address}&missing=age_over_18"


def test_the_api_has_the_same_members(ada: User) -> None:
    """For nobody, and for an error of its own."""
    client = APIClient()
    nobody = client.post(reverse("identity_api:disconnect"), format="json")
    assert nobody.json().keys() == MEMBERS
    assert (nobody.status_code, nobody["WWW-Authenticate"]) == (401, "Session")
    bad = client.post(reverse("identity_api:callback"), {"state": "x"}, format="json")
    assert bad["Content-Type"] == nobody["Content-Type"] == "application/problem+json"
    assert (bad.json().keys(), bad.json()["title"]) == (MEMBERS, "Bad Request")


@pytest.mark.parametrize(
    "accept", ["application/problem+json", "application/json;q=0.5, text/html;q=0.4"]
)
def test_who_takes_problems_gets_one(ada: User, accept: str) -> None:
    """As a client of RFC 9457 asks."""
    the_problem(ask("decorated", accept=accept), 401)


@pytest.mark.parametrize(
    ("found", "detail"),
    [
        ({"missing": ["No."]}, "missing: No."),
        # Of many rows, the second one's: as Django REST framework says it now, and as it did.
        ({1: {"missing": ["No."]}}, "missing: No."),
        ([{}, {"missing": ["No."]}], "missing: No."),
        ("No.", "No."),
        ([], "Invalid input."),
        ({}, "Invalid input."),
    ],
)
def test_an_invalid_body_of_a_sites_own_view(found: Any, detail: str) -> None:
    """The first error, whatever its shape; a field named as a member of ours is no gate's."""
    response = exception_handler(ValidationError(found), {})
    assert response is not None
    assert (response.data["code"], response.data["detail"]) == ("invalid", detail)
    assert response.data["missing"] == ""
