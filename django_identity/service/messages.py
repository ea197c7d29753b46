"""The service's answers as frozen values. They are parsed and checked once."""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeGuard
from urllib.parse import urlsplit

from django_identity.conf.rules import may_be_plain
from django_identity.exceptions import MalformedAnswer, SubjectMismatch, shaped_code
from django_identity.service.moments import NotAMoment, parse_moment

LONGEST_TEXT = 1000
LONGEST_SUBJECT = 255
LONGEST_CODE = 64
LONGEST_CREDENTIAL = 128 * 1024
MOST_CLAIMS = 200
LONGEST_LIFETIME = 86_400.0
USUAL_LIFETIME = 3600.0
SUBJECTS = ("user_id", "sub")
# RFC 6749 appendix A.12, but without spaces, because a token goes into a header.
TOKEN = re.compile(r"[\x21-\x7e]{1,16384}")
# RFC 6749 appendix A.4, or empty. The limit of the length is our own.
SCOPE = re.compile(r"[\x20\x21\x23-\x5b\x5d-\x7e]{0,1000}")
COUNTRY = re.compile(r"[A-Z]{2}")
# Control characters and those that turn the direction of text: a name could hide or rewrite others.
CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
DIRECTION = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u206f]")
LONGEST_MASKED_PART = 40
LONGEST_URL = 2000
# RFC 3986: visible ASCII. The characters below are refused too.
URL = re.compile(r"[\x21-\x7e]+")
NEVER_IN_URLS = frozenset("\"'<>\\^`{|}")

Members = dict[str, Any]


@dataclass(frozen=True, slots=True)
class TokenAnswer:
    """``expires_in`` in seconds. ``scopes`` and ``subject`` are None if the answer lacks them."""

    access_token: str = field(repr=False)
    refresh_token: str | None = field(repr=False)
    expires_in: float
    scopes: tuple[str, ...] | None
    subject: str | None = field(repr=False)
    id_token: str = field(repr=False, default="")

    @classmethod
    def parse(cls, body: Members) -> TokenAnswer:
        """Raises ``MalformedAnswer``; ``SubjectMismatch`` if it names two subjects."""
        kind = body.get("token_type")
        if kind is not None and not (isinstance(kind, str) and kind.lower() == "bearer"):
            raise MalformedAnswer("token_type is not Bearer", endpoint="token")
        scope = body.get("scope")
        if scope is not None and not _is_scope(scope):
            raise MalformedAnswer("scope is not a usable text", endpoint="token")
        return cls._of(body)

    @classmethod
    def parse_refreshed(cls, body: Members) -> TokenAnswer:
        """As ``parse``, of the answer to a refresh: a usable pair is enough.

        The refresh token that was sent is spent by now, so what else is odd is left out.
        """
        odd = {name: None for name in SUBJECTS if not is_subject(body.get(name))}
        return cls._of({**body, **odd})

    @classmethod
    def _of(cls, body: Members) -> TokenAnswer:
        scope, id_token = body.get("scope"), body.get("id_token")
        has_refresh_token = body.get("refresh_token") is not None
        return cls(
            access_token=_token(body, "access_token"),
            refresh_token=_token(body, "refresh_token") if has_refresh_token else None,
            expires_in=_lifetime(body.get("expires_in")),
            scopes=tuple(scope.split()) if _is_scope(scope) else None,
            subject=named_subject(body, "token"),
            id_token=id_token if isinstance(id_token, str) else "",
        )


@dataclass(frozen=True, slots=True, repr=False)
class Profile:
    """The profile of a person. The site's policy gets it; the package does not store it.

    ``by_code``: only a Connect code says whose it is, and it may be another person's code.
    """

    id: str
    email: str = ""
    first_name: str = ""
    last_name: str = ""
    country: str = ""
    kyc_level: str = ""
    photo_url: str = ""
    risk_score: int | None = None
    by_code: bool = False

    @classmethod
    def parse(
        cls, body: Members, *, environment: str = "live", plain_hosts: Collection[str] = ()
    ) -> Profile:
        """Raises ``MalformedAnswer``."""
        country = text_of(body, "country", "profile", longest=LONGEST_CODE)
        return cls(
            id=subject_of(body.get("id"), "profile"),
            email=text_of(body, "email", "profile"),
            first_name=_name_of(body, "first_name"),
            last_name=_name_of(body, "last_name"),
            country=country if COUNTRY.fullmatch(country) else "",
            kyc_level=text_of(body, "kyc_level", "profile", longest=LONGEST_CODE),
            photo_url=safe_url(
                body.get("photo_url"), environment=environment, plain_hosts=plain_hosts
            ),
            risk_score=_whole_number(body, "risk_score", "profile"),
        )

    @classmethod
    def of_subject(cls, subject: str) -> Profile:
        """The profile without the scope profile:read: only the subject is known."""
        return cls(id=subject)

    def masked(self) -> str:
        """First name, initial and masked e-mail address, if known.

        At most 128 characters, enough to recognise a person: ``"Ada O., a***@example.org"``.
        """
        initial = f"{self.last_name[:1]}." if self.last_name else ""
        name = f"{self.first_name[:LONGEST_MASKED_PART]} {initial}".strip()
        return ", ".join(part for part in (name, _masked_address(self.email)) if part)


