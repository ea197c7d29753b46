"""Digests of subjects that only the site's key can match with a subject."""

from __future__ import annotations

from collections.abc import Iterator

from django.conf import settings
from django.utils.crypto import salted_hmac

SALT = "django_identity.erasure_receipt"


def keyed(subject_digest: str) -> list[str]:
    """The digest of a subject under the current key, then under each older key."""
    keys: Iterator[str] = map(str, (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS))
    return [
        salted_hmac(SALT, subject_digest, secret=key, algorithm="sha256").hexdigest()
        for key in keys
    ]
