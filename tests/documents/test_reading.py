"""Documents that a misbehaving service sends: a typed error and one log line."""

import logging
import traceback
from typing import Any

import pytest
from django.test import RequestFactory, override_settings
from joserfc import jwe
from joserfc.jwk import ECKey

from django_identity import conf
from django_identity.documents import Document, documents_of, reading
from django_identity.exceptions import (
    ConfigurationError,
    DocumentsNotAllowed,
    DocumentUnreadable,
    IdentityError,
    MalformedAnswer,
    SubjectMismatch,
)
from django_identity.models import Consent, LinkedIdentity
from django_identity.secrets import Secret
from django_identity.service import ServiceClient
from tests.factories import make_grant, make_identity, make_user
from tests.fake_service import FakeService

pytestmark = pytest.mark.django_db(transaction=True)

KEY = ECKey.generate_key(
    "P-256", {"kid": "k", "alg": "ECDH-ES", "use": "enc"}, private=True
)
PNG = b"\x89PNG\r\n\x1a\n"
SECRET = b"C0FFEE-1234567"


SEALED = jwe.encrypt_compact(
    {"alg": "ECDH-ES", "enc": "A256GCM", "kid": "k"},
    PNG + SECRET,
    KEY,
    algorithms=["ECDH-ES", "A256GCM"],
)


def answer(*listed: Any, **beside: Any) -> dict[str, Any]:
    return {
        "success": True,
        "data": {"user_id": "subject-1", "documents": list(listed), **beside},
    }


def document(**changes: Any) -> dict[str, Any]:
    return {
        "document_type": "passport", "document_id": "1", "country": "NG", "status": "verified",
        "content_type": "image/png", "content": SEALED, **changes,
    }  # fmt: skip


@pytest.fixture
def identity(service: FakeService) -> Any:
    given = service.settings(DOCUMENT_KEYS=[KEY.as_dict(private=True)])
    with override_settings(DJANGO_IDENTITY=given):
        user = make_user()
        scopes = ["documents:metadata", "documents:read"]
        identity = make_identity(user, scopes=scopes)
        make_grant(identity)
        yield identity


def read(
    identity: LinkedIdentity, scope: str = reading.CONTENT
) -> tuple[Document, ...]:
    request = RequestFactory().get("/")
    request.user = identity.user
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
    "the second is bad": (answer(document(), document(content="no")), DocumentUnreadable),
    "of 24 MB": (answer(document(content="A" * (25 << 20))), MalformedAnswer),
    "of another subject": (answer(document(), user_id="subject-2"), SubjectMismatch),
    "of two subjects": (answer(document(), sub="subject-2"), SubjectMismatch),
    "no list": (answer() | {"data": {"documents": {}}}, MalformedAnswer),
    "too many": (answer(*[document()] * 21), MalformedAnswer),
    "no object": (answer("C0FFEE-1234567"), MalformedAnswer),
    "no type": (answer(document(document_type=None)), MalformedAnswer),
    "a type of another type": (answer(document(document_type=["passport"])), MalformedAnswer),
    "content of another type": (answer(document(content=["x"])), MalformedAnswer),
    "a status of another type": (answer(document(status=1)), MalformedAnswer),
}  # fmt: skip


@pytest.mark.parametrize(("bad", "kind"), BAD.values(), ids=BAD)
def test_what_is_wrong_is_refused(service, identity, caplog, bad, kind):
    caplog.set_level(logging.INFO)
    service.answers["documents"] = bad
    with pytest.raises(kind) as raised:
        read(identity)
    assert type(raised.value) is kind
    [line] = caplog.messages
    assert line.startswith(f"identity.documents.failed code={raised.value.code}")
    assert SECRET.decode() not in line + str(raised.value)


@pytest.mark.usefixtures("as_in_production")
def test_no_frame_of_ours_holds_a_key_or_a_document(service, identity):
    """As an error tracker would keep it."""
    service.answers["documents"] = answer(document(content_type="application/pdf"))
    with pytest.raises(DocumentUnreadable) as raised:
        read(identity)
    told = traceback.TracebackException.from_exception(
        raised.value, capture_locals=True
    )
    ours = [
        frame.locals for frame in told.stack if "/django_identity/" in frame.filename
    ]
    secrets = (SECRET.decode(), SEALED, KEY.as_dict(private=True)["d"])
    assert not [secret for secret in secrets if str(secret) in str(ours)]


@pytest.mark.parametrize("named", ["user_id", "sub"])
def test_metadata_of_another_subject_is_refused(service, identity, named):
    service.answers["metadata"] = answer(document()) | {
        "data": {"documents": [], named: "other"}
    }
    with pytest.raises(SubjectMismatch):
        read(identity, reading.METADATA)
    service.answers["metadata"] = answer(document(), user_id=None)
    assert read(identity, reading.METADATA)[0].document_type == "passport"


@pytest.mark.parametrize("ends", ["revoked", "erased", "without the scope"])
def test_the_end_of_the_consent_meanwhile_wins(service, identity, ends):
    """It comes between the request and the answer: nothing is handed over."""
    rows = LinkedIdentity.objects.all()
    acts = {
        "revoked": lambda: rows.update(consent=Consent.REVOKED),
        "erased": rows.delete,
        "without the scope": lambda: rows.update(scopes=["documents:metadata"]),
    }
    service.answers["documents"] = answer(document(), document(document_id="2"))
    assert [each.content for each in read(identity)] == [PNG + SECRET] * 2
    service.meanwhile["documents"] = acts[ends]
    with pytest.raises(DocumentsNotAllowed):
        read(identity)


def test_without_a_path_nothing_is_asked(service, identity):
    """In live there is no default."""
    given = service.settings(DOCUMENT_PATHS={})
    with (
        override_settings(DJANGO_IDENTITY=given),
        pytest.raises(ConfigurationError),
    ):
        read(identity)
    assert service.calls("documents") == 0