@dataclass(frozen=True, slots=True)
class KycStatus:
    """``subject``: the subject that the answer names, if any. The spec shows no such member."""

    kyc_level: str
    status: str
    provider: str
    verified_at: datetime | None
    subject: str | None = field(default=None, repr=False)

    @classmethod
    def parse(cls, body: Members) -> KycStatus:
        """Raises ``MalformedAnswer``; ``SubjectMismatch`` if it names two subjects."""
        return cls(
            kyc_level=text_of(body, "kyc_level", "kyc", longest=LONGEST_CODE),
            status=text_of(body, "status", "kyc", longest=LONGEST_CODE),
            provider=text_of(body, "provider", "kyc", longest=LONGEST_SUBJECT),
            verified_at=moment_of(body, "verified_at", "kyc"),
            subject=named_subject(body, "kyc"),
        )


@dataclass(frozen=True, slots=True)
class ListedClaim:
    """A claim in the list of the response, which does not prove it."""

    claim_type: str
    provider: str
    revoked: bool
    proof_hash: str
    expires_at: datetime | None

    @classmethod
    def parse(cls, body: Any) -> ListedClaim:
        if not isinstance(body, dict):
            raise MalformedAnswer("a claim is not an object", endpoint="claims")
        revoked = body.get("revoked")
        if not isinstance(revoked, bool | None):
            raise MalformedAnswer("revoked is not a boolean", endpoint="claims")
        claim_type = text_of(body, "claim_type", "claims", longest=128)
        if not claim_type:
            raise MalformedAnswer("a claim without a type", endpoint="claims")
        return cls(
            claim_type=claim_type,
            provider=text_of(body, "provider", "claims", longest=128),
            revoked=revoked is True,
            proof_hash=text_of(body, "proof_hash", "claims", longest=LONGEST_SUBJECT),
            expires_at=moment_of(body, "expires_at", "claims"),
        )


@dataclass(frozen=True, slots=True, repr=False)
class ClaimsAnswer:
    user_id: str
    claims: tuple[ListedClaim, ...]
    credential: str | None

    @classmethod
    def parse(cls, body: Members) -> ClaimsAnswer:
        """Raises ``MalformedAnswer``."""
        listed, credential = body.get("claims"), body.get("credential")
        if not isinstance(listed, list) or len(listed) > MOST_CLAIMS:
            raise MalformedAnswer("claims is not a list of usable length", endpoint="claims")
        if credential is not None and not (
            isinstance(credential, str) and len(credential) <= LONGEST_CREDENTIAL
        ):
            raise MalformedAnswer("credential is not a usable text", endpoint="claims")
        if body.get("credential_format") not in (None, "dc+sd-jwt"):
            raise MalformedAnswer("an unknown credential_format", endpoint="claims")
        return cls(
            user_id=subject_of(body.get("user_id"), "claims"),
            claims=tuple(ListedClaim.parse(claim) for claim in listed),
            credential=credential,
        )


@dataclass(frozen=True, slots=True)
class ClaimsVerdict:
    """The service's verdict on a credential. ``reason``: its code for why it is not valid.

    The specification does not show this answer. These members are the sandbox's.
    """

    valid: bool
    reason: str
    claims: Members = field(repr=False)

    @classmethod
    def parse(cls, body: Members) -> ClaimsVerdict:
        """Raises ``MalformedAnswer``."""
        valid, claims = body.get("valid"), body.get("claims")
        if not isinstance(valid, bool):
            raise MalformedAnswer("valid is not a boolean", endpoint="verify_claims")
        if not isinstance(claims, dict | None):
            raise MalformedAnswer("claims is not an object", endpoint="verify_claims")
        return cls(valid, shaped_code(body.get("reason")), claims or {})


