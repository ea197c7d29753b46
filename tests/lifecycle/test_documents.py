"""Documents that a misbehaving service sends: a typed error and one log line."""

import logging
from collections.abc import Callable
from typing import Any

import pytest
from django.test import override_settings
from joserfc import jwe
from joserfc.jwk import ECKey

from django_identity import conf
from django_identity.exceptions import (
    ConfigurationError,
    DocumentsNotAllowed,
    DocumentUnreadable,
    IdentityError,
    MalformedAnswer,
    SubjectMismatch,
)
from django_identity.lifecycle import documents
from django_identity.lifecycle.documents import Document
from django_identity.models import Consent, LinkedIdentity
from django_identity.secrets import Secret
from django_identity.service import ServiceClient
from tests.factories import make_grant, make_identity, make_user
from tests.fake_service import FakeService

pytestmark = pytest.mark.django_db(transaction=True)

KEY = ECKey.generate_key("P-256", {"kid": "k", "alg": "ECDH-ES", "use": "enc"}, private=True)
OTHER = ECKey.generate_key("P-256", {"kid": "k", "alg": "ECDH-ES", "use": "enc"}, private=True)
PNG = b"\x89PNG\r\n\x1a\n"
SECRET = b"C0FFEE-1234567"


def sealed(content: bytes = PNG + SECRET, key: ECKey = KEY, **header: str) -> str:
    registry = jwe.JWERegistry(algorithms=["ECDH-ES", "A256GCM", "DEF"])
    registry.max_ciphertext_length = 16 * 1024 * 1024
    told = {"alg": "ECDH-ES", "enc": "A256GCM", "kid": "k", **header}
    return jwe.encrypt_compact(told, content, key, registry=registry)


def answer(*listed: Any, **beside: Any) -> dict[str, Any]:
    return {"success": True, "data": {"user_id": "subject-1", "documents": list(listed), **beside}}


def document(content: str | None = None, **changes: Any) -> dict[str, Any]:
    return {
        "document_type": "passport", "document_id": "1", "country": "NG", "status": "verified",
        "content_type": "image/png", "content": sealed() if content is None else content, **changes,
    }  # fmt: skip


@pytest.fixture
def identity(service: FakeService) -> Any:
    given = service.settings(DOCUMENT_KEYS=[KEY.as_dict(private=True)])
    with override_settings(DJANGO_IDENTITY={"default": given}):
        user = make_user()
        scopes = ["documents:metadata", "documents:read"]
        identity = make_identity(user, scopes=scopes)
        make_grant(identity)
        yield identity


def read(identity: LinkedIdentity, scope: str = documents.CONTENT) -> tuple[Document, ...]:
    return documents.read(identity, scope=scope, asked_by=identity.user, view="passport")


def test_a_good_answer_is_read(service: FakeService, identity: LinkedIdentity) -> None:
    """So that what follows fails for its own reason."""
    service.answers["documents"] = answer(document(), document(document_id="2"))
    opened = read(identity)
    assert [each.content for each in opened] == [PNG + SECRET] * 2
    [target] = [target for name, target, _ in service.requests if name == "documents"]
    assert target == "/api/v1/users/subject-1/documents"


def test_an_odd_subject_is_quoted(service: FakeService, identity: LinkedIdentity) -> None:
    """In whatever path the site set."""
    odd = "a/b ?ü{}"
    LinkedIdentity.objects.filter(pk=identity.pk).update(subject=odd)
    identity.subject = odd
    paths = {"documents:read": "/v2/{subject}/documents"}
    given = service.settings(DOCUMENT_PATHS=paths, DOCUMENT_KEYS=[KEY.as_dict(private=True)])
    service.answers["documents"] = answer(document(), user_id=odd)
    with override_settings(DJANGO_IDENTITY={"default": given}):
        client = ServiceClient(conf.application())
        assert client.documents(odd, scope=documents.CONTENT, access_token=Secret("at"))
    [target] = [target for name, target, _ in service.requests if name == "documents"]
    assert target == "/api/v1/v2/a%2Fb%20%3F%C3%BC%7B%7D/documents"


