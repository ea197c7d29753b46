"""The service's answers as frozen values, parsed and bounded once.

Each ``parse`` raises ``MalformedAnswer`` for an unusable answer. The members of documents and of
``/claims/verify`` are missing in the specification: these are the sandbox's.
"""

import math
import re
from dataclasses import dataclass, field
from datetime import datetime
from typing import NoReturn, Self

from django_identity.conf.rules import Scopes
from django_identity.secrets import Secret
from django_identity.service.members import (
    LONGEST_CODE,
    LONGEST_NAME,
    LONGEST_SUBJECT,
    SUBJECT_MEMBERS,
    Members,
    is_subject,
    safe_url,
    without_controls,
)
from django_identity.strict_json import JSONObject

LONGEST_LIFETIME = 86_400.0
USUAL_LIFETIME = 3600.0
LONGEST_CREDENTIAL = 128 * 1024
MOST_CLAIMS = 200
MOST_DOCUMENTS = 20
# For all documents of an answer together. One alone is limited when it is opened.
LARGEST_DOCUMENTS = 24 * 1024 * 1024
# RFC 6749 appendix A.4, or empty. The limit of the length is our own.
SCOPE = re.compile(r"[\x20\x21\x23-\x5b\x5d-\x7e]{0,1000}")
COUNTRY = re.compile("[A-Z]{2}")


@dataclass(frozen=True, slots=True)
class TokenAnswer:
    """``expires_in`` in seconds. ``scopes`` and ``subject`` are None if the answer lacks them."""

    access_token: Secret
    refresh_token: Secret | None
    expires_in: float
    scopes: Scopes | None
    subject: str | None = field(repr=False)
    id_token: Secret | None = None

    @classmethod
    def parse(cls, body: JSONObject) -> Self:
        """Raises ``MalformedAnswer``; ``SubjectMismatch`` if it names two subjects."""
        members = Members(body, "token")
        token_type = body.get("token_type")
        is_bearer = token_type is None or str(token_type).lower() == "bearer"
        members.require(is_bearer, "token_type is not Bearer")

        scopes = None
        scope = body.get("scope")
        if scope is not None:
            members.require(_is_scope(scope), "scope is not a usable text")
            scopes = tuple(scope.split())

        refresh_token = None
        if body.get("refresh_token") not in (None, ""):
            refresh_token = members.token("refresh_token")

        # What is no ID token only names nobody, so it is no reason to refuse the tokens.
        id_token = None
        if isinstance(body.get("id_token"), str):
            id_token = Secret(body["id_token"])

        return cls(
            access_token=members.token("access_token"),
            refresh_token=refresh_token,
            expires_in=_lifetime(body.get("expires_in")),
            scopes=scopes,
            subject=members.named_subject(),
            id_token=id_token,
        )

    @classmethod
    def parse_refreshed(cls, body: JSONObject) -> Self:
        """Like ``parse``, for the answer to a refresh: a usable pair of tokens is enough.

        The refresh token of the request is spent by now: refusing the new pair for another odd
        member would lose it. Such a member is left out.
        """
        odd = ["token_type"]
        odd += [name for name in SUBJECT_MEMBERS if not is_subject(body.get(name))]
        if not _is_scope(body.get("scope")):
            odd.append("scope")
        return cls.parse({**body, **dict.fromkeys(odd)})


def _is_scope(value: object) -> bool:
    if not isinstance(value, str):
        return False
    return SCOPE.fullmatch(value) is not None


def _lifetime(expires_in: object) -> float:
    """The lifetime in seconds. A negative number counts as zero, and anything else as an hour."""
    seconds = _number(expires_in)
    if seconds is None:
        return USUAL_LIFETIME
    return min(max(seconds, 0.0), LONGEST_LIFETIME)


