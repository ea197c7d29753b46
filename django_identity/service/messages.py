"""The service's answers as frozen values. They are parsed and checked once."""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from django_identity.conf_rules import is_loopback
from django_identity.exceptions import MalformedAnswer, SubjectMismatch
from django_identity.service.moments import bounded
from django_identity.strict_json import NotStrictJSON, read_object

LONGEST_TEXT = 1000
LONGEST_SUBJECT = 255
LONGEST_CODE = 64
LONGEST_CREDENTIAL = 128 * 1024
MOST_CLAIMS = 200
LONGEST_LIFETIME = 86_400.0
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
# RFC 3986: visible ASCII, without what no address holds.
URL = re.compile(r"[\x21-\x7e]+")
NEVER_IN_URLS = frozenset("\"'<>\\^`{|}")

Members = dict[str, Any]


@dataclass(frozen=True, slots=True)
class TokenAnswer:
    """``expires_in`` in seconds. ``scopes``: None if the service did not say; so ``subject``."""

    access_token: str = field(repr=False)
    refresh_token: str | None = field(repr=False)
    expires_in: float
    scopes: tuple[str, ...] | None
    subject: str | None = field(repr=False)

    @classmethod
    def parse(cls, body: Members) -> TokenAnswer:
        """Raises ``MalformedAnswer``; ``SubjectMismatch`` if it names two subjects."""
        kind = body.get("token_type", "Bearer")
        if not isinstance(kind, str) or kind.lower() != "bearer":
            raise MalformedAnswer("token_type is not Bearer", endpoint="token")
        scope = body.get("scope")
        if scope is not None and not (isinstance(scope, str) and SCOPE.fullmatch(scope)):
            raise MalformedAnswer("scope is not a usable text", endpoint="token")
        access_token = _token(body, "access_token")
        has_refresh_token = body.get("refresh_token") is not None
        return cls(
            access_token=access_token,
            refresh_token=_token(body, "refresh_token") if has_refresh_token else None,
            expires_in=_lifetime(body.get("expires_in")),
            scopes=None if scope is None else tuple(scope.split()),
            subject=_named_subject(body, access_token),
        )


@dataclass(frozen=True, slots=True, repr=False)
class Profile:
    """The profile of a person. The site's policy gets it; the package does not store it."""

    id: str
    email: str = ""
    first_name: str = ""
    last_name: str = ""
    country: str = ""
    kyc_level: str = ""
    photo_url: str = ""

    @classmethod
    def parse(cls, body: Members, *, environment: str = "live") -> Profile:
        """Raises ``MalformedAnswer``."""
        country = text_of(body, "country", "profile", longest=LONGEST_CODE)
        return cls(
            id=subject_of(body.get("id"), "profile"),
            email=text_of(body, "email", "profile", longest=254),
            first_name=_name_of(body, "first_name"),
            last_name=_name_of(body, "last_name"),
            country=country if COUNTRY.fullmatch(country) else "",
            kyc_level=text_of(body, "kyc_level", "profile", longest=LONGEST_CODE),
            photo_url=safe_url(body.get("photo_url"), environment=environment),
        )

    @classmethod
    def of_subject(cls, subject: str) -> Profile:
        """The profile without the scope profile:read: only the subject is known."""
        return cls(id=subject)

    def masked(self) -> str:
        """First name, initial and masked e-mail address, as far as they are known.

        Enough to recognise somebody by, at most 128 characters: ``"Ada O., a***@example.org"``.
        """
        initial = f"{self.last_name[:1]}." if self.last_name else ""
        name = f"{self.first_name[:LONGEST_MASKED_PART]} {initial}".strip()
        return ", ".join(part for part in (name, _masked_address(self.email)) if part)


