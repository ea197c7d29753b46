"""The signing keys (spec: GET /.well-known/jwks.json): rotation, publication, signing.

The newest key signs. An older key stays published as long as a credential that it signed may be
valid, unless it is withdrawn.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.http import HttpRequest, HttpResponse, JsonResponse
from jwcrypto.common import json_encode
from jwcrypto.jwk import JWK
from jwcrypto.jws import JWS

from django_identity.sandbox import clock, envelope
from django_identity.sandbox.models import ACCESS_TOKEN_LIFETIME, SigningKey

PUBLISHED_AFTER_ROTATION = timedelta(hours=25)


@envelope.endpoint("GET")
def jwks(request: HttpRequest) -> HttpResponse:
    """Publish the key set; applications may keep it for 5 minutes (spec: Limits)."""
    return JsonResponse(published(), headers={"Cache-Control": "public, max-age=300"})


@transaction.atomic
def current() -> SigningKey:
    """Return the signing key. Create one if there is none; its ``kid`` is the thumbprint."""
    key = SigningKey.objects.filter(withdrawn=False, superseded_at=None).first()
    if key is None:
        jwk = JWK.generate(kty="EC", crv="P-256")
        private = jwk.export_private(as_dict=True)
        key = SigningKey.objects.create(kid=jwk.thumbprint(), private_jwk=private)
    return key


@transaction.atomic
def rotate() -> SigningKey:
    """Create a new signing key. The current one stays published for a time."""
    SigningKey.objects.filter(superseded_at=None).update(superseded_at=clock.now())
    return current()


@transaction.atomic
def withdraw(kid: str) -> bool:
    """Withdraw a key at once, and return whether it was published; a new one may replace it."""
    withdrawn = SigningKey.objects.filter(kid=kid, withdrawn=False).update(
        withdrawn=True,
    )
    current()
    return bool(withdrawn)


def published() -> dict[str, Any]:
    """Return the public keys as a JSON key set, the signing key first."""
    current()
    kept_since = clock.now() - PUBLISHED_AFTER_ROTATION
    keys = SigningKey.objects.filter(withdrawn=False).filter(
        Q(superseded_at=None) | Q(superseded_at__gt=kept_since),
    )
    return {"keys": [_public_jwk(key) for key in keys]}


def private_key(key: SigningKey) -> JWK:
    """Return the key as the libraries take it."""
    return JWK(**key.private_jwk)


def sign_jwt(typ: str, members: Mapping[str, object]) -> str:
    """Sign a JWT of the service with the current key. It is valid as long as an access token."""
    issued_at = int(clock.now().timestamp())
    lifetime = int(ACCESS_TOKEN_LIFETIME.total_seconds())
    times = {"iat": issued_at, "exp": issued_at + lifetime}
    return sign(
        json_encode({"iss": settings.SANDBOX_ORIGIN, **times, **members}),
        typ=typ,
    )


def sign(content: str | bytes, **header: str) -> str:
    """Sign ``content`` as a compact JWS with the current key."""
    key = current()
    token = JWS(content)
    token.add_signature(
        private_key(key),
        protected=json_encode({"alg": "ES256", "kid": key.kid, **header}),
    )
    compact: str = token.serialize(compact=True)
    return compact


def _public_jwk(key: SigningKey) -> dict[str, Any]:
    public: dict[str, Any] = private_key(key).export_public(as_dict=True)
    return public | {"kid": key.kid, "use": "sig", "alg": "ES256"}
