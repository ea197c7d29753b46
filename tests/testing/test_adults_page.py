"""``docs/adults.md``: its tests pass as they stand, on a site with its policy and its page."""

import sys
from collections.abc import Iterator

import pytest
from django.conf import settings
from django.test import override_settings
from django.urls import include, path

from tests.snippets import blocks_of, examples_of, module_of

PAGE = "adults.md"
pytestmark = pytest.mark.urls(__name__)
policy = module_of("policy", page=PAGE)
urlpatterns = [
    path("bar/", module_of("views", page=PAGE).bar),
    path("", include("tests.urls")),
]


@pytest.fixture(autouse=True)
def _with_its_policy(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(sys.modules, policy.__name__, policy)
    named = {
        "POLICY": f"{policy.__name__}.Policy",
        "KEEP_CLAIMS": ["age_over_18"],
    }
    with override_settings(DJANGO_IDENTITY=settings.DJANGO_IDENTITY | named):
        yield


globals().update(examples_of("tests", page=PAGE))


def test_every_named_example_is_run():
    assert blocks_of(PAGE).keys() == {"policy", "views", "tests"}
