"""Verify a credential: an SD-JWT (RFC 9901) with the service's profile."""

import time
from datetime import datetime
from hashlib import sha256
from math import inf

from cryptography import exceptions
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, utils

from django_identity.credentials import base64url
from django_identity.credentials.disclosures import read_claims, require_listed
from django_identity.credentials.form import read_kid, take_apart
from django_identity.credentials.keys import KeySet
from django_identity.credentials.payload import (
    listed_digests,
    read_payload,
    require_parties,
    require_times,
)
from django_identity.credentials.verified import VerifiedCredential
from django_identity.exceptions import CredentialRejected
from django_identity.exceptions.rejections import RejectionReason

# The only algorithm; a credential cannot choose another. Prehashed, because hashlib is faster.
# PyJWT would add a slower conversion of the signature.
_ES256 = ec.ECDSA(utils.Prehashed(hashes.SHA256()))
_SIGNATURE_CHARACTERS = 86  # 64 octets


def verify(
    credential: str,
    *,
    keys: KeySet,
    issuer: str,
    audience: str,
    environment: str,
    subject: str | None = None,
    now: datetime | None = None,
    leeway: float = 0,
) -> VerifiedCredential:
    """Verify ``credential`` with all checks of ``RejectionReason``.

    - ``keys``: the service's key set. ``issuer``: the API origin. ``audience``: the application's
      client id. ``environment``: ``"live"`` or ``"test"``.
    - ``subject``: the required subject. Always pass it if the user is known: it alone ties a
      credential to a user.
    - ``now``: an aware datetime, by default the current time. ``leeway``: seconds by which the
      issuer's clock may be ahead, for ``nbf`` and ``iat`` alone.

    For any text it returns or raises ``CredentialRejected`` with a ``reason``. ``TypeError`` and
    ``ValueError`` mean a wrong call: anything but a text, a naive ``now``, a negative leeway.
    """
    if not isinstance(credential, str):
        raise TypeError("credential must be a str")
    if not 0 <= leeway < inf:
        raise ValueError("leeway must be a finite number of seconds, not negative")
    seconds = _seconds(now)
    expected = {"iss": issuer, "aud": audience, "environment": environment}
    try:
        return _verified(credential, keys, expected, subject, seconds, leeway)
    except CredentialRejected as rejected:
        reason = rejected.reason

    # Raise a new error: the frames of the first one hold the credential in their variables.
    del credential, subject
    raise CredentialRejected(reason)


def _seconds(now: datetime | None) -> float:
    """Seconds since the epoch, by default those of the current time."""
    if now is None:
        return time.time()
    if now.utcoffset() is None:
        raise ValueError("now must be an aware datetime")
    return now.timestamp()


def _verified(
    credential: str,
    keys: KeySet,
    expected: dict[str, str],
    subject: str | None,
    now: float,
    leeway: float,
) -> VerifiedCredential:
    """Run all checks, in the order of the reasons. Only the last line returns a result."""
    token, (header, body, signature), disclosures = take_apart(credential)
    kid = read_kid(header)
    _require_signature(token, signature, keys.get(kid))

    payload = read_payload(base64url.decode(body))
    require_parties(payload, expected, subject)
    require_times(payload, now=now, leeway=leeway)

    require_listed(disclosures, listed_digests(payload))
    claims = read_claims(disclosures, payload)
    return VerifiedCredential(
        subject=payload["sub"],
        environment=payload["environment"],
        kid=kid,
        claims=claims,
        exp=payload["exp"],
        iat=payload.get("iat"),
    )


def _require_signature(
    token: bytes,
    signature: bytes,
    key: ec.EllipticCurvePublicKey | None,
) -> None:
    """Check the signature of ``token``.

    ``signature`` is r and s, 32 octets each (RFC 7518 §3.4), over the text before it as sent.
    OpenSSL checks that both are between 1 and the order of the curve.
    """
    if key is None:
        raise CredentialRejected(RejectionReason.KEY)
    if len(signature) != _SIGNATURE_CHARACTERS:
        raise CredentialRejected(RejectionReason.SIGNATURE)
    octets = base64url.decode(signature)
    r = int.from_bytes(octets[:32], "big")
    s = int.from_bytes(octets[32:], "big")
    digest = sha256(token[: -_SIGNATURE_CHARACTERS - 1]).digest()
    try:
        key.verify(utils.encode_dss_signature(r, s), digest, _ES256)
    except exceptions.InvalidSignature:
        raise CredentialRejected(RejectionReason.SIGNATURE) from None
