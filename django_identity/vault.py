"""Encryption at rest, by Fernet (AES-128-CBC with HMAC-SHA256) under the application's keys.

The first of ``ENCRYPTION_KEYS`` encrypts, and each of them opens. What is sealed begins with its
context as a line of JSON, so a value that was copied to another row or column does not open.
"""

import base64
import json
from functools import lru_cache

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf import hkdf
from django.views.decorators.debug import sensitive_variables

from django_identity.exceptions import SealedValueUnreadable
from django_identity.secrets import Secret

Context = tuple[str, ...]


def seal(secret: Secret, *, keys: tuple[Secret, ...], context: Context) -> str:
    """Encrypt ``secret`` under the first of ``keys``. To unseal it, pass the same ``context``."""
    return _ring(keys).encrypt(f"{json.dumps(context)}\n{secret.reveal()}".encode()).decode()


def unseal(sealed: str, *, keys: tuple[Secret, ...], context: Context) -> Secret:
    """Decrypt a value of ``seal``.

    Raises ``SealedValueUnreadable`` if no key fits or the value has another context.
    """
    secret = _opened(sealed, keys, context)
    if secret is None:
        raise SealedValueUnreadable("no key opens it")
    return secret


def rotate(sealed: str, *, keys: tuple[Secret, ...]) -> str | None:
    """``sealed`` under the first of ``keys``, with its context, or None if no key opens it."""
    try:
        return _ring(keys).rotate(sealed.encode()).decode()
    except (InvalidToken, ValueError):
        return None


@sensitive_variables()
def _opened(sealed: str, keys: tuple[Secret, ...], context: Context) -> Secret | None:
    try:
        line, _, text = _ring(keys).decrypt(sealed.encode()).decode().partition("\n")
    except (InvalidToken, ValueError):
        return None
    return Secret(text) if line == json.dumps(context) else None


@lru_cache(maxsize=64)
def _ring(keys: tuple[Secret, ...]) -> MultiFernet:
    return MultiFernet([Fernet(base64.urlsafe_b64encode(_derived(key))) for key in keys])


def _derived(key: Secret) -> bytes:
    derivation = hkdf.HKDF(hashes.SHA256(), length=32, salt=None, info=b"django_identity.vault")
    return derivation.derive(key.reveal().encode())
