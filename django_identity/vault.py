"""Encryption at rest, by Fernet (AES-128-CBC with HMAC-SHA256) under the application's keys.

The first of ``ENCRYPTION_KEYS`` encrypts, and each of them opens. The encrypted text begins with
its context as a line of JSON, so a value copied to another row or column stays closed.
"""

import base64
import json
from functools import lru_cache
from typing import NamedTuple

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf import hkdf

from django_identity.exceptions import SealedValueUnreadable
from django_identity.secrets import Secret

Context = tuple[str, ...]


def seal(secret: Secret, *, keys: tuple[Secret, ...], context: Context) -> str:
    """Encrypt ``secret`` under the first of ``keys``. To unseal it, pass the same ``context``."""
    # In one expression: no frame of an error may hold the text.
    return (
        _ring(keys)
        .encrypt(f"{json.dumps(context)}\n{secret.reveal()}".encode())
        .decode()
    )


def unseal(sealed: str, *, keys: tuple[Secret, ...], context: Context) -> Secret:
    """Decrypt a value of ``seal``.

    Raises ``SealedValueUnreadable`` for a missing key or another context.
    """
    opened = _opened(sealed, keys)
    if opened is None:
        raise SealedValueUnreadable("no key opens it")
    if opened.context != json.dumps(context):
        raise SealedValueUnreadable("it was sealed for another row or column")
    return opened.secret


class _Opened(NamedTuple):
    """What was sealed: the context as a line of JSON, and the secret."""

    context: str
    secret: Secret


def _opened(sealed: str, keys: tuple[Secret, ...]) -> _Opened | None:
    try:
        text = _ring(keys).decrypt(sealed.encode()).decode()
    except (InvalidToken, ValueError):
        return None
    line, _, secret = text.partition("\n")
    return _Opened(line, Secret(secret))


@lru_cache(maxsize=64)
def _ring(keys: tuple[Secret, ...]) -> MultiFernet:
    return MultiFernet(
        [Fernet(base64.urlsafe_b64encode(_derived(key))) for key in keys],
    )


def _derived(key: Secret) -> bytes:
    derivation = hkdf.HKDF(
        hashes.SHA256(),
        length=32,
        salt=None,
        info=b"django_identity.vault",
    )
    return derivation.derive(key.reveal().encode())
