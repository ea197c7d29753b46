"""The answers about a person: tokens, profile and KYC status."""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeGuard

from django_identity.exceptions import MalformedAnswer
from django_identity.service.answers import members

LONGEST_LIFETIME = 86_400.0
USUAL_LIFETIME = 3600.0
# RFC 6749 appendix A.12, but without spaces, because a token goes into a header.
TOKEN = re.compile(r"[\x21-\x7e]{1,16384}")
# RFC 6749 appendix A.4, or empty. The limit of the length is our own.
SCOPE = re.compile(r"[\x20\x21\x23-\x5b\x5d-\x7e]{0,1000}")
COUNTRY = re.compile(r"[A-Z]{2}")
# Control characters and those that turn the direction of text: a name could hide or rewrite others.
CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
DIRECTION = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u206f]")
LONGEST_MASKED_PART = 40


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
    def parse(cls, body: members.Members) -> TokenAnswer:
        """Raises ``MalformedAnswer``; ``SubjectMismatch`` if it names two subjects."""
        kind = body.get("token_type")
        if kind is not None and not (isinstance(kind, str) and kind.lower() == "bearer"):
            raise MalformedAnswer("token_type is not Bearer", endpoint="token")
        scope = body.get("scope")
        if scope is not None and not _is_scope(scope):
            raise MalformedAnswer("scope is not a usable text", endpoint="token")
        return cls._of(body)

    @classmethod
    def parse_refreshed(cls, body: members.Members) -> TokenAnswer:
        """As ``parse``, of the answer to a refresh: a usable pair is enough.

        The refresh token that was sent is spent by now, so what else is odd is left out.
        """
        odd = {name: None for name in members.SUBJECTS if not members.is_subject(body.get(name))}
        return cls._of({**body, **odd})

    @classmethod
    def _of(cls, body: members.Members) -> TokenAnswer:
        scope, id_token = body.get("scope"), body.get("id_token")
        has_refresh_token = body.get("refresh_token") is not None
        return cls(
            access_token=_token(body, "access_token"),
            refresh_token=_token(body, "refresh_token") if has_refresh_token else None,
            expires_in=_lifetime(body.get("expires_in")),
            scopes=tuple(scope.split()) if _is_scope(scope) else None,
            subject=members.named_subject(body, "token"),
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
        cls, body: members.Members, *, environment: str = "live", plain_hosts: Collection[str] = ()
    ) -> Profile:
        country = members.text_of(body, "country", "profile", longest=members.LONGEST_CODE)
        risk_score = body.get("risk_score")
        if risk_score is not None and type(risk_score) is not int:
            raise MalformedAnswer("risk_score is not a whole number", endpoint="profile")
        return cls(
            id=members.subject_of(body.get("id"), "profile"),
            email=members.text_of(body, "email", "profile"),
            first_name=_name_of(body, "first_name"),
            last_name=_name_of(body, "last_name"),
            country=country if COUNTRY.fullmatch(country) else "",
            kyc_level=members.text_of(body, "kyc_level", "profile", longest=members.LONGEST_CODE),
            photo_url=members.safe_url(
                body.get("photo_url"), environment=environment, plain_hosts=plain_hosts
            ),
            risk_score=risk_score,
        )

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
    def parse(cls, body: members.Members) -> KycStatus:
        """Raises ``MalformedAnswer``; ``SubjectMismatch`` if it names two subjects."""
        return cls(
            kyc_level=members.text_of(body, "kyc_level", "kyc", longest=members.LONGEST_CODE),
            status=members.text_of(body, "status", "kyc", longest=members.LONGEST_CODE),
            provider=members.text_of(body, "provider", "kyc", longest=members.LONGEST_SUBJECT),
            verified_at=members.moment_of(body, "verified_at", "kyc"),
            subject=members.named_subject(body, "kyc"),
        )


def _is_scope(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and SCOPE.fullmatch(value) is not None


def _token(body: members.Members, name: str) -> str:
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


def _name_of(body: members.Members, name: str) -> str:
    """A person's name on one line, without control and direction characters."""
    text = members.text_of(body, name, "profile")
    return " ".join(DIRECTION.sub("", CONTROL.sub(" ", text)).split())


def _masked_address(email: str) -> str:
    local, _, domain = email.rpartition("@")
    if not local or not domain or not email.isprintable() or len(domain) > LONGEST_MASKED_PART:
        return ""
    return f"{local[0] if len(local) > 1 else ''}***@{domain}"
