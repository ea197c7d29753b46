"""What holds for this user now: the one answer to every gate, filter, permission and page."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.utils import timezone

from django_identity import conf
from django_identity.models import Consent, LinkedIdentity

LEVEL = re.compile(r"level_(\d{1,4})")
VERIFIED = "verified"
_REMEMBERED = "_identity_standings"


@dataclass(frozen=True, slots=True)
class Requirement:
    """A claim that a gate asks for, and the value it must have, or ``None`` for plain truth."""

    claim_type: str
    value: str | None = None

    @classmethod
    def parse(cls, text: str) -> Requirement:
        """``"age_over_18"`` or ``"country_resident=NG"``."""
        claim_type, asks_value, value = text.partition("=")
        return cls(claim_type, value if asks_value else None)


@dataclass(frozen=True, slots=True)
class HeldClaim:
    """A claim of a linked identity, as stored."""

    claim_type: str
    provider: str
    value: Any
    valid_until: datetime | None
    revoked: bool

    def is_proven(self, now: datetime) -> bool:
        """Whether a credential proved it, and it has neither run out nor been revoked."""
        return not self.revoked and self.valid_until is not None and now < self.valid_until

    def meets(self, requirement: Requirement, now: datetime) -> bool:
        """Whether it opens a gate that asks for ``requirement``.

        A disclosed claim is not a true claim: the value must be exactly ``true``, or an object
        whose ``verified`` or ``value`` is, or the value that was asked for.
        """
        return (
            self.claim_type == requirement.claim_type
            and self.is_proven(now)
            and _affirms(self.value, requirement.value)
        )


@dataclass(frozen=True, slots=True)
class Standing:
    """What a site holds on one user. ``is_linked``: there is an identity, its consent granted."""

    is_linked: bool = False
    kyc_level: str = ""
    kyc_status: str = ""
    claims: tuple[HeldClaim, ...] = ()

    def has_claim(self, requirement: Requirement) -> bool:
        """Whether the gate of ``requirement`` is open at this moment."""
        now = timezone.now()
        return self.is_linked and any(claim.meets(requirement, now) for claim in self.claims)

    def has_kyc_level(self, level: str) -> bool:
        """Whether the person is verified at ``level`` or a higher one."""
        if not self.is_linked or self.kyc_status != VERIFIED:
            return False
        held, asked = LEVEL.fullmatch(self.kyc_level), LEVEL.fullmatch(level)
        if held is None or asked is None:
            return bool(level) and self.kyc_level == level
        return int(held[1]) >= int(asked[1])

    def proven_claims(self) -> dict[str, Any]:
        """Claim name -> value, of those that hold at this moment."""
        now = timezone.now()
        held = self.claims if self.is_linked else ()
        return {claim.claim_type: claim.value for claim in held if claim.is_proven(now)}


NOBODY = Standing()


def standing_of(
    user: AbstractBaseUser | AnonymousUser, *, application: str = conf.DEFAULT_ALIAS
) -> Standing:
    """The user's standing under that application: one query a request, none for an anonymous user.

    It is remembered on ``user``, which Django makes anew for each request; what has run out since
    is judged by the clock at each question.
    """
    if not user.is_authenticated:
        return NOBODY
    remembered: dict[str, Standing] = getattr(user, _REMEMBERED, {})
    if application not in remembered:
        standing = _read(user, conf.application(application))
        setattr(user, _REMEMBERED, {**remembered, application: standing})
        return standing
    return remembered[application]


def _read(user: AbstractBaseUser | AnonymousUser, application: conf.Application) -> Standing:
    rows = list(
        LinkedIdentity.objects.of_user(
            user.pk, application=application.alias, environment=application.environment
        ).values_list(
            "consent",
            "kyc_level",
            "kyc_status",
            "claims__claim_type",
            "claims__provider",
            "claims__value",
            "claims__valid_until",
            "claims__revoked",
        )
    )
    if not rows or rows[0][0] != Consent.GRANTED:
        return NOBODY
    claims = tuple(HeldClaim(*row[3:]) for row in rows if row[3])
    return Standing(is_linked=True, kyc_level=rows[0][1], kyc_status=rows[0][2], claims=claims)


def _affirms(value: Any, asked: str | None) -> bool:
    wanted = True if asked is None else asked
    if not isinstance(value, dict):
        return _is_exactly(value, wanted)
    if "verified" in value and value["verified"] is not True:
        return False
    if asked is None:
        return value.get("verified") is True or value.get("value") is True
    return _is_exactly(value.get("value"), asked)


def _is_exactly(value: Any, wanted: bool | str) -> bool:
    return type(value) is type(wanted) and value == wanted
