"""What a gate may require of a claim, and what a stored claim says: proven, it can still be false.

``"age_over_18"`` requires yes, ``"country_resident=NG"`` requires a text.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

from django.core.exceptions import ImproperlyConfigured

from django_identity import conf, policy
from django_identity.models import StoredClaim


@dataclass(frozen=True, slots=True)
class Requirement:
    """A claim that a gate requires, and its required value. Without a value it must be true."""

    claim_type: str
    value: str = ""

    @classmethod
    def parse(cls, text: str) -> Self:
        """``"age_over_18"`` or ``"country_resident=NG"``. Raises ``ImproperlyConfigured``."""
        require_text(text, "what a gate asks for")
        claim_type, asks_value, value = text.partition("=")
        require_text(claim_type, "a claim's name")
        if asks_value:
            require_text(value, "a claim's value")
        return cls(claim_type, value)

    def __str__(self) -> str:
        return f"{self.claim_type}={self.value}" if self.value else self.claim_type


def require_text(given: object, what: str) -> None:
    """Raises ``ImproperlyConfigured`` unless ``given`` is non-empty text."""
    if not isinstance(given, str) or not given.strip():
        raise ImproperlyConfigured(f"{what} must be non-empty text")


def text_in(claim_type: str, value: Any, *, application: str) -> str:
    """The text that a gate with a value compares. Empty if there is none, or a denial.

    The policy of ``application`` reads it. The policy is not called for a value that denies.
    """
    is_object = isinstance(value, Mapping)
    if value is None or value is False or (is_object and _denies(claim_type, value)):
        return ""
    text = policy.load(conf.application(application).policy).claim_value(claim_type, value)
    return text if isinstance(text, str) else ""


def affirms(claim_type: str, value: Any) -> bool:
    """Whether the value opens a gate without a value.

    It is exactly ``true``, or an object whose ``verified`` or ``value`` is, and no member of which
    denies the claim or contradicts another.
    """
    if not isinstance(value, Mapping):
        return value is True
    if _denies(claim_type, value) or policy.contradicts_itself(claim_type, value):
        return False
    return value.get("verified") is True or value.get("value") is True


def said(claim_type: str, value: Any, *, application: str) -> bool | str | None:
    """What a gate may require of the value: a text or ``True``. None if the claim is denied."""
    text = text_in(claim_type, value, application=application)
    return text or (True if affirms(claim_type, value) else None)


def _denies(claim_type: str, value: Mapping[str, Any]) -> bool:
    """Whether the object denies the claim: not verified, or verified with the answer no."""
    if "verified" in value and value["verified"] is not True:
        return True
    members = policy.members_said(claim_type, value)
    return any(not member or str(member).strip().lower() == "false" for member in members)


@dataclass(frozen=True, slots=True)
class HeldClaim:
    """A stored claim. ``text``: what a gate with a value compares; ``affirms``: it says yes."""

    claim_type: str
    provider: str
    valid_until: datetime | None
    revoked: bool
    text: str
    affirms: bool

    @classmethod
    def of(cls, row: StoredClaim, *, application: str) -> Self:
        """The claim as the policy of ``application`` reads its value."""
        return cls(
            claim_type=row.claim_type,
            provider=row.provider,
            valid_until=row.valid_until,
            revoked=row.revoked,
            text=text_in(row.claim_type, row.value, application=application),
            affirms=affirms(row.claim_type, row.value),
        )

    def is_proven(self, now: datetime) -> bool:
        """Whether a credential proves the claim, and it has not expired and is not revoked."""
        return not self.revoked and self.valid_until is not None and now < self.valid_until

    def meets(self, requirement: Requirement, now: datetime) -> bool:
        """Whether the claim opens a gate with ``requirement``."""
        if self.claim_type != requirement.claim_type or not self.is_proven(now):
            return False
        return self.text == requirement.value if requirement.value else self.affirms