@dataclass(frozen=True, slots=True)
class KycStatus:
    kyc_level: str
    status: str
    provider: str
    verified_at: datetime | None

    @classmethod
    def parse(cls, body: Members) -> KycStatus:
        """Raises ``MalformedAnswer``."""
        return cls(
            kyc_level=text_of(body, "kyc_level", "kyc", longest=LONGEST_CODE),
            status=text_of(body, "status", "kyc", longest=LONGEST_CODE),
            provider=text_of(body, "provider", "kyc", longest=LONGEST_SUBJECT),
            verified_at=moment_of(body, "verified_at", "kyc"),
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
        revoked = body.get("revoked", False)
        if not isinstance(revoked, bool):
            raise MalformedAnswer("revoked is not a boolean", endpoint="claims")
        claim_type = text_of(body, "claim_type", "claims", longest=128)
        if not claim_type:
            raise MalformedAnswer("a claim without a type", endpoint="claims")
        return cls(
            claim_type=claim_type,
            provider=text_of(body, "provider", "claims", longest=128),
            revoked=revoked,
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
        if body.get("credential_format", "dc+sd-jwt") != "dc+sd-jwt":
            raise MalformedAnswer("an unknown credential_format", endpoint="claims")
        return cls(
            user_id=subject_of(body.get("user_id"), "claims"),
            claims=tuple(ListedClaim.parse(claim) for claim in listed),
            credential=credential,
        )


def subject_of(value: object, endpoint: str) -> str:
    """Return ``value`` if it is a subject: opaque text of 1 to 255 characters.

    It must be storable and usable as a path segment, so ``.`` and ``..`` are refused.
    """
    if not isinstance(value, str) or not 0 < len(value) <= LONGEST_SUBJECT:
        raise MalformedAnswer("a subject that is not a usable text", endpoint=endpoint)
    if value in (".", "..") or not value.isprintable():
        raise MalformedAnswer("a subject that cannot be quoted", endpoint=endpoint)
    return value


def _named_subject(body: Members, access_token: str) -> str | None:
    """Who the token answer is about: its own word, an ``id_token``'s, or a JWT access token's.

    The tokens came over the service's own TLS channel, so they need no signature check here
    (OpenID Connect Core §3.1.3.7, point 6).
    """
    named = [body[name] for name in ("user_id", "sub") if name in body]
    named += [claims["sub"] for claims in _jwt_claims(body.get("id_token")) if "sub" in claims]
    named += [claims["sub"] for claims in _jwt_claims(access_token) if "sub" in claims]
    subjects = [subject_of(value, "token") for value in named]
    if len(set(subjects)) > 1:
        raise SubjectMismatch("names two subjects", endpoint="token")
    return subjects[0] if subjects else None


def _jwt_claims(token: object) -> list[Members]:
    """The claims of a JWT, as a list of one; empty for anything that is not a JWT."""
    if not isinstance(token, str) or token.count(".") != 2:
        return []
    payload = token.split(".")[1]
    try:
        return [read_object(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))]
    except (binascii.Error, ValueError, NotStrictJSON):
        return []


def _token(body: Members, name: str) -> str:
    token = body.get(name)
    if not isinstance(token, str) or not TOKEN.fullmatch(token):
        raise MalformedAnswer(f"no usable {name}", endpoint="token")
    return token


def _lifetime(seconds: object) -> float:
    is_number = isinstance(seconds, (int, float)) and not isinstance(seconds, bool)
    if not is_number or not 0 < seconds < 10**10:  # type: ignore[operator]  # a number by now
        raise MalformedAnswer("no usable expires_in", endpoint="token")
    return min(float(seconds), LONGEST_LIFETIME)  # type: ignore[arg-type]  # a number by now


def text_of(body: Members, name: str, endpoint: str, *, longest: int = LONGEST_TEXT) -> str:
    """A text member, or an empty text if it is absent or null."""
    value = body.get(name)
    if value is None:
        return ""
    if not isinstance(value, str) or len(value) > longest or not _is_storable(value):
        raise MalformedAnswer(f"{name} is not a usable text", endpoint=endpoint)
    return value


def safe_url(given: object, *, environment: str) -> str:
    """``given`` if a page may show it, else empty: https, or this machine outside live."""
    if not isinstance(given, str) or not URL.fullmatch(given) or NEVER_IN_URLS & {*given}:
        return ""
    try:
        parts = urlsplit(given)
    except ValueError:
        return ""
    may_be_plain = environment != "live" and is_loopback(parts.hostname)
    is_safe = parts.scheme == "https" or (parts.scheme == "http" and may_be_plain)
    is_whole = len(given) <= LONGEST_URL and parts.hostname and parts.username is None
    return given if is_safe and is_whole else ""


def _name_of(body: Members, name: str) -> str:
    """A person's name on one line, without characters that hide or turn what stands beside it."""
    text = text_of(body, name, "profile")
    return " ".join(DIRECTION.sub("", CONTROL.sub(" ", text)).split())


def _masked_address(email: str) -> str:
    local, _, domain = email.rpartition("@")
    if not local or not domain or not email.isprintable() or len(domain) > LONGEST_MASKED_PART:
        return ""
    return f"{local[0] if len(local) > 1 else ''}***@{domain}"


def _is_storable(value: str) -> bool:
    """PostgreSQL cannot store NUL, and no database can store half a surrogate pair."""
    return "\0" not in value and not any("\ud800" <= character <= "\udfff" for character in value)


def moment_of(body: Members, name: str, endpoint: str) -> datetime | None:
    """An ISO 8601 time-stamp. Without a zone it is UTC, as in the spec."""
    text = text_of(body, name, endpoint, longest=LONGEST_CODE)
    if not text:
        return None
    try:
        return bounded(datetime.fromisoformat(text))
    except ValueError:
        raise MalformedAnswer(f"{name} is not a time", endpoint=endpoint) from None
