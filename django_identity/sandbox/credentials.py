"""Issuing: the SD-JWT of the claims response and the other tokens the service signs."""

import secrets
from collections.abc import Iterable, Mapping
from typing import Any

from django.conf import settings
from jwcrypto.common import json_encode
from jwcrypto.jws import JWS
from jwcrypto.jwt import JWT
from sd_jwt.common import SDObj
from sd_jwt.issuer import SDJWTIssuer

from django_identity.sandbox import clock, key_set, switches
from django_identity.sandbox.models import ACCESS_TOKEN_LIFETIME, Claim, User

CREDENTIAL_FORMAT = "dc+sd-jwt"
CREDENTIAL_LIFETIME_SECONDS = 24 * 60 * 60


class _FlatIssuer(SDJWTIssuer):
    """Adds decoys to the top level only, and keeps ``_sd`` when there is nothing to disclose.

    The library's own ``add_decoy_claims`` puts decoys into every object, those inside claim values
    included, and drops an empty ``_sd``.
    """

    def _assemble_sd_jwt_payload(self) -> None:
        super()._assemble_sd_jwt_payload()
        digests = self.sd_jwt_payload.setdefault("_sd", [])
        digests += [self._create_decoy_claim_entry() for _ in range(switches.current().decoys)]
        digests.sort()


def issue(user: User, claims: Iterable[Claim], *, audience: str) -> str:
    """Issue the credential that discloses ``claims`` of ``user`` (spec: Credential structure).

    Args:
        user: the person, who becomes ``sub``.
        claims: what is disclosed: the caller leaves out revoked claims.
        audience: the ``client_id`` of the requesting application.

    Returns:
        The compact serialisation; it ends with ``~``.
    """
    issued_at = int(clock.now().timestamp())
    payload: dict[Any, Any] = {
        "iss": settings.SANDBOX_ORIGIN,
        "aud": audience,
        "sub": user.subject,
        "environment": user.environment,
        "exp": issued_at + CREDENTIAL_LIFETIME_SECONDS,
    }
    if switches.current().claims_iat:
        payload["iat"] = issued_at
    payload |= {SDObj(claim.claim_type): claim.value for claim in claims}
    key = key_set.current()
    issuer = _FlatIssuer(
        payload,
        key_set.private_key(key),
        sign_alg="ES256",
        extra_header_parameters={"typ": CREDENTIAL_FORMAT, "kid": key.kid},
    )
    credential: str = issuer.sd_jwt_issuance
    return credential


def id_token(user: User, *, audience: str) -> str:
    """Sign an OpenID Connect ID token that names ``user`` to the application ``audience``."""
    return _sign("JWT", {"sub": user.subject, "aud": audience})


def jwt_access_token(user: User, *, client_id: str) -> str:
    """Sign an access token of the form of RFC 9068 for ``user`` and ``client_id``.

    ``aud`` is the application, as in ID tokens and credentials: it reads the subject there.
    """
    members = {
        "sub": user.subject,
        "aud": client_id,
        "client_id": client_id,
        "jti": secrets.token_urlsafe(16),
    }
    return _sign("at+jwt", members)


def sign_detached(content: bytes) -> str:
    """Sign ``content`` as a JWS whose payload is left out (RFC 7515, appendix F)."""
    key = key_set.current()
    token = JWS(content)
    token.add_signature(
        key_set.private_key(key), protected=json_encode({"alg": "ES256", "kid": key.kid})
    )
    header, _payload, signature = str(token.serialize(compact=True)).split(".")
    return f"{header}..{signature}"


def _sign(typ: str, members: Mapping[str, str]) -> str:
    """Sign a JWT with the current key; it lives as long as an access token."""
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
