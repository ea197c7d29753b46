"""Encrypted documents of the trusted tier: JWE (RFC 7516). Only this module imports joserfc.

It needs the extra ``django-identity[trusted]``. No other module imports it at start-up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.views.decorators.debug import sensitive_variables
from joserfc import jwe, jwk
from joserfc.errors import JoseError

from django_identity.exceptions import DocumentUnreadable

MAX_CHARACTERS: Final = 8 * 1024 * 1024
# Authenticated encryption to a public key. No RSA1_5 (padding oracles), no passwords, no shared key
# and no "zip" (a small document could inflate to a huge one).
ALGORITHMS: Final = (
    "RSA-OAEP-256",
    "ECDH-ES",
    "ECDH-ES+A128KW",
    "ECDH-ES+A256KW",
    "A128GCM",
    "A256GCM",
    "A128CBC-HS256",
    "A256CBC-HS512",
)


@sensitive_variables()
def open_document(document: str, *, keys: Sequence[Mapping[str, Any]]) -> bytes:
    """Decrypt ``document``, a compact JWE, with one of the site's private JWKs.

    ``keys`` are the application's ``document_keys``, tried in their order. For any text it returns
    the content or raises ``DocumentUnreadable``.
    """
    opened = _opened(document, keys) if len(document) <= MAX_CHARACTERS else None
    if opened is None:
        # Keeps the keys out of the traceback.
        del document, keys
        raise DocumentUnreadable("no key opens it")
    return opened


@sensitive_variables()
def _opened(document: str, keys: Sequence[Mapping[str, Any]]) -> bytes | None:
    registry = jwe.JWERegistry(algorithms=ALGORITHMS)
    registry.max_ciphertext_length = MAX_CHARACTERS
    for key in keys:
        try:
            ours = jwk.import_key(dict(key))
            return jwe.decrypt_compact(document, ours, registry=registry).plaintext
        except (JoseError, ValueError, TypeError, KeyError):
            # Encrypted to another key, changed, or not a JWE.
            continue
    return None
