"""Encrypted documents: what was meant for us opens, and nothing else."""

from __future__ import annotations

import base64
import json
import traceback
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from joserfc import jwe
from joserfc.jwk import ECKey, OctKey, RSAKey

from django_identity.credentials.documents import LARGEST, MAX_CHARACTERS, open_document
from django_identity.exceptions import DocumentUnreadable

CONTENT = b'{"national_id": "12345678901"}'
JSON = "application/json"


def made(kind: Any, size: Any, kid: str, alg: str) -> Any:
    return kind.generate_key(size, {"kid": kid, "alg": alg, "use": "enc"}, private=True)


RSA = made(RSAKey, 2048, "rsa", "RSA-OAEP-256")
EC = made(ECKey, "P-256", "ec", "ECDH-ES+A256KW")
DIRECT = made(ECKey, "P-256", "direct", "ECDH-ES")
OLD = made(ECKey, "P-256", "old", "ECDH-ES+A256KW")
SHARED = OctKey.generate_key(256, {"kid": "shared"})
ALL = (
    "RSA-OAEP", "RSA-OAEP-256", "ECDH-ES", "ECDH-ES+A128KW", "ECDH-ES+A256KW", "dir", "A256KW",
    "A128GCM", "A256GCM", "A128CBC-HS256", "A256CBC-HS512", "DEF",
)  # fmt: skip


def sealed(
    key: Any, *, enc: str = "A256GCM", content: bytes = CONTENT, public: Any = None, **header: Any
) -> str:
    registry = jwe.JWERegistry(algorithms=ALL, strict_check_header=False)
    registry.max_ciphertext_length = 40 * 1024 * 1024
    told = {"alg": key.as_dict().get("alg"), "enc": enc, "kid": key.kid, **header}
    return jwe.encrypt_compact(told, content, public or key, registry=registry)


def private(*keys: Any) -> list[dict[str, Any]]:
    return [key.as_dict(private=True) for key in keys]


def opened(document: str, *keys: Any, content_type: str = JSON) -> bytes:
    return open_document(document, keys=private(*keys), content_type=content_type)


def refused(document: str, *keys: Any, content_type: str = JSON) -> str:
    with pytest.raises(DocumentUnreadable) as raised:
        opened(document, *keys, content_type=content_type)
    return raised.value.detail


@pytest.mark.parametrize("key", [RSA, EC, DIRECT], ids=["RSA", "ECDH, wrapped", "ECDH"])
def test_what_is_meant_for_us_opens(key: Any) -> None:
    """Whichever of our keys it names, wherever that stands; old ones too, while they rotate."""
    assert opened(sealed(key), OLD, RSA, EC, DIRECT) == CONTENT
    assert opened(sealed(OLD), key, OLD) == CONTENT


def test_the_kid_alone_chooses_the_key() -> None:
    """No other key is tried: not for no ``kid``, and not for another's."""
    assert refused(sealed(EC, kid="unknown"), EC) == "no key opens it"
    assert refused(sealed(EC, kid="old"), EC, OLD) == "no key opens it"
    without = sealed(EC).split(".")
    without[0] = b64(json.dumps({"alg": "ECDH-ES+A256KW", "enc": "A256GCM"}).encode())
    assert refused(".".join(without), EC) == "no key opens it"


def test_large_documents_open() -> None:
    """An image of a passport has a few megabytes; what is larger than 8 is none."""
    image = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 20_000
    document = sealed(EC, content=image)
    assert opened(document, EC, content_type="image/png") == image
    nine = b"\x89PNG\r\n\x1a\n" + bytes(9 * 1024 * 1024)
    assert refused(sealed(EC, content=nine), EC, content_type="image/png")
    limit = nine[: LARGEST + 1]
    assert refused(sealed(EC, content=limit), EC, content_type="image/png")
    assert opened(sealed(EC, content=limit[:-1]), EC, content_type="image/png") == limit[:-1]


@pytest.mark.parametrize(
    ("key", "alg", "enc", "header"),
    [
        (SHARED, "dir", "A256GCM", {}),
        (SHARED, "A256KW", "A256GCM", {}),
        (RSA, "RSA-OAEP", "A256GCM", {}),
        (EC, "ECDH-ES", "A256GCM", {}),
        (EC, "ECDH-ES+A128KW", "A256GCM", {}),
        (EC, "ECDH-ES+A256KW", "A128GCM", {}),
        (EC, "ECDH-ES+A256KW", "A256CBC-HS512", {}),
        (EC, "ECDH-ES+A256KW", "A256GCM", {"zip": "DEF"}),
        (EC, "ECDH-ES+A256KW", "A256GCM", {"apu": "QQ"}),
        (EC, "ECDH-ES+A256KW", "A256GCM", {"jku": "https://example.org"}),
    ],
)
def test_other_algorithms_are_refused(key: Any, alg: str, enc: str, header: dict[str, str]) -> None:
    """Shared keys, SHA-1, compression, and another algorithm than the key's own."""
    document = sealed(key, alg=alg, enc=enc, **header)
    assert refused(document, RSA, EC) == "no key opens it"


