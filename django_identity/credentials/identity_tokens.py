"""Signed tokens that may name the subject: ID tokens and JWT access tokens."""

# Annotations name classes of modules that load later.
from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.views.decorators.debug import sensitive_variables

from django_identity.credentials.keys import KeySet
from django_identity.deferred import Deferred

if TYPE_CHECKING:
    import jwt
else:
    jwt = Deferred("jwt")

MAX_CHARACTERS: Final = 16 * 1024
# The service's keys sign credentials too, so the type must show that this is not a credential
# (RFC 8725 §3.11).
TYPES: Final = frozenset({"JWT", "at+jwt", "application/at+jwt"})
OPTIONS: Final[jwt.types.Options] = {"require": ["iss", "aud", "sub", "exp"], "strict_aud": True}


@sensitive_variables()
def subject_of(
    token: str, *, keys: KeySet, issuer: str, audience: str, leeway: float = 0
) -> str | None:
    """The ``sub`` of ``token`` if it is a valid JWT of the service for this application.

    It must be signed with ES256 by a key of ``keys``, be from ``issuer`` and only for ``audience``,
    and not be expired. For other tokens, such as opaque ones, the result is None. ``leeway``:
    seconds by which the clocks may differ.
    """
    if len(token) > MAX_CHARACTERS or token.count(".") != 2:
        return None
    try:
        header = jwt.get_unverified_header(token)
        key = keys.get(header.get("kid", ""))
        if key is None or header.get("typ", "JWT") not in TYPES:
            return None
        claims = jwt.decode(
            token,
            key.public_key,
            algorithms=["ES256"],
            issuer=issuer,
            audience=audience,
            leeway=leeway,
            options=OPTIONS,
        )
    except (jwt.PyJWTError, ValueError, TypeError, OverflowError, RecursionError):
        return None
    return str(claims["sub"])
