"""``docs/testing.md`` and ``docs/beside.md``: their tests pass as they stand, on a site with a bar.

``tests/sites`` runs the examples that need other packages.
"""

from collections.abc import Iterator

import pytest
from django.http import HttpRequest, HttpResponse
from django.test import modify_settings, override_settings
from django.urls import include, path

from django_identity.gates import claim_required
from tests.factories import make_claim, make_identity, make_user
from tests.snippets import blocks_of, examples_of, module_of

PAGE = "testing.md"
pytestmark = pytest.mark.urls(__name__)


@claim_required("age_over_18")
def bar(request: HttpRequest) -> HttpResponse:
    return HttpResponse("Welcome to the bar.")


urlpatterns = [
    path("bar/", bar),
    path("wines/", module_of("htmx").wines),
    path("", include("tests.urls")),
]


@pytest.fixture(autouse=True)
def _without_leaks() -> Iterator[None]:
    """The suite's own app has a table that cannot be read."""
    with modify_settings(INSTALLED_APPS={"remove": "tests.leaky"}):
        yield


# pytest collects them as they stand.
globals().update(examples_of(*blocks_of(PAGE), page=PAGE))
here = override_settings(ROOT_URLCONF=__name__)
BarTests = here(module_of("unittest").BarTests)
SignInTests = here(module_of("unittest").SignInTests)


def test_every_example_is_run():
    """Each block of Python but the ``conftest.py``."""
    assert len(blocks_of(PAGE)) == 9


@pytest.mark.django_db
def test_a_fragment_of_htmx_leads_the_whole_page(client, settings, tmp_path):
    """Open, it is the fragment; closed, the page goes and comes back to where it was."""
    engine = settings.TEMPLATES[0]["BACKEND"]
    settings.TEMPLATES = [{"BACKEND": engine, "DIRS": [tmp_path]}]
    (tmp_path / "wines.html").write_text("Wine")
    page = {"HX-Request": "true", "HX-Current-URL": "http://testserver/shop/?kind=red"}
    closed = client.get("/wines/", headers=page)
    assert closed.status_code == 204
    way = "/identity/login/?next=%2Fshop%2F%3Fkind%3Dred&missing=age_over_18"
    assert closed["HX-Redirect"] == way

    user = make_user()
    make_claim(make_identity(user))
    client.force_login(user)
    assert client.get("/wines/", headers=page).content == b"Wine"
