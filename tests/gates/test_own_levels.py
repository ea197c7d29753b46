"""Levels with names of the service's own, and the way to a code through a sign-in."""

from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse
from django.test import Client, override_settings
from django.urls import include, path, reverse

from django_identity.gates import claim_required, kyc_level_required
from tests.factories import make_identity, make_user
from tests.fake_service import FakeService
from tests.views.connect.pages import LOCAL

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.urls(__name__)]


@kyc_level_required("Enhanced")
def enhanced(request: HttpRequest) -> HttpResponse:
    return HttpResponse("in")


@claim_required("age_over_18")
def adults(request: HttpRequest) -> HttpResponse:
    return HttpResponse("in")


urlpatterns = [
    path("enhanced/", enhanced),
    path("adults/", adults),
    path("accounts/login/", LoginView.as_view()),
    path("identity/", include("django_identity.urls")),
]


def of(level: str) -> Client:
    user = make_user()
    make_identity(user, kyc_level=level)
    client = Client()
    client.force_login(user, backend=LOCAL)
    return client


def test_a_level_with_another_name_is_a_level(service: FakeService) -> None:
    """Its gate opens to it alone, and each page calls it a level."""
    assert of("Enhanced").get("/enhanced/").content == b"in"


def test_its_closed_gate_says_why(service: FakeService) -> None:
    """A link may name only the levels of the spec, so the sign-in page has no word for this one."""
    closed = of("Basic").get("/enhanced/", headers={"accept": "application/json"}).json()
    assert (closed["code"], closed["missing"]) == ("kyc_level_missing", "Enhanced")


def links(response: Any) -> bool:
    return reverse("identity:connect", args=["default"]) in response.text


def test_the_sign_in_page_offers_no_code(client: Client, service: FakeService) -> None:
    assert not links(client.get(reverse("identity:login")))


@pytest.mark.parametrize("has_page", [True, False])
def test_the_next_page_survives_the_sign_in_before_a_code(
    client: Client, service: FakeService, has_page: bool
) -> None:
    """From ``connect/?next=`` to the sign-in page, back to the code, and on."""
    with override_settings(IDENTITY_LOCAL_SIGN_IN_URL="/accounts/login/" if has_page else None):
        response = client.get(reverse("identity:connect"), {"next": "/enhanced/?a=1&b=2"})
        address = urlsplit(response["Location"])
        assert address.path == ("/accounts/login/" if has_page else "/identity/login/")
        (back,) = parse_qs(address.query)["next"]
        make_user()
        client.login(username="ada", password="a password")
        form = client.get(back)
    assert form.context["next"] == "/enhanced/?a=1&b=2"
