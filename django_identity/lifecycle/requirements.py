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


def _denies(claim_type: str, said: Mapping[str, Any]) -> bool:
    """Whether the object denies the claim: not verified, or verified with the answer no."""
    if said.get("verified", True) is not True:
        return True
    members = policy.members_said(claim_type, said)
    return any(not member or str(member).strip().lower() == "false" for member in members)


@dataclass(frozen=True, slots=True)
class HeldClaim:
    """A stored claim. ``text``: what a gate with a value compares; ``affirms``: it says yes."""

    row: StoredClaim
    text: str
    affirms: bool

    @classmethod
    def of(cls, row: StoredClaim, *, application: str) -> Self:
        """The claim as the policy of ``application`` reads its value.

        The policy is not called for a value that denies. A value affirms if it is exactly ``true``,
        or an object whose ``verified`` or ``value`` is, and no member contradicts another.
        """
        said = row.value if isinstance(row.value, Mapping) else {"value": row.value}
        if _denies(row.claim_type, said):
            return cls(row, text="", affirms=False)
        is_yes = said.get("verified") is True or said.get("value") is True
        affirms = is_yes and not policy.contradicts_itself(row.claim_type, said)
        site = policy.load(conf.application(application).policy)
        text: object = site.claim_value(row.claim_type, row.value)
        return cls(row, text if isinstance(text, str) else "", affirms)

    @property
    def said(self) -> bool | str | None:
        """What a gate may require of the value: a text or ``True``. None if the claim is denied."""
        return self.text or self.affirms or None

    def is_proven(self, now: datetime) -> bool:
        """Whether a credential proves the claim, and it has not expired and is not revoked."""
        ends_at = self.row.valid_until
        return not self.row.revoked and ends_at is not None and now < ends_at

    def meets(self, requirement: Requirement, now: datetime) -> bool:
        """Whether the claim opens a gate with ``requirement``."""
        if self.row.claim_type != requirement.claim_type or not self.is_proven(now):
            return False
        return self.text == requirement.value if requirement.value else self.affirms
