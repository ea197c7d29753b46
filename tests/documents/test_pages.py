"""The trusted tier end to end: a site, a real sandbox, and nothing of a document is kept."""

import base64
import copy
import json
import logging
import pickle
import re
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.core.cache import cache
from django.db import connection
from django.http import HttpResponse, JsonResponse
from django.test import Client, RequestFactory, override_settings
from django.urls import include, path, reverse
from joserfc.jwk import ECKey

from django_identity.documents import Document, document_response, documents_of
from django_identity.exceptions import DocumentsNotAllowed, IdentityError
from django_identity.models import LinkedIdentity
from django_identity.policy import IdentityPolicy
from tests.factories import make_user
from tests.gates.test_gates_closed import device
from tests.views.connect.pages import browser_of

pytestmark = pytest.mark.django_db(transaction=True)

KEY = ECKey.generate_key(
    "P-256", {"kid": "documents-1", "alg": "ECDH-ES+A256KW", "use": "enc"}, private=True
).as_dict(private=True)
PATHS = {"documents:metadata": "/listing/", "documents:read": "/passport/"}
SCOPES = ["profile:read", "documents:metadata", "documents:read"]
HOST = "http://testserver"
held: list[Document] = []


def passport(request):
    user = User.objects.get(username=request.GET["of"]) if "of" in request.GET else None
    try:
        held[:] = documents_of(request, user=user)
    except IdentityError as error:
        if isinstance(error, DocumentsNotAllowed):
            raise
        return HttpResponse(error.code, status=error.http_status)
    return document_response(held[0])


def listing(request):
    listed = documents_of(request, scope="documents:metadata")
    return JsonResponse({each.document_type: each.status for each in listed})


urlpatterns = [
    path("passport/", passport, name="passport"),
    path("listing/", listing),
    path("", lambda request: HttpResponse("home"), name="home"),
    path("identity/", include("django_identity.urls")),
]


@pytest.fixture
def site(identity_sandbox):
    """The settings of a site whose application is trusted, with its private key."""
    public = {name: value for name, value in KEY.items() if name != "d"}
    registered = identity_sandbox.register(
        [HOST + reverse("identity:callback")], document_key=public
    )
    given = {**registered, "SCOPES": SCOPES, "DOCUMENT_KEYS": [KEY]}
    with override_settings(DJANGO_IDENTITY=given, ROOT_URLCONF=__name__):
        yield given
    held.clear()


def sign_in(client, sandbox, *decline):
    person = sandbox.create_person()
    leaving = client.post(reverse("identity:login"))
    back = sandbox.control(
        "POST", "authorizations", url=leaving["Location"], user_id=person.user_id,
        decline=list(decline),
    )  # fmt: skip
    assert client.get(back["callback"].removeprefix(HOST)).status_code == 302
    return LinkedIdentity.objects.get(subject=person.user_id)


@pytest.fixture
def identity(client, identity_sandbox, site):
    return sign_in(client, identity_sandbox)


def asked(sandbox):
    requests = sandbox.control("GET", "requests")
    return sum(1 for each in requests if "document" in each["endpoint"])


def test_a_person_sees_their_passport(client, identity):
    response = client.get("/passport/")
    assert response.content.startswith(b"\x89PNG\r\n\x1a\n")
    assert response["Content-Type"] == "image/png"
    assert response["X-Content-Type-Options"] == "nosniff"
    assert "no-store" in response["Cache-Control"]
    assert "private" in response["Cache-Control"]
    assert [each.document_type for each in held] == [
        "passport", "national_id", "bank_verification_number",
    ]  # fmt: skip


def test_metadata_is_read_without_content(client, identity, identity_sandbox):
    """Of the standard tier; a token that the service refuses is replaced, as for claims."""
    identity_sandbox.control("POST", "clock", advance=3700)
    assert client.get("/listing/").json()["passport"] == "verified"


def everything_stored() -> bytes:
    """A dump of every table, and of the cache."""
    stored = getattr(cache, "_cache", {})
    dumped = [*stored, *stored.values()]
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names():
            cursor.execute(f"SELECT * FROM {connection.ops.quote_name(table)}")
            dumped += cursor.fetchall()
    return b"".join(
        each if isinstance(each, bytes) else repr(each).encode() for each in dumped
    )


def test_nothing_of_a_document_is_kept(client, identity, caplog):
    caplog.set_level(logging.DEBUG)
    client.get("/passport/")
    client.get("/listing/")
    client.get(reverse("identity:account"))
    number = json.loads(held[2].content)["bank_verification_number"].encode()
    assert all(number in each.content for each in held)
    kept = everything_stored() + caplog.text.encode()
    assert identity.subject.encode() in kept, "the search finds what is there"
    line = "identity.documents.read view=passport scope=documents:read row="
    assert f"{line}{identity.pk}".encode() in kept
    for document in held:
        for plain in (number, document.content[:64], document.content[-64:]):
            assert plain not in kept
            assert base64.b64encode(plain) not in kept


def test_a_document_says_nothing_and_cannot_be_kept(client, identity):
    client.get("/passport/")
    assert not re.search("PNG|passport", repr(held))
    for keep in (pickle.dumps, copy.deepcopy, partial(cache.set, "document")):
        with pytest.raises(TypeError):
            keep(held[0])


def test_other_people_may_not_ask(client, identity, identity_sandbox):
    before = asked(identity_sandbox)
    assert Client().get("/passport/").status_code == 403
    other = browser_of(make_user("eve", is_staff=True, is_superuser=True))
    assert other.get("/passport/").status_code == 403
    assert other.get(f"/passport/?of={identity.user.username}").status_code == 403
    assert Client().get(f"/passport/?of={identity.user.username}").status_code == 403
    assert asked(identity_sandbox) == before


def staff_alone(_policy, asked_by, _identity, *, scope):
    return asked_by.is_staff and scope == "documents:read"


def test_the_policy_decides_about_each_scope(client, identity, monkeypatch):
    """About each scope by itself: here staff read documents' content, and nobody metadata."""
    staff = browser_of(make_user("officer", is_staff=True))
    monkeypatch.setattr(IdentityPolicy, "may_read_documents", staff_alone)
    assert staff.get(f"/passport/?of={identity.user.username}").status_code == 200
    assert client.get("/passport/").status_code == 403
    assert client.get("/listing/").status_code == 403


def test_nothing_but_an_account_has_documents(identity, monkeypatch):
    """The key of a row of another table is the account's of another person."""
    monkeypatch.setattr(IdentityPolicy, "may_read_documents", staff_alone)
    request: Any = RequestFactory().get("/passport/")
    request.resolver_match = None
    request.user = make_user("officer", is_staff=True)
    assert documents_of(request, user=identity.user)
    group: Any = Group(pk=identity.user_id, name="a group")
    foreign = User.objects.get(pk=identity.user_id)
    foreign._state.db = "archive"
    for other in (group, device(identity.user), foreign):
        with pytest.raises(DocumentsNotAllowed):
            documents_of(request, user=other)


@pytest.mark.parametrize("declined", PATHS)
def test_a_declined_scope_is_not_asked_for(client, identity_sandbox, site, declined):
    identity = sign_in(client, identity_sandbox, declined)
    assert declined not in identity.scopes
    before = asked(identity_sandbox)
    assert client.get(PATHS[declined]).status_code == 403
    assert asked(identity_sandbox) == before
    [served] = {*PATHS.values()} - {PATHS[declined]}
    assert client.get(served).status_code == 200
