"""The reasons to reject a credential, in the order of the checks."""

from enum import StrEnum


class RejectionReason(StrEnum):
    """All reasons of ``verify``. The values are stable and safe to store, log and show.

    The comment above each says what its check demands, and where that is written. "Strict" marks
    rules beyond the standards, "spec" the service's specification.
    """

    # Before any work: the text alone
    #: At most 131,072 characters, a header of at most 4,096 characters, and at most 200 disclosures
    #: (strict)
    LIMITS = "limits"
    #: Only ``A``-``Z``, ``a``-``z``, ``0``-``9``, ``-``, ``_``, ``.``, ``~``: no padding, white
    #: space or JSON serialisation (RFC 9901 §4)
    FORMAT_CHARSET = "format.charset"
    #: It ends with ``~``: no key-binding part follows (spec; RFC 9901 §4)
    FORMAT_TILDE = "format.tilde"
    #: The signed token has three non-empty segments (RFC 7515 §7.1)
    FORMAT_SEGMENTS = "format.segments"
    #: No disclosure is empty or contains a dot (RFC 9901 §4)
    FORMAT_DISCLOSURE = "format.disclosure"
    #: Every part is canonical base64url (RFC 7515 §2; RFC 4648 §3.5)
    ENCODING = "encoding"

    # The signed token's header
    #: The header is one strict JSON object: UTF-8, no repeated names, no ``NaN``, no overflow, no
    #: lone surrogates, at most 32 levels (RFC 7515 §4; RFC 8725 §3.7; RFC 8259 §6)
    HEADER_JSON = "header.json"
    #: ``alg`` is ``ES256``. The verifier chooses the algorithm, never the token (spec; RFC 8725
    #: §3.1)
    HEADER_ALG = "header.alg"
    #: ``typ`` is ``dc+sd-jwt``, exactly (spec; RFC 8725 §3.11; SD-JWT VC, JOSE header)
    HEADER_TYP = "header.typ"
    #: No ``crit``: the verifier supports no extension (RFC 7515 §4.1.11)
    HEADER_CRIT = "header.crit"
    #: No ``jwk``, ``jku``, ``x5c``, ``x5u``: a token must not bring its own key (strict; RFC 8725
    #: §3.10)
    HEADER_KEY_SOURCE = "header.key_source"
    #: ``kid`` is a string (spec)
    HEADER_KID = "header.kid"

    # Key, signature
    #: The key set has a usable key with exactly this, unique ``kid``: P-256, for signatures, no
    #: private part, a valid point (spec; RFC 7517 §4; RFC 7518 §6.2.1)
    KEY = "key"
    #: The signature has 64 octets and is valid for the text as sent (RFC 7518 §3.4; RFC 7515 §5.2;
    #: FIPS 186-5)
    SIGNATURE = "signature"

    # The signed payload
    #: The payload is one strict JSON object (RFC 7519 §7.2; RFC 8725 §3.7)
    PAYLOAD_JSON = "payload.json"
    #: No ``_sd`` or ``_sd_alg`` below the top level, and no ``...`` at any level (spec: the list is
    #: flat)
    PAYLOAD_NESTED = "payload.nested"
    #: ``iss`` is the API origin, exactly (spec; RFC 8725 §3.8)
    PAYLOAD_ISS = "payload.iss"
    #: ``aud`` is the client id, exactly, and not a list (spec; RFC 8725 §3.9)
    PAYLOAD_AUD = "payload.aud"
    #: ``environment`` is the settings', exactly (spec)
    PAYLOAD_ENVIRONMENT = "payload.environment"
    #: ``sub`` is a non-empty string without NUL, equal to ``subject`` (spec; RFC 8725 §3.8)
    PAYLOAD_SUB = "payload.sub"
    #: ``exp`` is a number that is a valid date (spec; RFC 7519 §4.1.4)
    PAYLOAD_EXP = "payload.exp"
    #: Now is before ``exp`` (spec; RFC 7519 §4.1.4)
    PAYLOAD_EXPIRED = "payload.expired"
    #: ``nbf``, if present, is a valid date, not in the future (RFC 7519 §4.1.5)
    PAYLOAD_NBF = "payload.nbf"
    #: ``iat``, if present, is a valid date, not in the future (strict; RFC 7519 §4.1.6)
    PAYLOAD_IAT = "payload.iat"
    #: ``_sd``, if present, is a list of strings (RFC 9901 §4.2.4.1)
    PAYLOAD_SD = "payload.sd"
    #: No digest is listed twice, including decoys (RFC 9901 §7.1)
    PAYLOAD_SD_REPEAT = "payload.sd_repeat"
    #: ``_sd_alg``, if present, is ``sha-256`` (spec; RFC 9901 §4.1.1)
    PAYLOAD_SD_ALG = "payload.sd_alg"

    # The disclosures
    #: No disclosure is sent twice (RFC 9901 §4)
    DISCLOSURE_REPEAT = "disclosure.repeat"
    #: The digest of every disclosure (SHA-256 over the text as sent) is in ``_sd`` (spec; RFC 9901
    #: §4.2.3, §7.1)
    DISCLOSURE_UNLISTED = "disclosure.unlisted"
    #: Every disclosure is strict JSON (RFC 9901 §4.2.1; RFC 8259 §6)
    DISCLOSURE_JSON = "disclosure.json"
    #: No disclosure is an array of two (RFC 9901 §4.2.2; spec: three elements)
    DISCLOSURE_ARRAY_ELEMENT = "disclosure.array_element"
    #: Every disclosure is an array of a string, a string and a value (spec; RFC 9901 §4.2.1, §7.1)
    DISCLOSURE_SHAPE = "disclosure.shape"
    #: The value contains no ``_sd``, ``_sd_alg`` or ``...`` at any level (spec: the list is flat)
    DISCLOSURE_NESTED = "disclosure.nested"
    #: The claim's name is none of ``_sd``, ``_sd_alg``, ``...``, ``iss``, ``aud``, ``sub``,
    #: ``environment``, ``exp``, ``nbf``, ``iat``, ``cnf``, ``vct``, ``status`` (RFC 9901 §7.1,
    #: §9.7)
    DISCLOSURE_NAME = "disclosure.name"
    #: The claim's name occurs in neither the payload nor another disclosure (RFC 9901 §7.1)
    DISCLOSURE_COLLISION = "disclosure.collision"
