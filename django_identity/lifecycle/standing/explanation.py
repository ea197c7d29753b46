"""Why a gate is open or closed for one identity: the gate's own answer, and the reason for it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from django.contrib.auth import get_user_model
from django.utils import timezone

from django_identity import conf
from django_identity.lifecycle.standing.standing import (
    VERIFIED,
    HeldClaim,
    Requirement,
    Standing,
    standing_of,
)
from django_identity.models import Consent, LinkedIdentity

CLAIM_TYPES = ("kyc_verified", "age_over_18", "country_resident", "unique_human")
KYC_LEVELS = ("level_1", "level_2")


class Why(StrEnum):
    """The one reason that decides, in the order in which the reasons are looked for."""

    PROVEN = "proven"
    STATED = "stated"
    NOT_SET_UP = "not_set_up"
    OTHER_ENVIRONMENT = "other_environment"
    CONSENT_REVOKED = "consent_revoked"
    CODE_ALONE = "code_alone"
    NOT_HELD = "not_held"
    REVOKED = "revoked"
    NOT_PROVEN = "not_proven"
    RAN_OUT = "ran_out"
    ASKS_VALUE = "asks_value"
    NOT_TRUE = "not_true"
    NOT_VERIFIED = "not_verified"
    LEVEL_TOO_LOW = "level_too_low"


@dataclass(frozen=True, slots=True)
class GateAnswer:
    """What a gate that asks for ``asked`` says to this person at this moment, and why.

    ``moment``: until when it stays open, or when what it asks for ran out. ``value``: the value
    that a gate could ask for and would open on.
    """

    asked: str
    is_open: bool
    why: Why
    moment: datetime | None = None
    value: str = ""


@dataclass(frozen=True, slots=True)
class Explanation:
    """One answer for each claim that a gate can ask for, and one for each KYC level."""

    claims: tuple[GateAnswer, ...]
    levels: tuple[GateAnswer, ...]


def explained(identity: LinkedIdentity) -> Explanation:
    """What every gate says to the person of ``identity``, asked as gates ask: ``standing_of``."""
    user = get_user_model()._default_manager.get(pk=identity.user_id)
    barrier = _barrier(identity)
    standing = standing_of(user, application=identity.application) if barrier is None else None
    held = standing.claims if standing else ()
    others = sorted({claim.claim_type for claim in held} - set(CLAIM_TYPES))
    return Explanation(
        claims=tuple(_claim_answer(name, standing, barrier) for name in (*CLAIM_TYPES, *others)),
        levels=tuple(_level_answer(level, standing, barrier) for level in KYC_LEVELS),
    )


def _barrier(identity: LinkedIdentity) -> Why | None:
    """What closes every gate at once, before any claim is looked at."""
    if identity.application not in conf.aliases():
        return Why.NOT_SET_UP
    if conf.application(identity.application).environment != identity.environment:
        return Why.OTHER_ENVIRONMENT
    return Why.CONSENT_REVOKED if identity.consent != Consent.GRANTED else None


def _claim_answer(claim_type: str, standing: Standing | None, barrier: Why | None) -> GateAnswer:
    if standing is None:
        return GateAnswer(claim_type, is_open=False, why=barrier or Why.NOT_HELD)
    held = [claim for claim in standing.claims if claim.claim_type == claim_type]
    latest = max((claim.valid_until for claim in held if claim.valid_until), default=None)
    if standing.has_claim(Requirement(claim_type)):
        return GateAnswer(claim_type, is_open=True, why=Why.PROVEN, moment=latest)
    value = next(_openings(held, standing), "")
    if value:
        return GateAnswer(claim_type, True, Why.ASKS_VALUE, latest, value)
    why = Why.CODE_ALONE if standing.rests_on_code else _why_closed(held)
    return GateAnswer(claim_type, is_open=False, why=why, moment=latest)


def _openings(held: list[HeldClaim], standing: Standing) -> Iterator[str]:
    """The values that a gate could ask for and would open on, as the gate itself judges."""
    for claim in held:
        shown = claim.value.get("value") if isinstance(claim.value, dict) else claim.value
        if isinstance(shown, str) and standing.has_claim(Requirement(claim.claim_type, shown)):
            yield shown


def _why_closed(held: list[HeldClaim]) -> Why:
    """The reason of the claim that came nearest to opening the gate."""
    now = timezone.now()
    if not held:
        return Why.NOT_HELD
    if any(claim.is_proven(now) for claim in held):
        return Why.NOT_TRUE
    current = [claim for claim in held if not claim.revoked]
    if not current:
        return Why.REVOKED
    return Why.RAN_OUT if any(claim.valid_until for claim in current) else Why.NOT_PROVEN


def _level_answer(level: str, standing: Standing | None, barrier: Why | None) -> GateAnswer:
    if standing is None:
        return GateAnswer(level, is_open=False, why=barrier or Why.NOT_HELD)
    if standing.has_kyc_level(level):
        return GateAnswer(level, is_open=True, why=Why.STATED)
    if not standing.kyc_status:
        return GateAnswer(level, is_open=False, why=Why.NOT_HELD)
    low = standing.kyc_status == VERIFIED
    return GateAnswer(level, is_open=False, why=Why.LEVEL_TOO_LOW if low else Why.NOT_VERIFIED)
