"""``docs/testing.md``: each of its tests passes as it stands, on a site with a bar."""

from collections.abc import Iterator
from types import FunctionType

import pytest
from django.http import HttpRequest, HttpResponse
from django.test import modify_settings
from django.urls import include, path

from django_identity.gates import claim_required
from tests.snippets import blocks_of, module_of

PAGE = "testing.md"
pytestmark = pytest.mark.urls(__name__)


@claim_required("age_over_18")
def bar(request: HttpRequest) -> HttpResponse:
    return HttpResponse("Welcome to the bar.")


urlpatterns = [path("bar/", bar), path("", include("tests.urls"))]


@pytest.fixture(autouse=True)
def _without_leaks() -> Iterator[None]:
    """The suite's own app has a table that cannot be read."""
    with modify_settings(INSTALLED_APPS={"remove": "tests.leaky"}):
        yield


for name in blocks_of(PAGE):
    for each in vars(module_of(name, page=PAGE)).values():
        if isinstance(each, FunctionType) and each.__name__.startswith("test_"):
            globals()[each.__name__] = each


def test_every_example_is_run() -> None:
    """Each block of Python but the ``conftest.py``."""
    assert len(blocks_of(PAGE)) == 9
