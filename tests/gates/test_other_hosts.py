"""Gates on a host with addresses of its own, among which there are none of ours."""

from collections.abc import Callable
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.test import Client
from django.urls import include, path

from django_identity.gates import claim_required
from tests.factories import make_user

pytestmark = pytest.mark.django_db

HOST = "shop.testserver"
ELSEWHERE = "https://accounts.example.org/sign-in/"
SECRET = b"behind a gate"


def bar(request: HttpRequest) -> HttpResponse:
    return HttpResponse(SECRET)


urlpatterns = [
    path("bar/", claim_required("age_over_18")(bar)),
    path("club/", claim_required("age_over_18", on_closed="forbid")(bar)),
    path("enter/", bar, name="enter"),
    # With ours, below a place that a view of the site has to name.
    path("<slug:shop>/identity/", include("django_identity.urls")),
]


def by_host(get_response: Callable[[HttpRequest], Any]) -> Callable[[HttpRequest], Any]:
    """As packages for subdomains do."""

    def middleware(request: HttpRequest) -> Any:
        if request.get_host() == HOST:
            request.urlconf = __name__
        return get_response(request)

    return middleware


@pytest.fixture(autouse=True)
def _hosts(settings: Any) -> None:
    settings.ALLOWED_HOSTS = ["*"]
    settings.MIDDLEWARE = [f"{__name__}.by_host", *settings.MIDDLEWARE]


def ask(user: User | None, address: str = "/bar/", **headers: str) -> Any:
    browser = Client(headers={"host": HOST, **headers})
    if user is not None:
        browser.force_login(user, backend=settings.AUTHENTICATION_BACKENDS[0])
    return browser.get(address)


@pytest.mark.parametrize(
    ("login_url", "leads_to"),
    [
        ("/enter/", "/enter/?next=/bar/%3Fa%3D1"),
        ("enter", "/enter/?next=/bar/%3Fa%3D1"),
        (ELSEWHERE, f"{ELSEWHERE}?next=http%3A//{HOST}/bar/%3Fa%3D1"),
    ],
)
def test_a_stranger_goes_to_the_sites_own_login_page(settings, login_url, leads_to):
    """As Django's own decorators lead there. HTMX is told so too."""
    settings.LOGIN_URL = login_url
    response = ask(None, "/bar/?a=1")
    assert (response.status_code, response["Location"]) == (302, leads_to)
    htmx = ask(None, "/bar/?a=1", **{"HX-Request": "true"})
    assert (htmx.status_code, htmx["HX-Redirect"]) == (204, leads_to)


@pytest.mark.parametrize(
    ("is_stranger", "address", "login_url"),
    [
        (True, "/bar/", "identity:login"), (True, "/club/", "/enter/"),
        (False, "/bar/", "/enter/"), (False, "/club/", "/enter/"),
    ],
)  # fmt: skip
def test_else_the_answer_is_plain(settings, is_stranger, address, login_url):
    """Signing in again would prove nothing. The page says what is missing, and is private."""
    settings.LOGIN_URL = login_url

    response = ask(None if is_stranger else make_user(), address)
    assert response.status_code == 403
    assert response["Content-Type"].startswith("text/plain")
    words = "be 18 or older" if is_stranger else "Your account is not connected"
    assert words in response.content.decode()
    assert "private" in response["Cache-Control"]
    assert SECRET not in response.content
