"""Signed tokens that may name the subject: ID tokens and JWT access tokens."""

from typing import Any

import jwt

from django_identity.credentials.keys import KeySet

MAX_CHARACTERS = 16 * 1024
# The service's keys sign credentials too, so the type must show that this is not a credential
# (RFC 8725 §3.11).
ACCESS_TOKENS = frozenset({"at+jwt", "application/at+jwt"})
TOKEN_TYPES = ACCESS_TOKENS | {"JWT"}
# PyJWT takes a list in which our id is one of several: ``subject_of`` compares instead.
OPTIONS: jwt.types.Options = {
    "require": ["iss", "aud", "sub", "exp"],
    "verify_aud": False,
}


def subject_of(
    token: str,
    *,
    keys: KeySet,
    issuer: str,
    audience: str,
    leeway: float = 0,
) -> str | None:
    """The ``sub`` of ``token`` if it is a valid JWT of the service for this application.

    It must be signed with ES256 by a key of ``keys``, be from ``issuer``, be for ``audience``
    alone, and still be valid. An ID token may name its audience in a list of one. An access token
    may be for the issuer's API, if it was issued to ``audience`` (RFC 9068 §2.2). For other tokens,
    such as opaque ones, the result is None. ``leeway``: seconds by which the clocks may differ.
    """
    if len(token) > MAX_CHARACTERS:
        return None
    try:
        # The header only chooses one of the service's keys, and shows the type of the token.
        header = jwt.get_unverified_header(token)
        key = keys.get(header.get("kid", ""))
        token_type = header.get("typ", "JWT")
        if key is None or token_type not in TOKEN_TYPES:
            return None
        claims = jwt.decode(
            token,
            key,
            algorithms=["ES256"],
            issuer=issuer,
            leeway=leeway,
            options=OPTIONS,
        )
    except (jwt.PyJWTError, ValueError, TypeError, OverflowError, RecursionError):
        return None

    # Another application could hand in the token that it was given for a person.
    if not _is_for(
        audience,
        claims,
        issuer=issuer,
        is_access_token=token_type in ACCESS_TOKENS,
    ):
        return None
    return str(claims["sub"])


def _is_for(
    audience: str,
    claims: dict[str, Any],
    *,
    issuer: str,
    is_access_token: bool,
) -> bool:
    aud = claims["aud"]
    if not is_access_token:
        return aud in (audience, [audience])
    if aud == issuer:
        return claims.get("client_id") == audience
    return bool(aud == audience)