GOOD = sealed(EC)


def b64(octets: bytes) -> str:
    return base64.urlsafe_b64encode(octets).rstrip(b"=").decode()


@pytest.mark.parametrize(
    "document",
    [
        "", ".", "....", "a.b.c.d.e", "ünïcödé", "\ud800", "\0", GOOD[:-8], GOOD + "A", f"{GOOD}.",
        GOOD.replace(GOOD.split(".")[3], GOOD.split(".")[3][::-1]),
        ".".join(["e30", *GOOD.split(".")[1:]]), "A" * (MAX_CHARACTERS + 1),
        ".".join([*GOOD.split(".")[:4], "AAAA"]), ".".join(GOOD.split(".")[:3]),
        json.dumps({"ciphertext": GOOD}), CONTENT.decode(),
    ],
    ids=[
        "nothing", "a dot", "dots", "letters", "not ASCII", "a lone surrogate", "NUL", "cut off",
        "longer", "six parts", "changed", "another header", "too long", "a short tag",
        "three parts", "JSON", "the plain content",
    ],
)  # fmt: skip
def test_anything_else_is_unreadable(document: str) -> None:
    """Whatever the text, one error, and no frame of ours in its traceback holds a key."""
    with pytest.raises(DocumentUnreadable) as raised:
        opened(document, EC)
    assert raised.value.__cause__ is None
    told = traceback.TracebackException.from_exception(raised.value, capture_locals=True)
    ours = [frame for frame in told.stack if frame.filename.endswith("credentials/documents.py")]
    assert private(EC)[0]["d"] not in str([frame.locals for frame in ours])


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_no_changed_header_opens(data: st.DataObject) -> None:
    """Members of any type, in a header that is otherwise ours: one error, whatever it holds."""
    anything = st.none() | st.booleans() | st.integers() | st.text(max_size=9) | st.lists(st.none())
    members = st.dictionaries(st.sampled_from(["alg", "enc", "kid", "epk", "typ", "zip"]), anything)
    head, *rest = GOOD.split(".")
    header = json.loads(base64.urlsafe_b64decode(head + "=="))
    changed = b64(json.dumps({**header, **data.draw(members)}).encode())
    if changed != head:
        assert refused(".".join([changed, *rest]), EC) == "no key opens it"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"%PDF-1.7 ...", "image/png"),
        (b"\x89PNG\r\n\x1a\n", "application/pdf"),
        (b"<svg/>", "image/svg+xml"),
        (b"<html>", "application/pdf"),
        (b"[1]", JSON),
        (b'{"a": 1, "a": 2}', JSON),
        (b"", JSON),
        (b"\xff\xd8\xff", "image/jpg"),
    ],
)
def test_content_of_another_type_is_refused(content: bytes, said: str) -> None:
    """What it says to be is what it must be, and nothing that a browser would run."""
    assert refused(sealed(EC, content=content), EC, content_type=said) == "not of its type and size"


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"%PDF-1.7", "application/pdf"), (b"\xff\xd8\xff\xe0", "image/jpeg")],
)
def test_the_known_types_open(content: bytes, said: str) -> None:
    """Beside PNG and JSON."""
    assert opened(sealed(EC, content=content), EC, content_type=said) == content


@pytest.mark.parametrize(
    "keys",
    [[], [{"kid": "ec", "alg": "ECDH-ES+A256KW"}], [{"kid": "ec", "alg": "dir"}], private(OLD)],
    ids=["none", "without a point", "of another algorithm", "another's"],
)
def test_without_its_key_nothing_opens(keys: list[dict[str, Any]]) -> None:
    """None, unusable ones, another's."""
    with pytest.raises(DocumentUnreadable):
        open_document(GOOD, keys=keys, content_type=JSON)


def test_a_public_key_opens_nothing() -> None:
    """The private part is what counts."""
    with pytest.raises(DocumentUnreadable):
        open_document(GOOD, keys=[EC.as_dict(private=False)], content_type=JSON)
