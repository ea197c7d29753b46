"""The service's answers as frozen values, parsed and bounded once.

Each ``parse`` raises ``MalformedAnswer`` for what it cannot use. The specification shows neither
the members of documents nor those of ``/claims/verify``: these are the sandbox's.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NoReturn, Self

from django_identity.secrets import Secret
from django_identity.service.members import (
    LONGEST_CODE,
    LONGEST_NAME,
    LONGEST_SUBJECT,
    SUBJECTS,
    Members,
    is_subject,
    safe_url,
)

LONGEST_LIFETIME = 86_400.0
USUAL_LIFETIME = 3600.0
LONGEST_CREDENTIAL = 128 * 1024
MOST_CLAIMS = 200
MOST_DOCUMENTS = 20
# For all documents of an answer together. One alone is limited when it is opened.
LARGEST_DOCUMENTS = 24 * 1024 * 1024
# RFC 6749 appendix A.4, or empty. The limit of the length is our own.
SCOPE = re.compile(r"[\x20\x21\x23-\x5b\x5d-\x7e]{0,1000}")


@dataclass(frozen=True, slots=True)
class TokenAnswer:
    """``expires_in`` in seconds. ``scopes`` and ``subject`` are None if the answer lacks them."""

    access_token: Secret
    refresh_token: Secret | None
    expires_in: float
    scopes: tuple[str, ...] | None
    subject: str | None = field(repr=False)
    id_token: Secret | None = None

    @classmethod
    def parse(cls, body: Mapping[str, Any]) -> Self:
        """Raises ``MalformedAnswer``; ``SubjectMismatch`` if it names two subjects."""
        kind, scope, read = body.get("token_type"), body.get("scope"), Members(body, "token")
        read.require(kind is None or str(kind).lower() == "bearer", "token_type is not Bearer")
        read.require(scope is None or _is_scope(scope), "scope is not a usable text")
        has_refresh_token = body.get("refresh_token") is not None
        id_token = body.get("id_token")
        return cls(
            access_token=read.token("access_token"),
            refresh_token=read.token("refresh_token") if has_refresh_token else None,
            expires_in=_lifetime(body.get("expires_in")),
            scopes=None if scope is None else tuple(scope.split()),
            subject=read.named_subject(),
            id_token=Secret(id_token) if isinstance(id_token, str) else None,
        )

    @classmethod
    def parse_refreshed(cls, body: Mapping[str, Any]) -> Self:
        """As ``parse``, of the answer to a refresh: a usable pair is enough.

        The refresh token that was sent is spent by now, so what else is odd is left out.
        """
        odd = {name for name in SUBJECTS if not is_subject(body.get(name))} | {"token_type"}
        odd |= set() if _is_scope(body.get("scope")) else {"scope"}
        return cls.parse({**body, **dict.fromkeys(odd)})


def _is_scope(value: object) -> bool:
    return isinstance(value, str) and SCOPE.fullmatch(value) is not None


def _lifetime(given: object) -> float:
    """Seconds: zero for a past one, an hour for no number."""
    seconds = _number(given)
    return USUAL_LIFETIME if seconds is None else min(max(seconds, 0.0), LONGEST_LIFETIME)


def _number(given: object) -> float | None:
    """A number, or a text that is one."""
    try:
        number = float(given) if isinstance(given, (int, float, str)) else math.nan
    except (ValueError, OverflowError):
        return None
    return None if isinstance(given, bool) or math.isnan(number) else number


@dataclass(frozen=True, slots=True, repr=False)
class Profile:
    """The profile of a person. The site's policy gets it; the package does not store it.

    ``risk_score``: the number, also of a text that is one, else None. ``by_code``: only a Connect
    code says whose profile it is, and the code may be another person's.
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
    def parse(cls, body: Mapping[str, Any], *, environment: str = "live") -> Self:
        read = Members(body, "profile")
        country = read.text("country", longest=LONGEST_CODE)
        return cls(
            id=read.subject("id"),
            email=read.text("email"),
            first_name=read.name("first_name"),
            last_name=read.name("last_name"),
            country=country if re.fullmatch("[A-Z]{2}", country) else "",
            kyc_level=read.text("kyc_level", longest=LONGEST_CODE),
            photo_url=safe_url(body.get("photo_url"), environment=environment),
            risk_score=_number(body.get("risk_score")),
        )


