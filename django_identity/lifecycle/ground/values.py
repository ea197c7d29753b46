"""What the value of a stored claim says. A proven claim may still deny."""

import json
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from datetime import datetime
from typing import Self

from django_identity import policy
from django_identity.models import StoredClaim
from django_identity.models.choices import NEVER
from django_identity.requirements import CLAIMS, RequiredClaim
from django_identity.service.members import LONGEST_NAME
from django_identity.service.moments import NotAMoment, parse_moment
from django_identity.service.webhooks import VERIFIED
from django_identity.strict_json import JSONObject

#: Claims whose text would be an answer in words, such as "no".
YES_OR_NO = frozenset(CLAIMS) - policy.NOUNS.keys()


@dataclass(frozen=True, slots=True, repr=False)
class ClaimValue:
    """A stored claim as a gate reads it.

    ``text``: what a gate with a value compares; ``affirms``: whether the claim says yes.
    """

    row: StoredClaim
    text: str
    affirms: bool

    @classmethod
    def of(cls, row: StoredClaim) -> Self:
        """The claim as the policy reads its value.

        The policy is called for affirming values alone.
        """
        members = row.value
        if not isinstance(members, Mapping):
            members = {"verified": True, "value": row.value}
        if _denies(row.claim_type, members):
            return cls(row, text="", affirms=False)
        # A copy: what a policy writes into it changes nothing.
        value = deepcopy(row.value)
        text: object = policy.of_site().claim_value(row.claim_type, value)
        if not isinstance(text, str) or row.claim_type in YES_OR_NO:
            text = ""
        return cls(row, text, affirms=_affirms(row.claim_type, members))

    @property
    def shown(self) -> bool | str | None:
        """The text, else ``True``. None if the claim is denied."""
        if self.text:
            return self.text
        if self.affirms:
            return True
        return None

    def is_proven(self, now: datetime) -> bool:
        """Whether a credential proves the claim, and it has not expired and is not revoked."""
        ends_at = self.row.valid_until
        if ends_at is None or self.row.revoked:
            return False
        return now < ends_at

    def meets(self, requirement: RequiredClaim, now: datetime) -> bool:
        """Whether the claim opens a gate with ``requirement``."""
        if self.row.claim_type != requirement.claim_type or not self.is_proven(now):
            return False
        if requirement.values:
            return self.text in requirement.values
        return self.affirms


def _affirms(claim_type: str, members: JSONObject) -> bool:
    """Whether a gate without a value opens. Denials have many spellings: anything but yes is one.

    Only the claim's own noun may be a text, because there it says which.
    """
    noun = policy.NOUNS.get(claim_type, "")
    for name in ("value", claim_type, noun):
        said = members.get(name, True)
        if name == noun and isinstance(said, str):
            continue
        if said is not True:
            return False
    return members.get("verified") is True


def _denies(claim_type: str, members: JSONObject) -> bool:
    """Whether the object denies the claim: not verified, taken back, or with the answer no."""
    if members.get("verified", True) is not True or "revoked" in members:
        return True
    if members.get("status", VERIFIED) != VERIFIED:
        return True
    for member in policy.members_said(claim_type, members):
        if not member or str(member).strip().lower() in {"", "false"}:
            return True
    return False


def moment_in(text: object) -> datetime | None:
    """A time-stamp in a claim's value. An unreadable one counts as long past.

    As an expiry it closes the gate; the date of issue is only shown.
    """
    if text is None:
        return None
    if not isinstance(text, str):
        return NEVER
    try:
        return parse_moment(text, takes_days=True)
    except NotAMoment:
        return NEVER


def provider_in(value: object) -> object:
    """The provider that a disclosed value names, or None."""
    if isinstance(value, dict):
        return value.get("provider")
    return None


def is_storable(name: str, value: object) -> bool:
    """PostgreSQL refuses NUL, and pages drop control characters.

    An unstorable claim leaves its gate closed.
    """
    if len(name) > LONGEST_NAME or not name.isprintable():
        return False
    return "\\u0000" not in json.dumps(value)
