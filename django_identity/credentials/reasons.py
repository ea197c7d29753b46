"""The reasons to reject a credential, in the order of the checks."""

from enum import StrEnum


class RejectionReason(StrEnum):
    """All reasons of ``verify``. The values are stable and safe to store, log and show.

    ``docs/security.md`` says what each check demands.
    """

    # Before any work: the text alone
    LIMITS = "limits"
    FORMAT_CHARSET = "format.charset"
    FORMAT_TILDE = "format.tilde"
    FORMAT_SEGMENTS = "format.segments"
    FORMAT_DISCLOSURE = "format.disclosure"
    ENCODING = "encoding"

    # The signed token's header
    HEADER_JSON = "header.json"
    HEADER_ALG = "header.alg"
    HEADER_TYP = "header.typ"
    HEADER_CRIT = "header.crit"
    HEADER_KEY_SOURCE = "header.key_source"
    HEADER_KID = "header.kid"

    # Key, signature
    KEY = "key"
    SIGNATURE = "signature"

    # The signed payload
    PAYLOAD_JSON = "payload.json"
    PAYLOAD_NESTED = "payload.nested"
    PAYLOAD_ISS = "payload.iss"
    PAYLOAD_AUD = "payload.aud"
    PAYLOAD_ENVIRONMENT = "payload.environment"
    PAYLOAD_SUB = "payload.sub"
    PAYLOAD_EXP = "payload.exp"
    PAYLOAD_EXPIRED = "payload.expired"
    PAYLOAD_NBF = "payload.nbf"
    PAYLOAD_IAT = "payload.iat"
    PAYLOAD_SD = "payload.sd"
    PAYLOAD_SD_REPEAT = "payload.sd_repeat"
    PAYLOAD_SD_ALG = "payload.sd_alg"

    # The disclosures
    DISCLOSURE_REPEAT = "disclosure.repeat"
    DISCLOSURE_UNLISTED = "disclosure.unlisted"
    DISCLOSURE_JSON = "disclosure.json"
    DISCLOSURE_ARRAY_ELEMENT = "disclosure.array_element"
    DISCLOSURE_SHAPE = "disclosure.shape"
    DISCLOSURE_NESTED = "disclosure.nested"
    DISCLOSURE_NAME = "disclosure.name"
    DISCLOSURE_COLLISION = "disclosure.collision"
