"""Check the outer form of a credential, and the header of the signed token."""

from functools import lru_cache

from django_identity import strict_json
from django_identity.credentials import base64url
from django_identity.exceptions import CredentialRejected
from django_identity.exceptions.rejections import RejectionReason

_KEY_SOURCES = frozenset({"jwk", "jku", "x5c", "x5u"})
MAX_CHARACTERS = 128 * 1024
MAX_HEADER_CHARACTERS = 4 * 1024
MAX_DISCLOSURES = 200

_CHARACTERS = base64url.ALPHABET + b".~"


def take_apart(credential: str) -> tuple[bytes, list[bytes], list[bytes]]:
    """Split ``credential`` into the signed token, its three segments and the disclosures.

    The form is ``<header>.<payload>.<signature>~<disclosure>~…~`` (RFC 9901 §4). Without the last
    ``~`` the credential is incomplete or has a key-binding part, which this profile does not allow.
    """
    if len(credential) > MAX_CHARACTERS:
        raise CredentialRejected(RejectionReason.LIMITS)

    # A character outside ASCII becomes "?", which the check of the characters refuses too.
    text = credential.encode("ascii", "replace")
    disclosures = text.split(b"~")
    token = disclosures.pop(0)
    segments = token.split(b".")
    if (
        len(disclosures) > MAX_DISCLOSURES + 1
        or len(segments[0]) > MAX_HEADER_CHARACTERS
    ):
        raise CredentialRejected(RejectionReason.LIMITS)

    if text.translate(None, _CHARACTERS):
        raise CredentialRejected(RejectionReason.FORMAT_CHARSET)
    # The last part, behind the last "~", is taken off here and must be empty.
    if not disclosures or disclosures.pop():
        raise CredentialRejected(RejectionReason.FORMAT_TILDE)
    if len(segments) != 3 or not all(segments):
        raise CredentialRejected(RejectionReason.FORMAT_SEGMENTS)
    if not all(disclosures) or text.find(b".", len(token)) != -1:
        raise CredentialRejected(RejectionReason.FORMAT_DISCLOSURE)

    for part in segments + disclosures:
        if part[-1] not in base64url.LAST_OCTETS[len(part) & 3]:
            raise CredentialRejected(RejectionReason.ENCODING)
    return token, segments, disclosures


@lru_cache(maxsize=64)  # a service has few headers; what is refused is never kept
def read_kid(segment: bytes) -> str:
    """Check the header and return its ``kid``. Unknown members are ignored.

    The header only chooses one of the service's published keys (RFC 8725 §3.1). The algorithm is
    fixed (ES256), and a header that brings or points to a key is refused.
    """
    try:
        header = strict_json.read_object(base64url.decode(segment))
    except strict_json.NotStrictJSON:
        raise CredentialRejected(RejectionReason.HEADER_JSON) from None

    # "none", or an HMAC with the public key as its secret, would be anybody's signature.
    if header.get("alg") != "ES256":
        raise CredentialRejected(RejectionReason.HEADER_ALG)
    # The service's keys sign other tokens too (RFC 8725 §3.11).
    if header.get("typ") != "dc+sd-jwt":
        raise CredentialRejected(RejectionReason.HEADER_TYP)
    # An extension that must be understood, and is not (RFC 7515 §4.1.11).
    if "crit" in header:
        raise CredentialRejected(RejectionReason.HEADER_CRIT)
    if not _KEY_SOURCES.isdisjoint(header):
        raise CredentialRejected(RejectionReason.HEADER_KEY_SOURCE)

    kid = header.get("kid")
    if not isinstance(kid, str):
        raise CredentialRejected(RejectionReason.HEADER_KID)
    return kid
