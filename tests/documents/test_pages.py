"""The trusted tier end to end: a site, a real sandbox, and nothing of a document is kept."""

import base64
import copy
import json
import logging
import pickle
import re
import traceback
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.core.cache import cache
from django.db import connection
from django.http import HttpResponse, JsonResponse
from django.test import Client, RequestFactory, override_settings
from django.urls import include, path, reverse
from joserfc import jwe
from joserfc.jwk import ECKey

from django_identity import conf
from django_identity.documents import Document, document_response, documents_of, reading
from django_identity.exceptions import (
    ConfigurationError,
    DocumentsNotAllowed,
    DocumentUnreadable,
    IdentityError,
    MalformedAnswer,
    SubjectMismatch,
)
from django_identity.models import Consent, LinkedIdentity
from django_identity.policy import IdentityPolicy
from django_identity.secrets import Secret
from django_identity.service import ServiceClient
from tests.factories import make_grant, make_identity, make_user
from tests.fake_service import FakeService
from tests.gates.test_gates_closed import device
from tests.views.connect.pages import browser_of

pytestmark = pytest.mark.django_db(transaction=True)

KEY = ECKey.generate_key(
    "P-256",
    {"kid": "documents-1", "alg": "ECDH-ES+A256KW", "use": "enc"},
    private=True,
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
        [HOST + reverse("identity:callback")],
        document_key=public,
    )
    given = {**registered, "SCOPES": SCOPES, "DOCUMENT_KEYS": [KEY]}
    with override_settings(DJANGO_IDENTITY=given, ROOT_URLCONF=__name__):
        yield given
    held.clear()


def sign_in(client, sandbox, *decline):
    person = sandbox.create_person()
    leaving = client.post(reverse("identity:login"))
    back = sandbox.control(
        "POST",
        "authorizations",
        url=leaving["Location"],
        user_id=person.user_id,
        decline=list(decline),
    )
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
        "passport",
        "national_id",
        "bank_verification_number",
    ]


def test_metadata_is_read_without_content(client, identity, identity_sandbox):
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
    staff = browser_of(make_user("officer", is_staff=True))
    monkeypatch.setattr(IdentityPolicy, "may_read_documents", staff_alone)
    assert staff.get(f"/passport/?of={identity.user.username}").status_code == 200
    assert client.get("/passport/").status_code == 403
    assert client.get("/listing/").status_code == 403


def test_a_row_that_no_event_finds_has_no_documents(identity, monkeypatch):
    """SQL has changed it: the end of the consent would not reach it."""
    staff = browser_of(make_user("officer", is_staff=True))
    monkeypatch.setattr(IdentityPolicy, "may_read_documents", staff_alone)
    LinkedIdentity.objects.filter(pk=identity.pk).update(subject_digest="0" * 64)

    assert staff.get(f"/passport/?of={identity.user.username}").status_code == 403


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


# Documents that a misbehaving service sends: a typed error and one log line


JWK = ECKey.generate_key(
    "P-256",
    {"kid": "k", "alg": "ECDH-ES", "use": "enc"},
    private=True,
)
PNG = b"\x89PNG\r\n\x1a\n"
SECRET = b"C0FFEE-1234567"


SEALED = jwe.encrypt_compact(
    {"alg": "ECDH-ES", "enc": "A256GCM", "kid": "k"},
    PNG + SECRET,
    JWK,
    algorithms=["ECDH-ES", "A256GCM"],
)


def answer(*listed: Any, **beside: Any) -> dict[str, Any]:
    return {
        "success": True,
        "data": {"user_id": "subject-1", "documents": list(listed), **beside},
    }


def document(**changes: Any) -> dict[str, Any]:
    return {
        "document_type": "passport",
        "document_id": "1",
        "country": "NG",
        "status": "verified",
        "content_type": "image/png",
        "content": SEALED,
        **changes,
    }


@pytest.fixture
def linked(service: FakeService) -> Any:
    given = service.settings(DOCUMENT_KEYS=[JWK.as_dict(private=True)])
    with override_settings(DJANGO_IDENTITY=given):
        user = make_user()
        scopes = ["documents:metadata", "documents:read"]
        linked = make_identity(user, scopes=scopes)
        make_grant(linked)
        yield linked


def read(linked: LinkedIdentity, scope: str = reading.CONTENT) -> tuple[Document, ...]:
    request = RequestFactory().get("/")
    request.user = linked.user
    return documents_of(request, scope=scope)