def _number(value: object) -> float | None:
    """``value`` as a number, or the number spelled by its text, else None."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    if math.isnan(number):
        return None
    return number


@dataclass(frozen=True, slots=True, repr=False)
class Profile:
    """The profile of a person. The site's policy gets it; the package does not store it.

    ``risk_score``: None unless the service sends a number. ``by_code``: only a Connect code says
    whose profile it is, and the code may be another person's.
    """

    id: str
    email: str = ""
    first_name: str = ""
    last_name: str = ""
    country: str = ""
    kyc_level: str = ""
    photo_url: str = ""
    risk_score: float | None = None
    by_code: bool = False

    @classmethod
    def parse(cls, body: JSONObject, *, environment: str = "live") -> Self:
        members = Members(body, "profile")
        country = members.text("country", longest=LONGEST_CODE)
        if not COUNTRY.fullmatch(country):
            country = ""
        return cls(
            id=members.subject("id"),
            email=members.text("email"),
            first_name=members.name("first_name"),
            last_name=members.name("last_name"),
            country=country,
            kyc_level=members.text("kyc_level", longest=LONGEST_CODE),
            photo_url=safe_url(body.get("photo_url"), environment=environment),
            risk_score=_number(body.get("risk_score")),
        )


@dataclass(frozen=True, slots=True)
class KycStatus:
    """``subject``: the subject that the answer names, if any. The member is missing in the spec."""

    kyc_level: str
    status: str
    provider: str
    verified_at: datetime | None
    subject: str | None = field(default=None, repr=False)

    @classmethod
    def parse(cls, body: JSONObject) -> Self:
        """Raises ``MalformedAnswer``; ``SubjectMismatch`` if it names two subjects."""
        members = Members(body, "kyc")
        return cls(
            kyc_level=members.text("kyc_level", longest=LONGEST_CODE),
            status=members.text("status", longest=LONGEST_CODE),
            provider=members.text("provider", longest=LONGEST_SUBJECT),
            verified_at=members.moment("verified_at"),
            subject=members.named_subject(),
        )


@dataclass(frozen=True, slots=True)
class ListedClaim:
    """A claim in the list of the answer. Only the credential proves it."""

    claim_type: str
    provider: str
    revoked: bool
    proof_hash: str
    expires_at: datetime | None

    @classmethod
    def parse(cls, members: Members) -> Self:
        # Some servers write a text or a number. It takes the claim away, so it must be read.
        revoked = str(members.body.get("revoked")).lower()
        is_boolean = revoked in ("true", "1", "false", "0", "none")
        members.require(is_boolean, "revoked is not a boolean")
        proof_hash = members.body.get("proof_hash")
        if not isinstance(proof_hash, str):
            # It is only shown.
            proof_hash = ""
        return cls(
            claim_type=members.required("claim_type", longest=LONGEST_NAME),
            provider=members.text("provider", longest=LONGEST_NAME),
            revoked=revoked in ("true", "1"),
            proof_hash=without_controls(proof_hash[:LONGEST_SUBJECT]),
            expires_at=members.moment("expires_at"),
        )


@dataclass(frozen=True, slots=True, repr=False)
class ClaimsAnswer:
    """The claims of ``user_id``. The ``credential`` proves those that it discloses."""

    user_id: str
    claims: tuple[ListedClaim, ...]
    credential: str | None

    @classmethod
    def parse(cls, body: JSONObject) -> Self:
        members = Members(body, "claims")
        is_known = body.get("credential_format") in (None, "dc+sd-jwt")
        members.require(is_known, "an unknown credential_format")
        listed = members.listed("claims", most=MOST_CLAIMS)
        credential = None
        if body.get("credential") is not None:
            credential = members.exact("credential", longest=LONGEST_CREDENTIAL)
        return cls(
            user_id=members.subject("user_id"),
            claims=tuple(map(ListedClaim.parse, listed)),
            credential=credential,
        )


@dataclass(frozen=True, slots=True, repr=False)
class Document:
    """A document. Its ``repr`` is empty, and pickling it raises.

    ``content``: in the answer a compact JWE, or empty where only metadata was asked for.
    ``content_type``: the type that the answer names.
    """

    document_type: str
    document_id: str = ""
    country: str = ""
    status: str = ""
    content_type: str = ""
    content: bytes = b""

    @classmethod
    def parse_all(cls, body: JSONObject) -> tuple[Self, ...]:
        listed = Members(body, "documents").listed("documents", most=MOST_DOCUMENTS)
        return tuple(map(cls.parse, listed))

    @classmethod
    def parse(cls, members: Members) -> Self:
        return cls(
            document_type=members.required("document_type", longest=LONGEST_CODE),
            document_id=members.text("document_id", longest=LONGEST_SUBJECT),
            country=members.text("country", longest=LONGEST_CODE),
            status=members.text("status", longest=LONGEST_CODE),
            content_type=members.text("content_type", longest=LONGEST_CODE),
            content=members.exact("content", longest=LARGEST_DOCUMENTS).encode(),
        )

    def __reduce_ex__(self, _protocol: object) -> NoReturn:
        raise TypeError("documents are not kept")


@dataclass(frozen=True, slots=True)
class RotatedSecret:
    """The new client secret of one mode. The previous one is void."""

    mode: str
    client_id: str
    client_secret: Secret

    @classmethod
    def parse(cls, body: JSONObject) -> Self:
        members = Members(body, "rotate_secret")
        secret = Secret(members.required("clientSecret"))
        return cls(members.required("mode"), members.required("clientId"), secret)


@dataclass(frozen=True, slots=True, repr=False)
class NewTestUser:
    """A new sandbox user."""

    user_id: str
    email: str
    password: Secret

    @classmethod
    def parse(cls, body: JSONObject) -> Self:
        members = Members(body, "test_users")
        password = Secret(members.required("password"))
        return cls(members.required("userId"), members.required("email"), password)
