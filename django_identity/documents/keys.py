"""Encrypted documents of the trusted tier: JWE (RFC 7516). Only this module imports joserfc.

It needs the extra ``django-identity[trusted]``. No other module imports it at start-up.
"""

import contextlib
from collections.abc import Callable, Mapping, Sequence

from joserfc import jwe, jwk

from django_identity import strict_json
from django_identity.conf import parsers
from django_identity.credentials import base64url
from django_identity.exceptions import DocumentUnreadable
from django_identity.strict_json import JSONObject

LARGEST = 10 * 1024 * 1024
MAX_CHARACTERS = LARGEST * 4 // 3 + 8 * 1024
LONGEST_HEADER = 4 * 1024
MOST_KEYS_TRIED = 4
CONTENT_ENCRYPTIONS = (
    "A128GCM",
    "A192GCM",
    "A256GCM",
    "A128CBC-HS256",
    "A256CBC-HS512",
)
# No "zip": a small document could inflate to a huge one. No "crit", no header that brings a key.
HEADER_MEMBERS = frozenset({"alg", "enc", "kid", "epk", "typ", "cty", "apu", "apv"})


class Registry(jwe.JWERegistry):
    """The library's limits, set after its constructor."""

    max_protected_header_length = LONGEST_HEADER
    max_encrypted_key_length = 2 * 1024
    max_ciphertext_length = MAX_CHARACTERS


def open_document(
    document: str,
    *,
    keys: Sequence[JSONObject],
    content_type: str,
) -> bytes:
    """Decrypt ``document``, a compact JWE, and check that its content is of ``content_type``.

    ``keys`` are the application's ``document_keys``. The document's header names one of them by its
    ``kid``, and the key says which algorithm it is for. If ``kid`` is missing, each key of the
    header's algorithm is tried, at most four. For any text it returns the content or raises
    ``DocumentUnreadable``. Anybody can encrypt a document for us: the public key is public.
    """
    wanted_type = media_type(content_type)
    content = _opened(document, keys, wanted_type)
    if content is None:
        raise DocumentUnreadable("no key opens it")
    is_of_type = CONTENT_CHECKS.get(wanted_type)
    if is_of_type and len(content) <= LARGEST and is_of_type(content):
        return content
    raise DocumentUnreadable("not of its type and size")


def media_type(text: str) -> str:
    """``text`` in lower case, freed of ``application/`` and parameters (RFC 7515 §4.1.9)."""
    return text.partition(";")[0].strip().lower().removeprefix("application/")


def _opened(
    document: str,
    keys: Sequence[JSONObject],
    wanted_type: str,
) -> bytes | None:
    try:
        header = _header_of(document)
    except ValueError:
        return None
    if not _is_allowed(header, wanted_type):
        return None
    # Without an encrypted key only where the shared secret is the key itself (RFC 7516 §5.2).
    has_encrypted_key = document.split(".")[1] != ""
    if has_encrypted_key == (header["alg"] == "ECDH-ES"):
        return None

    fitting = [
        key for key in keys if parsers.is_document_key(key) and _fits(header, key)
    ]
    registry = Registry(algorithms=[header["alg"], *CONTENT_ENCRYPTIONS])
    for key in fitting[:MOST_KEYS_TRIED]:
        # Encrypted to another key, or changed: the library raises errors of any class.
        with contextlib.suppress(Exception):
            private_key = jwk.import_key(dict(key))
            return jwe.decrypt_compact(
                document,
                private_key,
                registry=registry,
            ).plaintext
    return None


def _header_of(document: str) -> JSONObject:
    """The header. Raises ``ValueError`` for anything but a compact JWE of a bearable size."""
    header = document.partition(".")[0].encode("ascii")
    if len(document) > MAX_CHARACTERS or document.count(".") != 4:
        raise ValueError
    if not 0 < len(header) <= LONGEST_HEADER or not base64url.is_valid(header):
        raise ValueError
    return strict_json.read_object(base64url.decode(header))


def _is_allowed(header: JSONObject, wanted_type: str) -> bool:
    """Whether every member is known, with a value that we open."""
    if not header.keys() <= HEADER_MEMBERS:
        return False
    texts = [value for name, value in header.items() if name != "epk"]
    if not all(isinstance(text, str) for text in texts):
        return False
    if "alg" not in header or header.get("enc") not in CONTENT_ENCRYPTIONS:
        return False
    if media_type(header.get("typ", "jwe")) not in ("jose", "jwe"):
        return False
    return media_type(header.get("cty", wanted_type)) == wanted_type


def _fits(header: JSONObject, key: JSONObject) -> bool:
    """Whether the header names ``key``, if any, and its algorithm (RFC 8725 §3.1)."""
    return all(header.get(name, key[name]) == key[name] for name in ("alg", "kid"))


def _is_json(content: bytes) -> bool:
    try:
        strict_json.read_object(content)
    except strict_json.NotStrictJSON:
        return False
    return True


# By ``media_type``. Never one that a browser would run, such as HTML and SVG.
CONTENT_CHECKS: Mapping[str, Callable[[bytes], bool]] = {
    "json": _is_json,
    "pdf": lambda content: content.startswith(b"%PDF-"),
    "image/jpeg": lambda content: content.startswith(b"\xff\xd8\xff"),
    "image/png": lambda content: content.startswith(b"\x89PNG\r\n\x1a\n"),
}
