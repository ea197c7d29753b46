"""The documents page of the example: each type has a name, in each language."""

import re
from collections.abc import Iterator
from html import unescape

import pytest
from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.contrib.messages.storage.cookie import CookieStorage
from django.template.loader import render_to_string
from django.test import RequestFactory, override_settings
from django.utils import translation

from django_identity.documents import Document
from tests.test_translations import EXAMPLE, LANGUAGES

TYPES = ("passport", "national_id", "bank_verification_number", "proof_of_address")


@pytest.fixture(autouse=True)
def circle() -> Iterator[None]:
    """The example's templates, addresses and catalogues."""
    with override_settings(
        INSTALLED_APPS=["example_project.circle", *settings.INSTALLED_APPS],
        ROOT_URLCONF="example_project.urls",
        LOCALE_PATHS=[EXAMPLE],
    ):
        yield


def shown(documents: list[Document]) -> str:
    request = RequestFactory().get("/documents/")
    request.user, request._messages = AnonymousUser(), CookieStorage(request)
    return unescape(render_to_string("circle/documents.html", {"documents": documents}, request))


@pytest.mark.parametrize("language", ["en", *LANGUAGES])
def test_each_type_has_a_name(language: str) -> None:
    """No code of the service stands on the page; a type without a name is shown as it is."""
    with translation.override(language):
        page = shown([Document(each, "1", "NG", "verified") for each in (*TYPES, "a_licence")])
    *names, unnamed = re.findall(r"<h2>(.*?)</h2>", page)
    assert (len(set(names)), unnamed) == (4, "a_licence")
    assert not any(each in page for each in TYPES[1:])
    assert ("Proof of address" in names) is (language == "en")


def test_nothing_is_shared() -> None:
    assert "You share no documents with this site." in shown([])
