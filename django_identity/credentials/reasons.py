"""The reasons to reject a credential, in the order of the checks."""

from enum import StrEnum
from typing import Self


class RejectionReason(StrEnum):
    """All reasons of ``verify``. The values are stable and safe to store, log and show.

    ``explanation``: what the reason says, for operators.
    """

    explanation: str

    def __new__(cls, value: str, explanation: str) -> Self:
        reason = str.__new__(cls, value)
        reason._value_, reason.explanation = value, explanation
        return reason

    # Before any work: the text alone
    LIMITS = "limits", "too long, a header too long, or too many disclosures"
    FORMAT_CHARSET = "format.charset", "a character that no credential contains"
    FORMAT_TILDE = "format.tilde", 'does not end with "~": it is cut off, or has a key-binding part'
    FORMAT_SEGMENTS = "format.segments", "the signed token is not three non-empty segments"
    FORMAT_DISCLOSURE = "format.disclosure", 'a disclosure is empty or has a "."'
    ENCODING = "encoding", "a part is not canonical base64url"

    # The signed token's header
    HEADER_JSON = "header.json", "the header is not one strict JSON object"
    HEADER_ALG = "header.alg", "the algorithm is not ES256"
    HEADER_TYP = "header.typ", "the type is not dc+sd-jwt"
    HEADER_CRIT = "header.crit", "it demands critical extensions, of which none is understood"
    HEADER_KEY_SOURCE = "header.key_source", "it brings its own key or points to one"
    HEADER_KID = "header.kid", "the key is not named, or not by a string"

    # Key, signature
    KEY = "key", "the key set has no usable key of that name"
    SIGNATURE = "signature", "not the signature of this text by that key"

    # The signed payload
    PAYLOAD_JSON = "payload.json", "the payload is not one strict JSON object"
    PAYLOAD_NESTED = "payload.nested", "there are digests below the payload's top level"
    PAYLOAD_ISS = "payload.iss", "another issuer than the application's API origin"
    PAYLOAD_AUD = "payload.aud", "meant for another application"
    PAYLOAD_ENVIRONMENT = "payload.environment", "live for test, or test for live"
    PAYLOAD_SUB = "payload.sub", "no subject, an unusable one, or another than the one asked for"
    PAYLOAD_EXP = "payload.exp", "no expiry, or one that is no date"
    PAYLOAD_EXPIRED = "payload.expired", "it has expired"
    PAYLOAD_NBF = "payload.nbf", "not valid yet, or its nbf is no date"
    PAYLOAD_IAT = "payload.iat", "issued in the future, or its iat is no date"
    PAYLOAD_SD = "payload.sd", "the digests are not a list of strings"
    PAYLOAD_SD_REPEAT = "payload.sd_repeat", "a digest is listed twice"
    PAYLOAD_SD_ALG = "payload.sd_alg", "the digests are by another hash than SHA-256"

    # The disclosures
    DISCLOSURE_REPEAT = "disclosure.repeat", "a disclosure was sent twice"
    DISCLOSURE_UNLISTED = "disclosure.unlisted", "a disclosure's digest is not in the signed list"
    DISCLOSURE_JSON = "disclosure.json", "a disclosure is not strict JSON"
    DISCLOSURE_ARRAY_ELEMENT = "disclosure.array_element", "a disclosure hides an array element"
    DISCLOSURE_SHAPE = "disclosure.shape", "a disclosure is not an array of salt, name and value"
    DISCLOSURE_NESTED = "disclosure.nested", "there are digests inside a disclosed value"
    DISCLOSURE_NAME = "disclosure.name", "a disclosure has a name that may not be disclosed"
    DISCLOSURE_COLLISION = "disclosure.collision", "a disclosure has a name that is taken already"
