"""Levels with names of the service's own, and the way to a code through a sign-in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse
from django.test import Client, override_settings
from django.urls import include, path, reverse

from django_identity.gates import claim_required, kyc_level_required
from django_identity.lifecycle.standing.explanation import explained
from django_identity.policy import IdentityPolicy
from tests.faces.connect.pages import LOCAL
from tests.hostile import HostileService
from tests.records import make_identity, make_user

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


class ByCode(IdentityPolicy):
    connect_may_sign_in = True


class Own(IdentityPolicy):
    """A site without a sign-in page of its own."""

    def local_sign_in_url(self) -> None:
        return None


@pytest.fixture
def by_code(service: HostileService) -> Iterator[None]:
    given = service.settings(POLICY=f"{__name__}.ByCode")
    with override_settings(DJANGO_IDENTITY={"default": given}):
        yield


def of(level: str) -> Client:
    user = make_user()
    make_identity(user, kyc_level=level)
    client = Client()
    client.force_login(user, backend=LOCAL)
    return client


def test_a_level_with_another_name_is_a_level(service: HostileService) -> None:
    """Its gate opens to it alone, and each page calls it a level."""
    assert of("Enhanced").get("/enhanced/").content == b"in"


def test_its_closed_gate_asks_for_a_level(service: HostileService) -> None:
    client = of("Basic")
    closed = client.get("/enhanced/", follow=True)
    assert "Show that you are verified at level Enhanced" in closed.text
    assert closed.context["shortfall"].reason == "lower_level"
    account = client.get(reverse("identity:account"))
    assert "Verification at level Basic" in account.text


def test_an_explanation_has_the_sites_levels(service: HostileService) -> None:
    identity = make_identity(make_user(), kyc_level="Enhanced")
    answers = {answer.asked: answer.is_open for answer in explained(identity).levels}
    assert answers["Enhanced"]
    assert not answers["level_1"]


def links(response: Any) -> bool:
    return reverse("identity:connect", args=["default"]) in response.text


def test_the_sign_in_page_offers_the_code(client: Client, by_code: None) -> None:
    """Where a code signs in, and where it may help: it brings no claims."""
    assert links(client.get("/enhanced/", follow=True))
    assert not links(client.get("/adults/", follow=True))
    assert links(client.get(reverse("identity:login")))


def test_elsewhere_it_does_not(client: Client, service: HostileService) -> None:
    assert not links(client.get(reverse("identity:login")))


@pytest.mark.parametrize("has_page", [True, False])
def test_the_next_page_survives_the_sign_in_before_a_code(
    client: Client, service: HostileService, has_page: bool
) -> None:
    """From ``connect/?next=`` to the sign-in page, back to the code, and on."""
    policy = IdentityPolicy if has_page else Own
    given = service.settings(POLICY=f"{policy.__module__}.{policy.__name__}")
    with override_settings(DJANGO_IDENTITY={"default": given}):
        response = client.get(reverse("identity:connect"), {"next": "/enhanced/?a=1&b=2"})
        address = urlsplit(response["Location"])
        assert address.path == ("/accounts/login/" if has_page else "/identity/login/")
        (back,) = parse_qs(address.query)["next"]
        make_user()
        client.login(username="ada", password="a password")
        form = client.get(back)
    assert form.context["next"] == "/enhanced/?a=1&b=2"
