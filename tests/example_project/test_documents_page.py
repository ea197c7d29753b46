"""The documents page of the example."""

import re
from html import unescape

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.contrib.messages.storage.cookie import CookieStorage
from django.template.loader import render_to_string
from django.test import RequestFactory, override_settings

from django_identity.documents import Document

# Only then do the addresses have the page.
TRUSTED = {**settings.DJANGO_IDENTITY, "LATER_SCOPES": ["documents:read"]}
TYPES = ("passport", "national_id", "bank_verification_number", "proof_of_address")


def shown(documents: list[Document]) -> str:
    request = RequestFactory().get("/documents/")
    request.user, request._messages = AnonymousUser(), CookieStorage(request)
    return unescape(
        render_to_string("circle/documents.html", {"documents": documents}, request)
    )


@override_settings(
    INSTALLED_APPS=["example_project.circle", *settings.INSTALLED_APPS],
    ROOT_URLCONF="example_project.urls",
    DJANGO_IDENTITY=TRUSTED,
)
def test_each_type_has_a_name():
    """No code of the service stands on the page; a type without a name is shown as it is."""
    page = shown(
        [Document(each, "1", "NG", "verified") for each in (*TYPES, "a_licence")]
    )
    *names, unnamed = re.findall(r"<h2>(.*?)</h2>", page)
    assert (len(set(names)), names[-1], unnamed) == (4, "Proof of address", "a_licence")
    assert not any(each in page for each in TYPES[1:])
    assert "You share no documents with this site." in shown([])
