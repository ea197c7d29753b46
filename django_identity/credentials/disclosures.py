"""Check the disclosures and read their claims as read-only data."""

from binascii import b2a_base64
from collections.abc import Mapping
from hashlib import sha256
from types import MappingProxyType
from typing import Any

from django_identity import strict_json
from django_identity.credentials import base64url
from django_identity.exceptions import CredentialRejected
from django_identity.exceptions.rejections import RejectionReason
from django_identity.strict_json import JSONObject

DIGEST_MEMBERS = frozenset({"_sd", "_sd_alg", "..."})
"""Member names that mean something to SD-JWT (RFC 9901 §4), so that no claim may have them."""

VALIDITY_CLAIMS = frozenset(
    {"iss", "aud", "sub", "environment", "exp", "nbf", "iat", "cnf", "vct", "status"},
)
"""What decides on validity is in the signed payload or nowhere (RFC 9901 §9.7)."""

_TO_URL_SAFE_LINES = bytes.maketrans(b"+/=", b"-_\n")


def require_listed(disclosures: list[bytes], listed: frozenset[str]) -> None:
    """Check that each disclosure occurs once and its digest is in ``_sd`` (RFC 9901 §7.1).

    The digest is over the text as sent (§4.2.3). An unlisted disclosure rejects the whole
    credential, because only a forger has a reason to add one.
    """
    # In one go: each line is one digest in the standard alphabet, and padding ends the line.
    lines = b"".join([b2a_base64(sha256(text).digest()) for text in disclosures])
    digests = lines.translate(_TO_URL_SAFE_LINES).decode("ascii").split()
    undisclosed = len(listed.difference(digests))
    # Each disclosure takes a digest of its own off the list.
    if undisclosed == len(listed) - len(digests):
        return
    if len(set(digests)) != len(digests):
        raise CredentialRejected(RejectionReason.DISCLOSURE_REPEAT)
    raise CredentialRejected(RejectionReason.DISCLOSURE_UNLISTED)


def read_claims(disclosures: list[bytes], payload: JSONObject) -> JSONObject:
    """Claim name -> value of the listed disclosures, read-only."""
    claims = dict(map(_read, disclosures))
    # A disclosure must not replace a signed member, or another disclosure (RFC 9901 §7.1, §9.7).
    if not DIGEST_MEMBERS.isdisjoint(claims):
        raise CredentialRejected(RejectionReason.DISCLOSURE_NAME)
    is_repeated = len(claims) != len(disclosures)
    if is_repeated or not payload.keys().isdisjoint(claims):
        raise CredentialRejected(RejectionReason.DISCLOSURE_COLLISION)
    if not VALIDITY_CLAIMS.isdisjoint(claims):
        raise CredentialRejected(RejectionReason.DISCLOSURE_NAME)
    return MappingProxyType(claims)


def _read(text: bytes) -> tuple[str, Any]:
    """A disclosure is a JSON array of salt, claim name and claim value (RFC 9901 §4.2.1)."""
    try:
        disclosure = strict_json.read(base64url.decode(text))
    except strict_json.NotStrictJSON:
        raise CredentialRejected(RejectionReason.DISCLOSURE_JSON) from None
    if type(disclosure) is list and len(disclosure) == 2:
        raise CredentialRejected(RejectionReason.DISCLOSURE_ARRAY_ELEMENT)
    if type(disclosure) is not list or len(disclosure) != 3:
        raise CredentialRejected(RejectionReason.DISCLOSURE_SHAPE)
    salt, name, value = disclosure
    if type(salt) is not str or type(name) is not str:
        raise CredentialRejected(RejectionReason.DISCLOSURE_SHAPE)
    return name, freeze(value)


def freeze(value: Any) -> Any:
    """``value`` with read-only mappings for its objects and tuples for its arrays.

    Raises ``CredentialRejected`` if an object in it has a member for digests, because this profile
    is flat.
    """
    kind = type(value)
    if kind is dict:
        if not DIGEST_MEMBERS.isdisjoint(value):
            raise CredentialRejected(RejectionReason.DISCLOSURE_NESTED)
        return MappingProxyType(
            {name: freeze(member) for name, member in value.items()},
        )
    if kind is list:
        return tuple(map(freeze, value))
    return value


def thaw(value: Any) -> Any:
    """The opposite of ``freeze``: fresh dicts and lists, which ``json.dumps`` takes."""
    if isinstance(value, Mapping):
        return {name: thaw(member) for name, member in value.items()}
    if isinstance(value, tuple):
        return [thaw(element) for element in value]
    return value
