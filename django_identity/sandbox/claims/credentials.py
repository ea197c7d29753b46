"""The credential: the SD-JWT of the claims response (spec: Credential structure)."""

from collections.abc import Iterable
from typing import Any

from django.conf import settings
from sd_jwt.common import SDObj
from sd_jwt.issuer import SDJWTIssuer

from django_identity.sandbox.claims.claims import COUNTRY_RESIDENT
from django_identity.sandbox.instruments import clock, switches
from django_identity.sandbox.instruments.switches import ClaimValues
from django_identity.sandbox.keys import key_set
from django_identity.sandbox.models import Claim, User

CREDENTIAL_FORMAT = "dc+sd-jwt"
# Claim -> the member that says what is claimed, where that is more than yes.
_NOUNS = {COUNTRY_RESIDENT: "country"}


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
        "exp": issued_at + user.credential_seconds,
    }
    if switches.current().claims_iat:
        payload["iat"] = issued_at
    payload |= {SDObj(claim.claim_type): _disclosed(claim) for claim in claims}
    key = key_set.current()
    issuer = _FlatIssuer(
        payload,
        key_set.private_key(key),
        sign_alg="ES256",
        extra_header_parameters={"typ": CREDENTIAL_FORMAT, "kid": key.kid},
    )
    credential: str = issuer.sd_jwt_issuance
    return credential


def _disclosed(claim: Claim) -> Any:
    """Return the value in the form that the specification shows for ``kyc_verified``, or bare."""
    if isinstance(claim.value, dict) or switches.current().claim_values is ClaimValues.BARE:
        return claim.value
    is_plain = isinstance(claim.value, bool)
    return {
        "verified": claim.value if is_plain else True,
        **({} if is_plain else {_NOUNS.get(claim.claim_type, "value"): claim.value}),
        "provider": claim.provider,
        "issued_at": clock.timestamp(claim.issued_at),
        "expires_at": clock.timestamp(claim.expires_at) if claim.expires_at else None,
    }
