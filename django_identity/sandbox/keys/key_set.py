"""The service's signing keys and their publication (spec: GET /.well-known/jwks.json).

The newest key signs. An older key stays published as long as a credential that it signed may be
valid, unless it is withdrawn.
"""

from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import Q
from jwcrypto.jwk import JWK

from django_identity.sandbox.instruments import clock
from django_identity.sandbox.models import SigningKey

PUBLISHED_AFTER_ROTATION = timedelta(hours=25)


def current() -> SigningKey:
    """Return the signing key. Create one if there is none."""
    return _in_charge() or _create_unless_made()


@transaction.atomic
def rotate() -> SigningKey:
    """Create a new signing key. The current one stays published for a time."""
    SigningKey.objects.filter(superseded_at=None).update(superseded_at=clock.now())
    return _create()


@transaction.atomic
def withdraw(kid: str) -> bool:
    """Withdraw a key at once. If it was the signing key, a new one replaces it.

    Returns:
        Whether ``kid`` was published.
    """
    withdrawn = SigningKey.objects.filter(kid=kid, withdrawn=False).update(withdrawn=True)
    current()
    return bool(withdrawn)


def published() -> dict[str, Any]:
    """Return the public keys as a JSON key set, the signing key first."""
    current()
    kept_since = clock.now() - PUBLISHED_AFTER_ROTATION
    keys = SigningKey.objects.filter(withdrawn=False).filter(
        Q(superseded_at=None) | Q(superseded_at__gt=kept_since)
    )
    return {"keys": [_public_jwk(key) for key in keys]}


def private_key(key: SigningKey) -> JWK:
    return JWK(**key.private_jwk)


def _in_charge() -> SigningKey | None:
    return SigningKey.objects.filter(withdrawn=False, superseded_at=None).first()


@transaction.atomic
def _create_unless_made() -> SigningKey:
    """Create a key, unless another request has created one before this got the write lock."""
    return _in_charge() or _create()


def _create() -> SigningKey:
    """Create and store a P-256 key pair. Its ``kid`` is the RFC 7638 thumbprint."""
    jwk = JWK.generate(kty="EC", crv="P-256")
    return SigningKey.objects.create(
        kid=jwk.thumbprint(), private_jwk=jwk.export_private(as_dict=True), created_at=clock.now()
    )


def _public_jwk(key: SigningKey) -> dict[str, Any]:
    public: dict[str, Any] = private_key(key).export_public(as_dict=True)
    return public | {"kid": key.kid, "use": "sig", "alg": "ES256"}
