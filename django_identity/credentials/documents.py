"""Encrypted documents of the trusted tier: JWE (RFC 7516). Only this module imports joserfc.

It needs the extra ``django-identity[trusted]``. No other module imports it at start-up.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from django.views.decorators.debug import sensitive_variables
from joserfc import jwe, jwk
from joserfc.errors import JoseError

from django_identity import strict_json
from django_identity.credentials import base64url
from django_identity.exceptions import DocumentUnreadable

LARGEST: Final = 8 * 1024 * 1024
MAX_CHARACTERS: Final = LARGEST * 4 // 3 + 8 * 1024
LONGEST_HEADER: Final = 4 * 1024
# Encryption to a public key. No RSA1_5 (padding oracles), no passwords, no shared key.
ALGORITHMS: Final = frozenset({"RSA-OAEP-256", "ECDH-ES", "ECDH-ES+A256KW"})
CONTENT_ENCRYPTION: Final = "A256GCM"
# No "zip": a small document could inflate to a huge one. No "crit", no header that brings a key.
HEADER_MEMBERS: Final = frozenset({"alg", "enc", "kid", "epk", "typ", "cty"})


@sensitive_variables()
def open_document(document: str, *, keys: Sequence[Mapping[str, Any]], content_type: str) -> bytes:
    """Decrypt ``document``, a compact JWE, and check that its content is of ``content_type``.

    ``keys`` are the application's ``document_keys``. The document's header names one of them by its
    ``kid``, and the key says which algorithm it is for. For any text it returns the content or
    raises ``DocumentUnreadable``. An encrypted document proves nothing about its sender, because
    the public key is public.
    """
    opened, is_type = _opened(document, keys), TYPES.get(content_type)
    if opened is not None and is_type and 0 < len(opened) <= LARGEST and is_type(opened):
        return opened
    detail = "no key opens it" if opened is None else "not of its type and size"
    # Keeps the keys and the content out of the traceback.
    del document, keys, opened
    raise DocumentUnreadable(detail)


@sensitive_variables()
def _opened(document: str, keys: Sequence[Mapping[str, Any]]) -> bytes | None:
    header = _header_of(document)
    key = next((key for key in keys if key["kid"] == header.get("kid")), None)
    if key is None or not _fits(header, key):
        return None
    registry = jwe.JWERegistry(algorithms=[key["alg"], CONTENT_ENCRYPTION])
    registry.max_ciphertext_length = MAX_CHARACTERS
    try:
        ours = jwk.import_key(dict(key))
        return jwe.decrypt_compact(document, ours, registry=registry).plaintext
    except (JoseError, ValueError, TypeError, KeyError, AttributeError):
        # Encrypted to another key, changed, or not a JWE.
        return None


def _header_of(document: str) -> dict[str, Any]:
    """The header, or an empty one for what is no compact JWE of a bearable size."""
    segment = document.partition(".")[0]
    if len(document) > MAX_CHARACTERS or not 0 < len(segment) <= LONGEST_HEADER:
        return {}
    encoded = segment.encode("utf-8", "replace")
    if not base64url.is_valid(encoded):
        return {}
    try:
        return strict_json.read_object(base64url.decode(encoded))
    except strict_json.NotStrictJSON:
        return {}


def _fits(header: Mapping[str, Any], key: Mapping[str, Any]) -> bool:
    """Whether the header asks for nothing but the key's own algorithm (RFC 8725 §3.1)."""
    return (
        header.keys() <= HEADER_MEMBERS
        and key["alg"] in ALGORITHMS
        and header.get("alg") == key["alg"]
        and header.get("enc") == CONTENT_ENCRYPTION
    )


def _is_json(content: bytes) -> bool:
    try:
        strict_json.read_object(content)
    except strict_json.NotStrictJSON:
        return False
    return True


# Never a type that a browser would run, such as HTML and SVG.
TYPES: Final[Mapping[str, Callable[[bytes], bool]]] = {
    "application/json": _is_json,
    "application/pdf": lambda content: content.startswith(b"%PDF-"),
    "image/jpeg": lambda content: content.startswith(b"\xff\xd8\xff"),
    "image/png": lambda content: content.startswith(b"\x89PNG\r\n\x1a\n"),
}
