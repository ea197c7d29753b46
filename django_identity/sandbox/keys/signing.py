"""Sign JWTs, and content with a detached signature."""

from collections.abc import Mapping

from django.conf import settings
from jwcrypto.common import json_encode
from jwcrypto.jws import JWS
from jwcrypto.jwt import JWT

from django_identity.sandbox.instruments import clock
from django_identity.sandbox.keys import key_set
from django_identity.sandbox.models import ACCESS_TOKEN_LIFETIME


def sign_detached(content: bytes) -> str:
    """Sign ``content`` as a JWS with detached payload (RFC 7515, appendix F)."""
    key = key_set.current()
    token = JWS(content)
    token.add_signature(
        key_set.private_key(key), protected=json_encode({"alg": "ES256", "kid": key.kid})
    )
    header, _payload, signature = str(token.serialize(compact=True)).split(".")
    return f"{header}..{signature}"


def sign_jwt(typ: str, members: Mapping[str, str]) -> str:
    """Sign a JWT with the current key. It is valid as long as an access token."""
    issued_at = int(clock.now().timestamp())
    lifetime = int(ACCESS_TOKEN_LIFETIME.total_seconds())
    key = key_set.current()
    token = JWT(
        header={"alg": "ES256", "typ": typ, "kid": key.kid},
        claims={
            "iss": settings.SANDBOX_ORIGIN,
            "iat": issued_at,
            "exp": issued_at + lifetime,
            **members,
        },
    )
    token.make_signed_token(key_set.private_key(key))
    serialized: str = token.serialize()
    return serialized
