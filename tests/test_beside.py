"""``docs/beside.md``: the snippets that need no other package. ``tests/sites`` runs the others."""

import pytest
from django.http import HttpRequest, HttpResponse
from django.test import override_settings
from django.urls import include, path

from django_identity.gates import claim_required
from tests.factories import make_claim, make_identity, make_user
from tests.snippets import module_of

htmx = module_of("htmx")


@claim_required("age_over_18")
def bar(request: HttpRequest) -> HttpResponse:
    return HttpResponse("Welcome to the bar.")


urlpatterns = [
    path("bar/", bar),
    path("wines/", htmx.wines),
    path("", include("tests.urls")),
]
WITH_WINES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "OPTIONS": {
            "loaders": [
                ("django.template.loaders.locmem.Loader", {"wines.html": "Wine"})
            ]
        },
    }
]

# pytest collects them as they stand.
here = override_settings(ROOT_URLCONF=__name__)
BarTests = here(module_of("unittest").BarTests)
SignInTests = here(module_of("unittest").SignInTests)


@pytest.mark.django_db
@pytest.mark.urls(__name__)
@override_settings(TEMPLATES=WITH_WINES)
def test_a_fragment_of_htmx_leads_the_whole_page(client):
    """Open, it is the fragment; closed, the page goes and comes back to where it was."""
    page = {"HX-Request": "true", "HX-Current-URL": "http://testserver/shop/?kind=red"}
    closed = client.get("/wines/", headers=page)
    assert closed.status_code == 204
    assert closed["HX-Redirect"] == (
        "/identity/login/?next=%2Fshop%2F%3Fkind%3Dred&missing=age_over_18"
    )
    user = make_user()
    make_claim(make_identity(user))
    client.force_login(user)
    assert client.get("/wines/", headers=page).content == b"Wine"
