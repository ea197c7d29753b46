"""What holds for this user now: the one answer to every gate, filter, permission and page."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.utils import timezone

from django_identity import conf, policy
from django_identity.lifecycle.standing import inline
from django_identity.models import Consent, LinkedIdentity
from django_identity.models.choices import rests_on_code

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

    def __str__(self) -> str:
        return self.claim_type if self.value is None else f"{self.claim_type}={self.value}"


class Reason(StrEnum):
    """Why a gate is closed to a person who is signed in."""

    NOT_LINKED = "not_linked"
    CONSENT_REVOKED = "consent_revoked"
    CODE_ALONE = "code_alone"
    NEVER_PROVEN = "never_proven"
    RUN_OUT = "run_out"
    REVOKED = "revoked"
    OTHER_VALUE = "other_value"
    NOT_VERIFIED = "not_verified"
    LOWER_LEVEL = "lower_level"


@dataclass(frozen=True, slots=True)
class Shortfall:
    """What keeps a gate closed: ``since`` when, and what is ``held`` instead, where known."""

    reason: Reason
    since: datetime | None = None
    held: str = ""


@dataclass(frozen=True, slots=True)
class HeldClaim:
    """A claim of a linked identity, as stored."""

    claim_type: str
    provider: str
    value: Any
    valid_until: datetime | None
    revoked: bool

    def has_run_out(self, now: datetime) -> bool:
        """Whether a credential proved it, and only time has taken the proof away."""
        return not self.revoked and self.valid_until is not None and self.valid_until <= now

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
    """What a site holds on one user. ``is_linked``: there is an identity, its consent granted.

    ``consent_revoked_at``: there is one, and since then its consent is not. ``rests_on_code``: a
    Connect code alone stands behind it, which brings no proofs.
    """

    is_linked: bool = False
    consent_revoked_at: datetime | None = None
    kyc_level: str = ""
    kyc_status: str = ""
    claims: tuple[HeldClaim, ...] = ()
    identity_id: int | None = None
    rests_on_code: bool = False

    def is_stale(self) -> bool:
        """Whether something that was proven has run out, and a re-fetch may prove it anew."""
        now = timezone.now()
        return any(claim.has_run_out(now) for claim in self.claims)

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

    def shortfall(self, requirement: Requirement) -> Shortfall | None:
        """Why the gate of ``requirement`` is closed; None if it is open."""
        if self.has_claim(requirement):
            return None
        return self._unlinked() or self._unproven(requirement.claim_type)

    def level_shortfall(self, level: str) -> Shortfall | None:
        """Why the gate of ``level`` is closed; None if it is open."""
        if self.has_kyc_level(level):
            return None
        if self.kyc_status != VERIFIED:
            return self._unlinked() or Shortfall(Reason.NOT_VERIFIED)
        return self._unlinked() or Shortfall(Reason.LOWER_LEVEL, held=self.kyc_level)

    def _unlinked(self) -> Shortfall | None:
        if self.is_linked:
            return None
        if self.consent_revoked_at is not None:
            return Shortfall(Reason.CONSENT_REVOKED, since=self.consent_revoked_at)
        return Shortfall(Reason.NOT_LINKED)

    def _unproven(self, claim_type: str) -> Shortfall:
        """Of several claims of that type the one nearest to a proof is spoken of."""
        if self.rests_on_code:
            return Shortfall(Reason.CODE_ALONE)
        now = timezone.now()
        held = [claim for claim in self.claims if claim.claim_type == claim_type]
        for claim in held:
            if claim.is_proven(now):
                return Shortfall(Reason.OTHER_VALUE, held=value_in_text(claim.value))
        ends = [claim.valid_until for claim in held if claim.valid_until and not claim.revoked]
        if ends:
            return Shortfall(Reason.RUN_OUT, since=max(ends))
        if any(claim.revoked for claim in held):
            return Shortfall(Reason.REVOKED)
        return Shortfall(Reason.NEVER_PROVEN)

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
    is judged by the clock at each question. Where the policy says ``refetch_inline``, stale claims
    are re-fetched first, once a request, and no longer than two seconds are waited for it.
    """
    if not user.is_authenticated:
        return NOBODY
    remembered: dict[str, Standing] = getattr(user, _REMEMBERED, {})
    if application not in remembered:
        standing = _current(user, conf.application(application))
        setattr(user, _REMEMBERED, {**remembered, application: standing})
        return standing
    return remembered[application]


def shortfall_of(
    user: AbstractBaseUser | AnonymousUser, asked: str, *, application: str = conf.DEFAULT_ALIAS
) -> Shortfall | None:
    """Why the gate that asks for ``asked`` (a claim, a claim with its value, a level) is closed."""
    standing = standing_of(user, application=application)
    if is_level(asked):
        return standing.level_shortfall(asked)
    return standing.shortfall(Requirement.parse(asked))


def is_level(asked: str) -> bool:
    """Whether a gate asks for a KYC level there, and not for a claim."""
    return LEVEL.fullmatch(asked) is not None


def value_in_text(value: Any) -> str:
    """What a claim's value says beyond its being proven, such as a country; often nothing."""
    said = value.get("value") if isinstance(value, dict) else value
    return said if isinstance(said, str) else ""


def _current(user: AbstractBaseUser | AnonymousUser, application: conf.Application) -> Standing:
    standing = _read(user, application)
    if standing.identity_id is None or not standing.is_stale():
        return standing
    if not policy.load(application.policy).refetch_inline:
        return standing
    return _read(user, application) if inline.is_refetched(standing.identity_id) else standing


def _read(user: AbstractBaseUser | AnonymousUser, application: conf.Application) -> Standing:
    rows = list(
        LinkedIdentity.objects.of_user(
            user.pk, application=application.alias, environment=application.environment
        ).values_list(
            "pk",
            "consent",
            "consent_changed_at",
            "kyc_level",
            "kyc_status",
            "connect_issued_at",
            "signed_in_at",
            "credential_expires_at",
            "revoked_at",
            "claims__claim_type",
            "claims__provider",
            "claims__value",
            "claims__valid_until",
            "claims__revoked",
        )
    )
    if not rows:
        return NOBODY
    identity_id, consent, changed_at, kyc_level, kyc_status = rows[0][:5]
    by_code_at, signed_in_at, expires_at, revoked_at = rows[0][5:9]
    if consent != Consent.GRANTED:
        return Standing(consent_revoked_at=changed_at)
    return Standing(
        is_linked=True,
        kyc_level=kyc_level,
        kyc_status=kyc_status,
        claims=_held(rows, is_over=revoked_at is not None and signed_in_at <= revoked_at),
        identity_id=identity_id,
        rests_on_code=rests_on_code(
            by_code_at=by_code_at, signed_in_at=signed_in_at, expires_at=expires_at
        ),
    )


def _held(rows: Sequence[tuple[Any, ...]], *, is_over: bool) -> tuple[HeldClaim, ...]:
    """``is_over``: all that the identity holds was revoked since the sign-in that brought it."""
    return tuple(
        HeldClaim(claim_type, provider, value, valid_until, is_over or revoked)
        for *_, claim_type, provider, value, valid_until, revoked in rows
        if claim_type
    )


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
