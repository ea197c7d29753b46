"""The map of gates says of the example's pages what a visitor meets there."""

import re

import pytest
from django.conf import settings
from django.contrib.auth.models import AnonymousUser, User
from django.http import HttpResponse
from django.test import Client, override_settings

from django_identity.gates import closed_to
from django_identity.instruments import gate_map
from tests.example_project import people

# Only then do the addresses have the page of documents.
TRUSTED = {**settings.DJANGO_IDENTITY, "LATER_SCOPES": ["documents:read"]}
DOCUMENTS = {"/documents/", "/documents/passport/"}
GATED = {"/adults/", "/residents/", "/loans/", "/leave/", "/api/circles/", *DOCUMENTS}
#: What is closed to a person: nobody has come back from the service lately, or allowed documents.
CLOSED = {
    "": GATED, "proven": {"/leave/", *DOCUMENTS},
    "abroad": {"/residents/", "/loans/", "/leave/", *DOCUMENTS}, "run_out": GATED - {"/loans/"},
    "revoked": GATED - {"/loans/"}, "withdrawn": GATED, "unlinked": GATED,
}  # fmt: skip


def is_closed(answer: HttpResponse) -> bool:
    """Whether a gate answered: by its page, or by a problem that names what is missing."""
    if answer.status_code == 302:
        return "missing=" in answer["Location"]
    return answer.status_code in (401, 403) and answer.request["PATH_INFO"] in GATED


def address_of(url: str) -> str:
    """An address under the pattern ``url``, with something in each of its places."""
    filled = re.sub(r"\(\?P<app_label>.*?\)", "auth", url)
    return re.sub(r"\(\?P<.*?\)|<.*?>", "1", filled).replace("^", "").replace("$", "")


@pytest.mark.django_db(transaction=True)
@override_settings(
    INSTALLED_APPS=["example_project.circle", *settings.INSTALLED_APPS],
    ROOT_URLCONF="example_project.urls",
    DJANGO_IDENTITY=TRUSTED,
)
def test_every_url_is_closed_where_the_map_says_so():
    addresses = list(gate_map.addresses())
    sessions = people.settle()
    for person, closed in CLOSED.items():
        # An open page of the example may fail, outside a transaction: its own tables are not here.
        browser, user = Client(raise_request_exception=False), AnonymousUser()
        if person:
            name = people.PEOPLE[person][0].split()[0].lower()
            user = User.objects.get(username=name)
            browser.cookies["sessionid"] = sessions[person]
        session, said, met = browser.session, set(), set()
        for address in addresses:
            if any(
                closed_to(gate, user, session=session) for gate in address.reading.gates
            ):
                said.add(address.url)
            # One visitor looks whether a page is closed of which the map says nothing.
            if person and not address.reading.gates:
                continue
            if is_closed(browser.get(address_of(address.url))):
                met.add(address.url)

        assert said == met == closed, person
