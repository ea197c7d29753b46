"""The texts on the page of one linked identity, for its template."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime

from django.utils.translation import gettext as _

from django_identity.admin import wording
from django_identity.admin.wording import Words
from django_identity.lifecycle.operators import Happening, Inspection, Kind
from django_identity.lifecycle.standing import GateAnswer, Reason
from django_identity.models import EventOutcome, LinkedIdentity, LinkedVia, StoredClaim, TokenGrant


@dataclass(frozen=True, slots=True)
class GateRow:
    """The state of one gate. ``code`` is the claim or level that a view asks for."""

    words: Words
    code: str
    is_open: bool
    reason: Words
    moment: datetime | None
    span: str
    remedy: Words


@dataclass(frozen=True, slots=True)
class ClaimRow:
    words: Words
    claim: StoredClaim
    value: str
    state: Words
    is_proven: bool


@dataclass(frozen=True, slots=True)
class Moment:
    """One line of the timeline. ``event_id``: the event with a page of its own, if any."""

    at: datetime
    words: Words
    detail: Words
    event_id: int | None


@dataclass(frozen=True, slots=True)
class IdentityPage:
    """Everything on the page, as texts in the operator's language."""

    badge: str
    kyc: tuple[Words, ...]
    gates: tuple[GateRow, ...]
    claims: tuple[ClaimRow, ...]
    timeline: tuple[Moment, ...]
    scopes: tuple[tuple[str, Words], ...]
    freshness: str
    due: str
    grant: Words
    error: Words


def page_of(identity: LinkedIdentity, seen: Inspection) -> IdentityPage:
    """The page of ``identity``, from the report ``seen``."""
    answers = (*seen.gates.claims, *seen.gates.levels)
    has_failed = identity.refetch_failures or identity.last_error
    return IdentityPage(
        badge=wording.environment_badge(identity.environment),
        kyc=tuple(part for part in _kyc(identity) if part),
        gates=tuple(_gate(answer, _remedy(identity, seen)) for answer in answers),
        claims=tuple(map(_claim, seen.claims)),
        timeline=tuple(map(_moment, seen.timeline)),
        scopes=tuple((str(scope), wording.name_of(str(scope))) for scope in identity.scopes),
        freshness=wording.freshness(identity.credential_expires_at),
        due=wording.due(identity.refetch_due_at),
        grant=_grant(seen.grant),
        error=wording.error_in_words(identity.last_error) if has_failed else "",
    )


def _gate(answer: GateAnswer, remedy: Words) -> GateRow:
    name = answer.asked.partition("=")[0]
    moment, reason, ran_out = answer.open_until, wording.open_reason(answer.asked), False
    if answer.shortfall is not None:
        reason = wording.GATE_REASONS[answer.shortfall.reason]
        ran_out = answer.shortfall.reason is Reason.RUN_OUT
        moment = answer.shortfall.since if ran_out else None
    span = wording.freshness(moment) if moment else ""
    row_remedy: Words = remedy if ran_out else ""
    words = wording.name_of(name)
    return GateRow(words, answer.asked, answer.is_open, reason, moment, span, row_remedy)


def _kyc(identity: LinkedIdentity) -> tuple[Words, ...]:
    level, status = wording.level_name(identity.kyc_level), wording.status_name(identity.kyc_status)
    return level, status, identity.kyc_provider


def _remedy(identity: LinkedIdentity, seen: Inspection) -> Words:
    """What the operator or the person can do about a proof that ran out."""
    if seen.grant is None or seen.grant.needs_reauthorization:
        return _("Nothing can be re-fetched: the person has to consent again at their next visit.")
    if identity.refetch_failures:
        return _("The re-fetch that would replace it keeps failing.")
    return _("A re-fetch replaces it.")


def _claim(claim: StoredClaim) -> ClaimRow:
    is_proven = claim.valid_until is not None
    state = _("only listed, not proven")
    if claim.revoked:
        state = _("revoked")
    elif is_proven:
        state = wording.freshness(claim.valid_until)
    value = json.dumps(claim.value, ensure_ascii=False, indent=1) if is_proven else ""
    return ClaimRow(wording.name_of(claim.claim_type), claim, value, state, is_proven)


def _moment(happening: Happening) -> Moment:
    words: Words = wording.HAPPENINGS[happening.kind]
    detail: Words = happening.detail
    match happening.kind:
        case Kind.EVENT:
            outcome = dict(EventOutcome.choices).get(happening.outcome, happening.outcome)
            words, detail = f"{words}: {happening.detail}", outcome
        case Kind.LINKED:
            via = dict(LinkedVia.choices).get(happening.detail, happening.detail)
            words, detail = _("Linked by %(via)s") % {"via": via}, ""
        case Kind.SIGN_IN_FAILED:
            detail = wording.error_in_words(happening.detail)
        case Kind.RENEWED:
            detail = ""
    return Moment(happening.at, words, detail, happening.event_id)


def _grant(grant: TokenGrant | None) -> Words:
    if grant is None:
        return _("None. The person has to sign in again before anything can be re-fetched.")
    if grant.needs_reauthorization:
        return _("Dead. The person's next visit offers to consent again.")
    if grant.refresh_expires_at is None:
        return _("Held.")
    span = wording.freshness(grant.refresh_expires_at)
    return _("Held; runs out %(span)s unless it is used.") % {"span": span}
