"""What a sign-in or a Connect code brought about a person, and how an identity takes it."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from django.utils import timezone

from django_identity.conf import Application
from django_identity.credentials import VerifiedCredential
from django_identity.lifecycle import claims, kyc, notices, refetch, tokens, withdrawal
from django_identity.models import Consent, LinkedIdentity, LinkedVia, Purpose, StoredClaim
from django_identity.service.answers import ClaimsAnswer, KycStatus, Profile, TokenAnswer


class Arrival(StrEnum):
    """How the person came: by a full sign-in, with its purpose, or with a Connect code."""

    SIGN_IN = Purpose.SIGN_IN
    LINK = Purpose.LINK
    RENEW = Purpose.RENEW
    CODE = "code"


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkRequest:
    """A person to link: how they came, and the service's data, checked to be about one subject.

    ``user_id``: the key of the user who is signed in now, or None. ``began_at``: when the sign-in
    or the code began; ``said_at``: when the service stated the level. A sign-in has ``tokens`` and
    verified ``claims``, a Connect code has not. ``unread``: the code of the error for which claims
    or level could not be read or proven, or an empty text.
    """

    application: Application
    arrival: Arrival
    user_id: Any
    began_at: datetime
    said_at: datetime
    subject: str
    scopes: tuple[str, ...]
    profile: Profile
    kyc: KycStatus | None
    tokens: TokenAnswer | None = None
    claims: ClaimsAnswer | None = None
    proof: VerifiedCredential | None = None
    unread: str = ""


def store(
    request: LinkRequest, identity: LinkedIdentity, *, via: LinkedVia
) -> list[StoredClaim] | None:
    """Grant the consent and take the data. The caller has locked the identity, and saves it.

    Returns the claims that are stored then, or None if they are as they were.
    """
    if identity.consent != Consent.GRANTED:
        identity.scopes = []
    identity.consent = Consent.GRANTED
    identity.linked_via = via
    identity.revoked_at = None
    identity.revoked_by = ""
    if via == LinkedVia.CONNECT:
        # Of a sign-up that a crash has cut off. A link by code is never the only way in.
        identity.account_made = False

    if request.tokens is None:
        _take_code(request, identity)
        return None
    return _take_sign_in(request, identity, request.tokens)


def _take_code(request: LinkRequest, identity: LinkedIdentity) -> None:
    """A code adds its scopes, and its level if it is the newest statement.

    But no scope of ``LATER_SCOPES``: the code may be another person's, and the account's owner has
    not allowed this site to read it.
    """
    brought = [each for each in request.scopes if each not in request.application.later_scopes]
    identity.scopes = list(dict.fromkeys([*identity.scopes, *brought]))
    identity.connect_issued_at = request.said_at
    identity.connect_person = notices.masked(request.profile)
    held_at = identity.kyc_said_at
    if request.kyc is not None and (held_at is None or held_at <= request.said_at):
        identity.set_columns(kyc.columns_of(request.kyc, said_at=request.said_at))


def _take_sign_in(
    request: LinkRequest, identity: LinkedIdentity, answer: TokenAnswer
) -> list[StoredClaim]:
    """A sign-in replaces everything: what it does not bring is emptied. Returns its claims."""
    columns = {
        **withdrawal.NOTHING_HELD,
        # In whole seconds, because the service's time-stamps may have no fractions.
        "signed_in_at": max(identity.signed_in_at, request.began_at.replace(microsecond=0)),
        "scopes": list(request.scopes),
        "last_error": request.unread,
    }
    if request.kyc is not None:
        columns |= kyc.columns_of(request.kyc, said_at=request.said_at)

    rows: list[StoredClaim] = []
    until = None
    if request.claims is None:
        withdrawal.take_claims_back(identity)
    else:
        # A credential that is older than the stored one could replay a revoked claim.
        proof = None if claims.is_older(request.proof, identity) else request.proof
        until = claims.lasts_until(request.claims, proof)
        columns["credential_issued_at"] = identity.credential_issued_at
        columns |= claims.columns_of(proof)
        rows = claims.write(identity, request.claims, proof)

    identity.set_columns(columns)
    due_at = refetch.next_due(identity, claims_until=until)
    identity.refetch_due_at = timezone.now() if request.unread else due_at
    tokens.store(identity, answer)
    return rows
