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
from tests.test_translations import EXAMPLE

TYPES = ("passport", "national_id", "bank_verification_number", "proof_of_address")
NAMES = {
    "en": ["Passport", "National identity card", "Bank verification number", "Proof of address"],
    "fr": ["Passeport", "Carte nationale d\u2019identité", "Numéro de vérification bancaire",
           "Justificatif de domicile"],
    "es": ["Pasaporte", "Documento nacional de identidad", "Número de verificación bancaria",
           "Justificante de domicilio"],
    "pt": ["Passaporte", "Cartão nacional de identidade", "Número de verificação bancária",
           "Comprovativo de morada"],
    "pt-br": ["Passaporte", "Carteira de identidade nacional", "Número de verificação bancária",
              "Comprovante de residência"],
    "ar": ["جواز السفر", "بطاقة الهوية الوطنية", "رقم التحقق المصرفي", "إثبات العنوان"],
}  # fmt: skip


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


@pytest.mark.parametrize("language", NAMES)
def test_each_type_has_a_name(language: str) -> None:
    """No code of the service stands on the page."""
    with translation.override(language):
        page = shown([Document(each, "1", "NG", "verified") for each in TYPES])

    assert re.findall(r"<h2>(.*?)</h2>", page) == NAMES[language]
    assert not any(each in page for each in TYPES[1:])


def test_a_type_without_a_name_is_shown_as_it_is() -> None:
    assert "<h2>driving_licence</h2>" in shown([Document("driving_licence", "1", "", "")])


def test_nothing_is_shared() -> None:
    assert "You share no documents with this site." in shown([])
