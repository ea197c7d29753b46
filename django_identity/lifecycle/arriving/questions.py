"""What the site's policy is asked about an arriving person, and what it is shown.

The policy sees what opens gates, as ``claims_of`` has it. It never sees the credential: a claim may
have been revoked since, or ``KEEP_CLAIMS`` may drop it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from django_identity import exceptions, policy
from django_identity.lifecycle.arriving import accounts
from django_identity.lifecycle.arriving.decisions import Question
from django_identity.lifecycle.arriving.request import LinkRequest
from django_identity.lifecycle.ground import kyc
from django_identity.lifecycle.said import claims, effects, events
from django_identity.lifecycle.standing import standing
from django_identity.models import Consent, LinkedIdentity, StoredClaim, WebhookEvent
from django_identity.policy import Claims
from django_identity.service.answers import KycStatus

REFUSALS: Mapping[Question, str] = {
    Question.MAY_SIGN_UP: "sign_up_refused",
    Question.MAY_LINK: "link_not_allowed",
    Question.MAY_SIGN_IN: "sign_in_not_allowed",
}


@dataclass(frozen=True, slots=True, repr=False)
class Proven:
    """A read-only view for the policy: the level, and the claims that open gates.

    ``unread``: the code of the error for which it may miss some of them, or an empty text.
    """

    kyc: KycStatus | None
    claims: Claims
    unread: str = ""


def proven_by_arrival(request: LinkRequest, heard: list[WebhookEvent]) -> Proven:
    """The proofs of an arrival, less those that the subject's events take away."""
    unsaved = LinkedIdentity(consent=Consent.GRANTED, scopes=list(request.scopes))
    if request.kyc is not None:
        level = kyc.level_columns(request.kyc, said_at=request.said_at)
        unsaved.set_columns(level)
    for event in events.overtaking(heard, request.began_at):
        effects.take_level_away(unsaved, event)

    rows: list[StoredClaim] = []
    unread = request.unread
    if request.claims is not None:
        rows = list(claims.rows_of(unsaved, request.claims).values())
        claims.revoke_new(rows, heard, request.claims.issued_at)
        if not claims.is_usable(request.claims, unsaved):
            unread = unread or exceptions.MalformedAnswer.code
    return proven_by(unsaved, rows, unread=unread)


def proven_by(
    identity: LinkedIdentity,
    rows: Iterable[StoredClaim] | None,
    *,
    unread: str,
) -> Proven:
    """What is proven now. ``rows``: the stored claims, or None if they have to be read."""
    if rows is None:
        rows = identity.claims.all()
    found = standing.standing_with(identity, rows).proven_claims()
    level = None
    if identity.kyc_said_at is not None or identity.kyc_status:
        level = kyc.level_of(identity)
    return Proven(level, MappingProxyType(found), unread)


def refusal_of(
    request: LinkRequest,
    question: Question,
    user: Any,
    proven: Proven,
) -> exceptions.LinkingRefused | None:
    """Ask one question. Returns the refusal, if any. ``user``: None before a sign-up."""
    rules = policy.of_site()
    profile = accounts.usable(request.profile)
    answer: object
    if question is Question.MAY_SIGN_UP:
        answer = rules.may_sign_up(
            profile=profile,
            kyc=proven.kyc,
            claims=proven.claims,
        )
    elif question is Question.MAY_LINK:
        answer = rules.may_link(user, profile, claims=proven.claims)
    else:
        answer = rules.may_sign_in(user, claims=proven.claims)
    if policy.is_yes(answer, question):
        return None
    if proven.unread:
        # The policy may have missed what could not be read.
        return exceptions.LinkingRefused("unread", code=proven.unread)
    return exceptions.LinkingRefused(code=REFUSALS[question])
