"""Encryption at rest: ``seal``, ``unseal`` and ``reseal`` texts with the application's keys.

AES-256-GCM (NIST SP 800-38D) with a random 96-bit nonce, under the first of ``ENCRYPTION_KEYS``.
The sealed value starts with the key's id, so that values under older keys can still be unsealed.
The context is authenticated with the text, so a value that was copied to another row or column
cannot be unsealed.
"""

import base64
import binascii
import hashlib
import os
from functools import lru_cache
from typing import TYPE_CHECKING

from django.views.decorators.debug import sensitive_variables

from django_identity.deferred import Deferred
from django_identity.exceptions import SealedValueUnreadable

if TYPE_CHECKING:
    from cryptography import exceptions
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.ciphers import aead
    from cryptography.hazmat.primitives.kdf import hkdf
else:
    exceptions = Deferred("cryptography.exceptions")
    hashes = Deferred("cryptography.hazmat.primitives.hashes")
    aead = Deferred("cryptography.hazmat.primitives.ciphers.aead")
    hkdf = Deferred("cryptography.hazmat.primitives.kdf.hkdf")

VERSION = "v1"
NONCE_BYTES = 12
Context = tuple[str, ...]


@sensitive_variables()
def seal(text: str, *, keys: tuple[str, ...], context: Context) -> str:
    """Encrypt ``text`` under the first of ``keys``. To unseal it, pass the same ``context``."""
    key = _key(keys[0])
    nonce = os.urandom(NONCE_BYTES)
    sealed = aead.AESGCM(key).encrypt(nonce, text.encode(), _bound(context))
    return f"{VERSION}.{_key_id(key)}.{base64.urlsafe_b64encode(nonce + sealed).decode()}"


def unseal(sealed: str, *, keys: tuple[str, ...], context: Context) -> str:
    """Decrypt a value of ``seal``.

    Raises ``SealedValueUnreadable`` if no key fits or the value has another context.
    """
    opened = _open(sealed, keys, context)
    if opened is None:
        # Keeps the keys out of the traceback: sensitive_variables would add a frame with them.
        del keys
        raise SealedValueUnreadable("no key opens it")
    return opened


@sensitive_variables()
def reseal(sealed: str, *, keys: tuple[str, ...], context: Context) -> str:
    """Encrypt a sealed value again, under the first of ``keys``.

    Raises ``SealedValueUnreadable`` if no key fits or the value has another context.
    """
    return seal(unseal(sealed, keys=keys, context=context), keys=keys, context=context)


def prefix_of(secret: str) -> str:
    """The prefix of all values that are sealed under the key ``secret``."""
    return f"{VERSION}.{_key_id(_key(secret))}."


@sensitive_variables()
def _open(sealed: str, keys: tuple[str, ...], context: Context) -> str | None:
    version, _, rest = sealed.partition(".")
    key_id, _, body = rest.partition(".")
    key = {_key_id(key): key for key in map(_key, keys)}.get(key_id)
    if version != VERSION or key is None:
        return None
    try:
        held = base64.urlsafe_b64decode(body)
        nonce, sealed_text = held[:NONCE_BYTES], held[NONCE_BYTES:]
        return aead.AESGCM(key).decrypt(nonce, sealed_text, _bound(context)).decode()
    except (binascii.Error, ValueError, exceptions.InvalidTag):
        # Not base64url, incomplete, changed, or copied from another row or column.
        return None


@lru_cache(maxsize=64)
def _key(secret: str) -> bytes:
    derivation = hkdf.HKDF(hashes.SHA256(), length=32, salt=None, info=b"django_identity.vault.v1")
    return derivation.derive(secret.encode())


def _key_id(key: bytes) -> str:
    return hashlib.sha256(b"django_identity.vault.id" + key).hexdigest()[:8]


def _bound(context: Context) -> bytes:
    return b"".join(len(part.encode()).to_bytes(4) + part.encode() for part in context)
