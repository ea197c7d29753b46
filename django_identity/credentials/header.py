"""Check the header of the signed token."""

from functools import lru_cache
from typing import Final

from django_identity import strict_json
from django_identity.credentials import base64url
from django_identity.credentials.reasons import RejectionReason
from django_identity.exceptions import CredentialRejected

_KEY_SOURCES: Final = frozenset({"jwk", "jku", "x5c", "x5u"})


@lru_cache(maxsize=64)  # a service has few headers; what is refused is never kept
def read_kid(segment: bytes) -> str:
    """Check the header and return its ``kid``. Unknown members are ignored.

    The header only chooses one of the service's published keys (RFC 8725 §3.1). It does not choose
    the algorithm, and a header that brings or points to a key is refused.
    """
    try:
        header = strict_json.read_object(base64url.decode(segment))
    except strict_json.NotStrictJSON:
        raise CredentialRejected(RejectionReason.HEADER_JSON) from None
    if header.get("alg") != "ES256":
        raise CredentialRejected(RejectionReason.HEADER_ALG)
    if header.get("typ") != "dc+sd-jwt":
        raise CredentialRejected(RejectionReason.HEADER_TYP)
    if "crit" in header:
        raise CredentialRejected(RejectionReason.HEADER_CRIT)
    if not _KEY_SOURCES.isdisjoint(header):
        raise CredentialRejected(RejectionReason.HEADER_KEY_SOURCE)
    kid = header.get("kid")
    if not isinstance(kid, str):
        raise CredentialRejected(RejectionReason.HEADER_KID)
    return kid