# Made when they are needed: some are large.
BAD: dict[str, tuple[Callable[[], Any], type[IdentityError]]] = {
    "no JWE": (lambda: answer(document("a passport")), DocumentUnreadable),
    "its plain content": (lambda: answer(document("C0FFEE-1234567")), DocumentUnreadable),
    "of another key": (lambda: answer(document(sealed(key=OTHER))), DocumentUnreadable),
    "of an unknown key": (lambda: answer(document(sealed(kid="x"))), DocumentUnreadable),
    "inflated": (lambda: answer(document(sealed(zip="DEF"))), DocumentUnreadable),
    "of 11 MB": (lambda: answer(document(sealed(PNG + bytes(11 << 20)))), DocumentUnreadable),
    "of 24 MB": (lambda: answer(document("A" * 25 * 1024 * 1024)), MalformedAnswer),
    "of another type": (
        lambda: answer(document(content_type="application/pdf")),
        DocumentUnreadable,
    ),
    "of a type that runs": (lambda: answer(document(content_type="text/html")), DocumentUnreadable),
    "the second is bad": (lambda: answer(document(), document("no")), DocumentUnreadable),
    "of another subject": (lambda: answer(document(), user_id="subject-2"), SubjectMismatch),
    "of two subjects": (lambda: answer(document(), sub="subject-2"), SubjectMismatch),
    "no list": (lambda: answer() | {"data": {"documents": {}}}, MalformedAnswer),
    "too many": (lambda: answer(*[document("x")] * 21), MalformedAnswer),
    "no object": (lambda: answer("C0FFEE-1234567"), MalformedAnswer),
    "no type": (lambda: answer(document(document_type=None)), MalformedAnswer),
    "a type of another type": (
        lambda: answer(document(document_type=["passport"])),
        MalformedAnswer,
    ),
    "content of another type": (lambda: answer(document(content=["x"])), MalformedAnswer),  # type: ignore[arg-type]
    "a status of another type": (lambda: answer(document(status=1)), MalformedAnswer),
}


@pytest.mark.parametrize(("bad", "kind"), BAD.values(), ids=BAD)
def test_what_is_wrong_is_refused(
    service: FakeService,
    identity: LinkedIdentity,
    caplog: pytest.LogCaptureFixture,
    bad: Callable[[], Any],
    kind: type[IdentityError],
) -> None:
    """All of it: no document of a bad answer is handed over."""
    caplog.set_level(logging.INFO)
    service.answers["documents"] = bad()
    with pytest.raises(kind) as raised:
        read(identity)
    assert type(raised.value) is kind
    [line] = caplog.messages
    assert line.startswith(
        f"identity.documents.failed application=default code={raised.value.code}"
    )
    assert SECRET.decode() not in line + str(raised.value)


@pytest.mark.parametrize("named", ["user_id", "sub"])
def test_metadata_of_another_subject_is_refused(
    service: FakeService, identity: LinkedIdentity, named: str
) -> None:
    """The same rules without content."""
    service.answers["metadata"] = answer(document()) | {"data": {"documents": [], named: "other"}}
    with pytest.raises(SubjectMismatch):
        read(identity, documents.METADATA)
    service.answers["metadata"] = answer(document(), user_id=None)
    assert read(identity, documents.METADATA)[0].document_type == "passport"


def test_a_revocation_meanwhile_wins(service: FakeService, identity: LinkedIdentity) -> None:
    """It arrives between the request and the answer: nothing is handed over."""
    service.answers["documents"] = answer(document())
    service.meanwhile["documents"] = lambda: LinkedIdentity.objects.update(consent=Consent.REVOKED)
    with pytest.raises(DocumentsNotAllowed):
        read(identity)


def test_an_erasure_meanwhile_wins(service: FakeService, identity: LinkedIdentity) -> None:
    """There is no row any more that could have consented."""
    service.answers["documents"] = answer(document())
    service.meanwhile["documents"] = lambda: LinkedIdentity.objects.all().delete()
    with pytest.raises(DocumentsNotAllowed):
        read(identity)


def test_without_a_path_nothing_is_asked(service: FakeService, identity: LinkedIdentity) -> None:
    """In live there is no default."""
    given = service.settings(DOCUMENT_PATHS={})
    with override_settings(DJANGO_IDENTITY={"default": given}), pytest.raises(ConfigurationError):
        read(identity)
    assert service.calls("documents") == 0
