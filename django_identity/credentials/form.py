"""Check the outer form of a credential: limits, characters and parts. Nothing is decoded."""

from typing import Final, TypeAlias

from django_identity.credentials.base64url import ALPHABET, LAST_OCTETS
from django_identity.credentials.reasons import RejectionReason
from django_identity.exceptions import CredentialRejected

MAX_CHARACTERS: Final = 128 * 1024
MAX_HEADER_CHARACTERS: Final = 4 * 1024
MAX_DISCLOSURES: Final = 200

_CHARACTERS: Final = ALPHABET + b".~"

Parts: TypeAlias = tuple[bytes, list[bytes], list[bytes]]


def take_apart(credential: str) -> Parts:
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
    if len(disclosures) > MAX_DISCLOSURES + 1 or len(segments[0]) > MAX_HEADER_CHARACTERS:
        raise CredentialRejected(RejectionReason.LIMITS)
    if text.translate(None, _CHARACTERS):
        raise CredentialRejected(RejectionReason.FORMAT_CHARSET)
    if not disclosures or disclosures.pop():
        raise CredentialRejected(RejectionReason.FORMAT_TILDE)
    if len(segments) != 3 or not all(segments):
        raise CredentialRejected(RejectionReason.FORMAT_SEGMENTS)
    if not all(disclosures) or text.find(b".", len(token)) != -1:
        raise CredentialRejected(RejectionReason.FORMAT_DISCLOSURE)
    for part in segments + disclosures:
        if part[-1] not in LAST_OCTETS[len(part) & 3]:
            raise CredentialRejected(RejectionReason.ENCODING)
    return token, segments, disclosures
