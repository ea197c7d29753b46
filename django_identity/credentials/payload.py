"""Check the signed payload."""

from collections.abc import Mapping
from typing import Any

from django_identity import strict_json
from django_identity.credentials.disclosures import freeze
from django_identity.exceptions import CredentialRejected
from django_identity.exceptions.rejections import RejectionReason
from django_identity.strict_json import JSONObject

_STRING = frozenset({str})
_NUMBERS = frozenset({int, float})  # not bool
_FIRST_DATE = -62_135_596_800  # 0001-01-01T00:00:00Z
_LAST_DATE = 253_402_300_799  # 9999-12-31T23:59:59Z


def read_payload(octets: bytes) -> JSONObject:
    """The members of the payload, which must be one strict JSON object (RFC 7519 §7.2).

    Only the top level may have digests, because this profile is flat.
    """
    try:
        payload = strict_json.read_object(octets)
    except strict_json.NotStrictJSON:
        raise CredentialRejected(RejectionReason.PAYLOAD_JSON) from None
    if "..." in payload:
        raise CredentialRejected(RejectionReason.PAYLOAD_NESTED)
    # ``freeze`` refuses digests. With one brace there is nothing nested to look at.
    if octets.count(b"{") > 1:
        try:
            freeze(list(payload.values()))
        except CredentialRejected:
            raise CredentialRejected(RejectionReason.PAYLOAD_NESTED) from None
    return payload


def require_parties(
    payload: JSONObject,
    expected: Mapping[str, str],
    subject: str | None,
) -> None:
    """Check issuer, audience, environment and subject. All must match exactly.

    ``expected``: the values of ``iss``, ``aud`` and ``environment``. Types must match too: an
    ``aud`` list that contains the client id is refused.
    """
    for name, value in expected.items():
        signed = payload.get(name)
        if signed != value or type(signed) is not str:
            raise CredentialRejected(RejectionReason[f"PAYLOAD_{name.upper()}"])
    sub = payload.get("sub")
    if type(sub) is not str or not sub.strip():
        raise CredentialRejected(RejectionReason.PAYLOAD_SUB)
    # PostgreSQL cannot store NUL in text.
    if "\0" in sub:
        raise CredentialRejected(RejectionReason.PAYLOAD_SUB)
    # Another person's credential must not open this person's gates.
    if subject is not None and sub != subject:
        raise CredentialRejected(RejectionReason.PAYLOAD_SUB)


def require_times(payload: JSONObject, *, now: float, leeway: float) -> None:
    """Check the times of the payload: ``exp`` is ahead, ``nbf`` and ``iat`` are past.

    ``now`` is in seconds since the epoch. ``leeway``, in seconds, allows for different clocks at
    ``nbf`` and ``iat`` alone (RFC 7519 §4.1.4 to §4.1.6).
    """
    exp: Any = payload.get("exp")
    if not _is_date(exp, latest=_LAST_DATE):
        raise CredentialRejected(RejectionReason.PAYLOAD_EXP)
    if now >= exp:
        raise CredentialRejected(RejectionReason.PAYLOAD_EXPIRED)
    latest = min(now + leeway, _LAST_DATE)
    for name in ("nbf", "iat"):
        moment = payload.get(name, now)
        if not _is_date(moment, latest=latest):
            raise CredentialRejected(RejectionReason[f"PAYLOAD_{name.upper()}"])


def _is_date(value: Any, *, latest: float) -> bool:
    if type(value) not in _NUMBERS:
        return False
    return bool(_FIRST_DATE <= value <= latest)


def listed_digests(payload: JSONObject) -> frozenset[str]:
    """The listed digests of disclosures and decoys, if any (RFC 9901 §4.2.4.1, §7.1)."""
    digests = payload.get("_sd", [])
    if type(digests) is not list or not _STRING.issuperset(map(type, digests)):
        raise CredentialRejected(RejectionReason.PAYLOAD_SD)
    listed = frozenset(digests)
    if len(listed) != len(digests):
        raise CredentialRejected(RejectionReason.PAYLOAD_SD_REPEAT)
    if payload.get("_sd_alg", "sha-256") != "sha-256":
        raise CredentialRejected(RejectionReason.PAYLOAD_SD_ALG)
    return listed