@dataclass(frozen=True, slots=True)
class KycStatus:
    """``subject``: the subject that the answer names, if any. The spec shows no such member."""

    kyc_level: str
    status: str
    provider: str
    verified_at: datetime | None
    subject: str | None = field(default=None, repr=False)

    @classmethod
    def parse(cls, body: Mapping[str, Any]) -> Self:
        """Raises ``MalformedAnswer``; ``SubjectMismatch`` if it names two subjects."""
        read = Members(body, "kyc")
        return cls(
            kyc_level=read.text("kyc_level", longest=LONGEST_CODE),
            status=read.text("status", longest=LONGEST_CODE),
            provider=read.text("provider", longest=LONGEST_SUBJECT),
            verified_at=read.moment("verified_at"),
            subject=read.named_subject(),
        )


@dataclass(frozen=True, slots=True)
class ListedClaim:
    """A claim in the list of the answer, which does not prove it."""

    claim_type: str
    provider: str
    revoked: bool
    proof_hash: str
    expires_at: datetime | None

    @classmethod
    def parse(cls, read: Members) -> Self:
        revoked = read.body.get("revoked")
        read.require(isinstance(revoked, bool | None), "revoked is not a boolean")
        return cls(
            claim_type=read.required("claim_type", longest=LONGEST_NAME),
            provider=read.text("provider", longest=LONGEST_NAME),
            revoked=revoked is True,
            proof_hash=read.text("proof_hash", longest=LONGEST_SUBJECT),
            expires_at=read.moment("expires_at"),
        )


@dataclass(frozen=True, slots=True, repr=False)
class ClaimsAnswer:
    """The claims of ``user_id``. The ``credential`` proves those that it discloses."""

    user_id: str
    claims: tuple[ListedClaim, ...]
    credential: str | None

    @classmethod
    def parse(cls, body: Mapping[str, Any]) -> Self:
        read, has_one = Members(body, "claims"), body.get("credential") is not None
        is_known = body.get("credential_format") in (None, "dc+sd-jwt")
        read.require(is_known, "an unknown credential_format")
        return cls(
            user_id=read.subject("user_id"),
            claims=tuple(map(ListedClaim.parse, read.listed("claims", most=MOST_CLAIMS))),
            credential=read.exact("credential", longest=LONGEST_CREDENTIAL) if has_one else None,
        )


@dataclass(frozen=True, slots=True, repr=False)
class Document:
    """A document. Its ``repr`` shows nothing, and it cannot be pickled into a cache.

    ``content``: in the answer a compact JWE, or empty where only metadata was asked for.
    ``content_type``: what the content says to be.
    """

    document_type: str
    document_id: str = ""
    country: str = ""
    status: str = ""
    content_type: str = ""
    content: bytes = b""

    @classmethod
    def parse_all(cls, body: Mapping[str, Any]) -> tuple[Self, ...]:
        return tuple(
            cls(
                document_type=each.required("document_type", longest=LONGEST_CODE),
                document_id=each.text("document_id", longest=LONGEST_SUBJECT),
                country=each.text("country", longest=LONGEST_CODE),
                status=each.text("status", longest=LONGEST_CODE),
                content_type=each.text("content_type", longest=LONGEST_CODE),
                content=each.exact("content", longest=LARGEST_DOCUMENTS).encode(),
            )
            for each in Members(body, "documents").listed("documents", most=MOST_DOCUMENTS)
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
    def parse(cls, body: Mapping[str, Any]) -> Self:
        read = Members(body, "rotate_secret")
        secret = Secret(read.required("clientSecret"))
        return cls(read.required("mode"), read.required("clientId"), secret)


@dataclass(frozen=True, slots=True, repr=False)
class NewTestUser:
    """A new sandbox user."""

    user_id: str
    email: str
    password: Secret

    @classmethod
    def parse(cls, body: Mapping[str, Any]) -> Self:
        read = Members(body, "test_users")
        password = Secret(read.required("password"))
        return cls(read.required("userId"), read.required("email"), password)
