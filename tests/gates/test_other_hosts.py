"""Gates on a host with addresses of its own, among which there are none of ours."""

import pytest
from django.urls import include, path

from django_identity.gates import claim_required
from tests.factories import make_user
from tests.gates.gated_views import SECRET, view

pytestmark = [pytest.mark.django_db, pytest.mark.urls(__name__)]

ELSEWHERE = "https://accounts.example.org/sign-in/"
urlpatterns = [
    path("bar/", claim_required("age_over_18")(view)),
    path("club/", claim_required("age_over_18", on_closed="forbid")(view)),
    path("enter/", view, name="enter"),
    # With ours, below a place that a view of the site has to name.
    path("<slug:shop>/identity/", include("django_identity.urls")),
]


@pytest.mark.parametrize(
    ("login_url", "leads_to"),
    [
        ("/enter/", "/enter/?next=/bar/%3Fa%3D1"),
        ("enter", "/enter/?next=/bar/%3Fa%3D1"),
        (ELSEWHERE, f"{ELSEWHERE}?next=http%3A//testserver/bar/%3Fa%3D1"),
    ],
)
def test_a_stranger_goes_to_the_sites_own_login_page(
    client,
    settings,
    login_url,
    leads_to,
):
    """As Django's own decorators lead there. HTMX is told so too."""
    settings.LOGIN_URL = login_url
    response = client.get("/bar/?a=1")
    assert response.status_code == 302
    assert response["Location"] == leads_to
    htmx = client.get("/bar/?a=1", headers={"HX-Request": "true"})
    assert htmx.status_code == 204
    assert htmx["HX-Redirect"] == leads_to


@pytest.mark.parametrize(
    ("is_stranger", "address", "login_url"),
    [
        (True, "/bar/", "identity:login"),
        (True, "/club/", "/enter/"),
        (False, "/bar/", "/enter/"),
        (False, "/club/", "/enter/"),
    ],
)
def test_else_the_answer_is_plain(client, settings, is_stranger, address, login_url):
    """Signing in again would prove nothing. The page says what is missing, and is private."""
    settings.LOGIN_URL = login_url
    if not is_stranger:
        client.force_login(make_user(), backend=settings.AUTHENTICATION_BACKENDS[0])

    response = client.get(address)

    assert response.status_code == 403
    assert response["Content-Type"].startswith("text/plain")
    words = "be 18 or older" if is_stranger else "Your account is not connected"
    assert words in response.content.decode()
    assert "private" in response["Cache-Control"]
    assert SECRET not in response.content
