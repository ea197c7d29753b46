"""Encrypted documents: what was meant for us opens, and nothing else."""

from __future__ import annotations

import traceback
from typing import Any

import pytest
from joserfc import jwe
from joserfc.jwk import ECKey, OctKey, RSAKey

from django_identity.credentials.documents import MAX_CHARACTERS, open_document
from django_identity.exceptions import DocumentUnreadable

CONTENT = b'{"national_id": "12345678901"}'
RSA = RSAKey.generate_key(2048, private=True)
EC = ECKey.generate_key("P-256", private=True)
OTHER = ECKey.generate_key("P-256", private=True)
SHARED = OctKey.generate_key(256)
ALL = (
    "RSA-OAEP", "RSA-OAEP-256", "ECDH-ES", "ECDH-ES+A128KW", "ECDH-ES+A256KW", "dir", "A256KW",
    "A128GCM", "A256GCM", "A128CBC-HS256", "A256CBC-HS512", "DEF",
)  # fmt: skip


def sealed(
    key: Any, alg: str, enc: str = "A256GCM", content: bytes = CONTENT, **header: str
) -> str:
    registry = jwe.JWERegistry(algorithms=ALL)
    return jwe.encrypt_compact({"alg": alg, "enc": enc, **header}, content, key, registry=registry)


def private(*keys: Any) -> list[dict[str, Any]]:
    return [key.as_dict(private=True) for key in keys]


@pytest.mark.parametrize("enc", ["A128GCM", "A256GCM", "A128CBC-HS256", "A256CBC-HS512"])
@pytest.mark.parametrize(
    ("key", "alg"),
    [(RSA, "RSA-OAEP-256"), (EC, "ECDH-ES"), (EC, "ECDH-ES+A128KW"), (EC, "ECDH-ES+A256KW")],
    ids=["RSA", "ECDH", "ECDH with 128 bits", "ECDH with 256 bits"],
)
def test_what_is_meant_for_us_opens(key: Any, alg: str, enc: str) -> None:
    """Under any key of ours, whichever stands first."""
    document = sealed(key, alg, enc, kid="named-by-the-service")
    assert open_document(document, keys=private(OTHER, RSA, EC)) == CONTENT


def test_large_documents_open() -> None:
    """An image of a passport has a few megabytes."""
    image = bytes(range(256)) * 20_000
    assert open_document(sealed(EC, "ECDH-ES", content=image), keys=private(EC)) == image


@pytest.mark.parametrize(
    ("key", "alg", "header"),
    [
        (SHARED, "dir", {}),
        (SHARED, "A256KW", {}),
        (RSA, "RSA-OAEP", {}),
        (EC, "ECDH-ES", {"zip": "DEF"}),
    ],
    ids=["shared key", "wrapped by a shared key", "SHA-1", "compressed"],
)
def test_other_algorithms_are_refused(key: Any, alg: str, header: dict[str, str]) -> None:
    """Shared keys, SHA-1 and compression, though the key is there."""
    document = sealed(key, alg, **header)
    with pytest.raises(DocumentUnreadable):
        open_document(document, keys=private(SHARED, RSA, EC))


GOOD = sealed(EC, "ECDH-ES+A256KW")


@pytest.mark.parametrize(
    "document",
    [
        "", ".", "....", "a.b.c.d.e", "ünïcödé", "\ud800", "\0", GOOD[:-8], GOOD + "A", f"{GOOD}.",
        GOOD.replace(GOOD.split(".")[3], GOOD.split(".")[3][::-1]),
        ".".join(["e30", *GOOD.split(".")[1:]]), "A" * (MAX_CHARACTERS + 1),
    ],
    ids=[
        "nothing", "a dot", "dots", "letters", "not ASCII", "a lone surrogate", "NUL", "cut off",
        "longer", "six parts", "changed", "another header", "too long",
    ],
)  # fmt: skip
def test_anything_else_is_unreadable(document: str) -> None:
    """Whatever the text, one error, and no frame of ours in its traceback holds a key."""
    with pytest.raises(DocumentUnreadable) as raised:
        open_document(document, keys=private(EC))
    told = traceback.TracebackException.from_exception(raised.value, capture_locals=True)
    ours = [frame for frame in told.stack if frame.filename.endswith("documents.py")]
    assert private(EC)[0]["d"] not in str([frame.locals for frame in ours])


@pytest.mark.parametrize(
    "keys",
    [[], [{}], [{"kty": "EC"}], [{"kty": "x"}], private(OTHER)],
    ids=["none", "empty", "without a point", "unknown", "another's"],
)
def test_without_its_key_nothing_opens(keys: list[dict[str, Any]]) -> None:
    """None, unusable ones, another's."""
    with pytest.raises(DocumentUnreadable):
        open_document(GOOD, keys=keys)


def test_a_public_key_opens_nothing() -> None:
    """The private part is what counts."""
    with pytest.raises(DocumentUnreadable):
        open_document(GOOD, keys=[EC.as_dict(private=False)])