def subject_of(value: object, endpoint: str) -> str:
    """Return ``value`` if it is a subject: opaque text of 1 to 255 characters.

    It must be storable and usable as a path segment, so ``.`` and ``..`` are refused.
    """
    if not isinstance(value, str) or not 0 < len(value) <= LONGEST_SUBJECT:
        raise MalformedAnswer("a subject that is not a usable text", endpoint=endpoint)
    if value in (".", "..") or not value.isprintable():
        raise MalformedAnswer("a subject that cannot be quoted", endpoint=endpoint)
    return value


def named_subject(body: Members, endpoint: str) -> str | None:
    """The subject that the answer names, or None. Raises ``SubjectMismatch`` if it names two."""
    given = [body[name] for name in SUBJECTS if body.get(name) is not None]
    named = {subject_of(value, endpoint) for value in given}
    if len(named) > 1:
        raise SubjectMismatch("names two subjects", endpoint=endpoint)
    return named.pop() if named else None


def is_subject(value: object) -> bool:
    """Whether ``value`` is a valid subject by the rules of ``subject_of``."""
    try:
        subject_of(value, "")
    except MalformedAnswer:
        return False
    return True


def _is_scope(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and SCOPE.fullmatch(value) is not None


def _token(body: Members, name: str) -> str:
    token = body.get(name)
    if not isinstance(token, str) or not TOKEN.fullmatch(token):
        raise MalformedAnswer(f"no usable {name}", endpoint="token")
    return token


def _lifetime(given: object) -> float:
    """Seconds, of a number or of a text that is one; zero for a past one, an hour for no number."""
    try:
        seconds = float(given) if isinstance(given, (int, float, str)) else math.nan
    except (ValueError, OverflowError):
        seconds = math.nan
    if isinstance(given, bool) or math.isnan(seconds):
        return USUAL_LIFETIME
    return min(max(seconds, 0.0), LONGEST_LIFETIME)


def text_of(body: Members, name: str, endpoint: str, *, longest: int = LONGEST_TEXT) -> str:
    """A text member, or an empty text if it is absent or null."""
    value = body.get(name)
    if value is None:
        return ""
    # PostgreSQL cannot store NUL. The JSON reader has refused lone surrogates already.
    if not isinstance(value, str) or len(value) > longest or "\0" in value:
        raise MalformedAnswer(f"{name} is not a usable text", endpoint=endpoint)
    return value


def _whole_number(body: Members, name: str, endpoint: str) -> int | None:
    """A whole number, or None if it is absent or null."""
    value = body.get(name)
    if value is not None and type(value) is not int:
        raise MalformedAnswer(f"{name} is not a whole number", endpoint=endpoint)
    return value


def safe_url(given: object, *, environment: str, plain_hosts: Collection[str] = ()) -> str:
    """``given`` if a page may show it, else empty: https; this machine, ``plain_hosts`` in test."""
    if not isinstance(given, str) or not URL.fullmatch(given) or NEVER_IN_URLS & {*given}:
        return ""
    try:
        parts = urlsplit(given)
    except ValueError:
        return ""
    is_plain = parts.scheme == "http" and may_be_plain(parts.hostname, environment, plain_hosts)
    is_safe = parts.scheme == "https" or is_plain
    is_whole = len(given) <= LONGEST_URL and parts.hostname and parts.username is None
    return given if is_safe and is_whole else ""


def _name_of(body: Members, name: str) -> str:
    """A person's name on one line, without control and direction characters."""
    text = text_of(body, name, "profile")
    return " ".join(DIRECTION.sub("", CONTROL.sub(" ", text)).split())


def _masked_address(email: str) -> str:
    local, _, domain = email.rpartition("@")
    if not local or not domain or not email.isprintable() or len(domain) > LONGEST_MASKED_PART:
        return ""
    return f"{local[0] if len(local) > 1 else ''}***@{domain}"


def moment_of(body: Members, name: str, endpoint: str) -> datetime | None:
    """An ISO 8601 time-stamp. Without a zone it is UTC, as in the spec."""
    text = text_of(body, name, endpoint, longest=LONGEST_CODE)
    if not text:
        return None
    try:
        return parse_moment(text, takes_days=True)
    except NotAMoment:
        raise MalformedAnswer(f"{name} is not a time", endpoint=endpoint) from None