def test_an_odd_subject_is_quoted(service):
    """In whatever path the site set."""
    odd, paths = "a/b ?ü{}", {"documents:read": "/v2/{subject}/documents"}
    service.answers["documents"] = answer(document(), user_id=odd)
    with override_settings(DJANGO_IDENTITY=service.settings(DOCUMENT_PATHS=paths)):
        client = ServiceClient(conf.application())
        assert client.documents(odd, scope=reading.CONTENT, access_token=Secret("at"))
    assert service.newest("documents") == "/api/v1/v2/a%2Fb%20%3F%C3%BC%7B%7D/documents"


#: ``documents/test_keys.py`` has what does not open, and content of another type.
BAD: dict[str, tuple[dict[str, Any], type[IdentityError]]] = {
    "plain content": (answer(document(content="C0FFEE-1234567")), DocumentUnreadable),
    "the second is bad": (
        answer(document(), document(content="no")),
        DocumentUnreadable,
    ),
    "of 24 MB": (answer(document(content="A" * (25 << 20))), MalformedAnswer),
    "of another subject": (answer(document(), user_id="subject-2"), SubjectMismatch),
    "of two subjects": (answer(document(), sub="subject-2"), SubjectMismatch),
    "no list": (answer() | {"data": {"documents": {}}}, MalformedAnswer),
    "too many": (answer(*[document()] * 21), MalformedAnswer),
    "no object": (answer("C0FFEE-1234567"), MalformedAnswer),
    "no type": (answer(document(document_type=None)), MalformedAnswer),
    "a type of another type": (
        answer(document(document_type=["passport"])),
        MalformedAnswer,
    ),
    "content of another type": (answer(document(content=["x"])), MalformedAnswer),
    "a status of another type": (answer(document(status=1)), MalformedAnswer),
}


@pytest.mark.parametrize(("bad", "kind"), BAD.values(), ids=BAD)
def test_what_is_wrong_is_refused(service, linked, caplog, bad, kind):
    caplog.set_level(logging.INFO)
    service.answers["documents"] = bad
    with pytest.raises(kind) as raised:
        read(linked)
    assert type(raised.value) is kind
    [line] = caplog.messages
    assert line.startswith(f"identity.documents.failed code={raised.value.code}")
    assert SECRET.decode() not in line + str(raised.value)


@pytest.mark.usefixtures("as_in_production")
def test_no_frame_of_ours_holds_a_key_or_a_document(service, linked):
    """As an error tracker would keep it."""
    service.answers["documents"] = answer(document(content_type="application/pdf"))
    with pytest.raises(DocumentUnreadable) as raised:
        read(linked)
    told = traceback.TracebackException.from_exception(
        raised.value,
        capture_locals=True,
    )
    ours = [
        frame.locals for frame in told.stack if "/django_identity/" in frame.filename
    ]
    secrets = (SECRET.decode(), SEALED, JWK.as_dict(private=True)["d"])
    assert not [secret for secret in secrets if str(secret) in str(ours)]


@pytest.mark.parametrize("named", ["user_id", "sub"])
def test_metadata_of_another_subject_is_refused(service, linked, named):
    service.answers["metadata"] = answer(document()) | {
        "data": {"documents": [], named: "other"},
    }
    with pytest.raises(SubjectMismatch):
        read(linked, reading.METADATA)
    service.answers["metadata"] = answer(document(), user_id=None)
    assert read(linked, reading.METADATA)[0].document_type == "passport"


@pytest.mark.parametrize("ends", ["revoked", "erased", "without the scope"])
def test_the_end_of_the_consent_meanwhile_wins(service, linked, ends):
    """It comes between the request and the answer: nothing is handed over."""
    rows = LinkedIdentity.objects.all()
    acts = {
        "revoked": lambda: rows.update(consent=Consent.REVOKED),
        "erased": rows.delete,
        "without the scope": lambda: rows.update(scopes=["documents:metadata"]),
    }
    service.answers["documents"] = answer(document(), document(document_id="2"))
    assert [each.content for each in read(linked)] == [PNG + SECRET] * 2
    service.meanwhile["documents"] = acts[ends]
    with pytest.raises(DocumentsNotAllowed):
        read(linked)


def test_without_a_path_nothing_is_asked(service, linked):
    """In live there is no default."""
    given = service.settings(DOCUMENT_PATHS={})
    with (
        override_settings(DJANGO_IDENTITY=given),
        pytest.raises(ConfigurationError),
    ):
        read(linked)
    assert service.calls("documents") == 0
