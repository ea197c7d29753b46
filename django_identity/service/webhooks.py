"""Check the signature of a webhook delivery and parse its content. Pure functions."""

import hashlib
import hmac
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Self

from django_identity.exceptions import EventRefused, MalformedAnswer
from django_identity.handlers import CLAIM_TYPES, KNOWN_TYPES, KYC_TYPES, EventType, canonical
from django_identity.secrets import Secret
from django_identity.service.answers import KycStatus
from django_identity.service.members import LONGEST_CODE, LONGEST_NAME, LONGEST_SUBJECT, Members
from django_identity.service.moments import NotAMoment, parse_moment
from django_identity.strict_json import NotStrictJSON, read_object

ENDPOINT = "webhook"
LARGEST_BODY = 256 * 1024
DEEPEST = 16
# An escaped NUL: databases cannot store it. The JSON reader refuses a NUL as it is.
NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")
SUBJECTS = ("user_id", "userId", "sub")
OF_KYC = ("kyc_level", "status", "provider")
VERIFIED = "verified"
REJECTED = "rejected"


@dataclass(frozen=True, slots=True)
class NamedClaim:
    """The claim that a claim event names. An empty provider or type means every one."""

    claim_type: str = ""
    provider: str = ""

    @classmethod
    def parse(cls, content: Mapping[str, Any]) -> Self:
        """A provider without a type names nothing. Raises ``MalformedAnswer``."""
        read = Members(content, ENDPOINT)
        claim_type = read.text("claim_type", longest=LONGEST_NAME)
        provider = read.text("provider", longest=LONGEST_NAME)
        return cls(claim_type, provider if claim_type else "")


@dataclass(frozen=True, slots=True)
class Event:
    """The content of one delivery. ``content`` is the event's ``data``.

    ``subject`` is empty if the event names nobody.
    """

    event_id: str = field(repr=False)
    event_type: str
    occurred_at: datetime
    subject: str = field(repr=False)
    content: Mapping[str, Any] = field(repr=False)

    @classmethod
    def parse(cls, body: bytes) -> "Event":
        """Parse ``body``. Raises ``EventRefused``, which has only the digest of the body."""
        try:
            if NUL.search(body):
                raise NotStrictJSON("has a NUL character")
            return _event(read_object(body, deepest=DEEPEST))
        except (NotStrictJSON, NotAMoment, MalformedAnswer) as error:
            detail = f"{error} (body {hashlib.sha256(body).hexdigest()})"
            raise EventRefused(detail) from None


def is_signed(body: bytes, *, signature: str, secrets: Iterable[Secret]) -> bool:
    """Whether ``signature`` is the HMAC of ``body`` with one of ``secrets``.

    All secrets are tried in any case, so that the time does not disclose which one fits.
    """
    given, fits = signature.encode("utf-8", "surrogatepass"), False
    for secret in secrets:
        expected = hmac.new(secret.reveal().encode(), body, hashlib.sha256).hexdigest().encode()
        fits |= hmac.compare_digest(expected, given)
    return fits


def kyc_in(content: Mapping[str, Any], event_type: str) -> KycStatus:
    """The level in the data of a KYC event. Missing members are empty. Raises ``MalformedAnswer``.

    A rejection that calls itself verified stays a rejection.
    """
    stated = KycStatus.parse({name: content.get(name) for name in OF_KYC})
    status = VERIFIED if content.get("status") is None else stated.status
    is_rejection = event_type == EventType.KYC_REJECTED and status == VERIFIED
    return replace(stated, status=REJECTED if is_rejection else status)


def _event(members: dict[str, Any]) -> Event:
    read = Members(members, ENDPOINT)
    event_type = canonical(read.required("event_type", longest=LONGEST_CODE))
    occurred_at = parse_moment(read.required("timestamp", longest=LONGEST_CODE))
    content = members.get("data")
    if not isinstance(content, dict):
        raise read.wrong("data is not an object")
    # An event whose effect cannot be read is refused before it is stored.
    if event_type in KYC_TYPES:
        kyc_in(content, event_type)
    if event_type in CLAIM_TYPES:
        NamedClaim.parse(content)
    return Event(
        event_id=read.required("event_id", longest=LONGEST_SUBJECT),
        event_type=event_type,
        occurred_at=occurred_at,
        subject=_subject(content, is_known_type=event_type in KNOWN_TYPES),
        content=content,
    )


def _subject(content: Mapping[str, Any], *, is_known_type: bool) -> str:
    """The subject, from the members of ``SUBJECTS``, which must agree. Empty: it names nobody.

    Raises ``MalformedAnswer``.
    """
    named = {name: content[name] for name in SUBJECTS if content.get(name) not in (None, "")}
    if not is_known_type and not all(isinstance(value, str) for value in named.values()):
        return ""
    return Members(named, ENDPOINT).named_subject(SUBJECTS) or ""
