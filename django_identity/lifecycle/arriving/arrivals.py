"""What a sign-in or a Connect code brought about a person, and how an identity takes it."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple

from django.utils import timezone

from django_identity.conf.rules import Scopes
from django_identity.exceptions import MalformedAnswer
from django_identity.lifecycle.ground import kyc, notices, withdrawal
from django_identity.lifecycle.said import claims, due, scopes, tokens
from django_identity.lifecycle.said.claims import VerifiedAnswer
from django_identity.logs import LogEvent, log_failure
from django_identity.models import (
    Consent,
    LinkedIdentity,
    LinkedVia,
    Purpose,
    StoredClaim,
    WebhookEvent,
)
from django_identity.service.answers import (
    KycStatus,
    Profile,
    TokenAnswer,
)


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
    verified ``claims``; with a Connect code both are empty. ``unread``: the code of the error at
    claims or level, or an empty text.
    """

    arrival: Arrival
    user_id: Any
    began_at: datetime
    said_at: datetime
    subject: str = field(repr=False)
    scopes: Scopes
    profile: Profile
    kyc: KycStatus | None
    tokens: TokenAnswer | None = None
    claims: VerifiedAnswer | None = None
    unread: str = ""


class Stored(NamedTuple):
    """What came of a sign-in or a code.

    ``rows``: the claims that are stored then, or None if they have to be read. ``unread``: the code
    of the error at claims or level, or an empty text.
    """

    rows: list[StoredClaim] | None
    unread: str = ""


def store(
    request: LinkRequest,
    identity: LinkedIdentity,
    heard: Iterable[WebhookEvent],
    *,
    via: LinkedVia,
) -> Stored:
    """Grant the consent and take the data. The caller has locked the identity, and saves it.

    ``heard``: the subject's events that revoke claims, with any others.
    """
    if identity.consent != Consent.GRANTED:
        identity.scopes = []
    identity.consent = Consent.GRANTED
    identity.linked_via = via
    identity.revoked_at = None
    identity.revoked_by = ""

    if request.tokens is None:
        _take_code(request, identity)
        return Stored(rows=None)
    return _take_sign_in(request, identity, request.tokens, heard)


def _take_code(request: LinkRequest, identity: LinkedIdentity) -> None:
    """A code adds its scopes, and its level if they cover it and it is the newest statement."""
    identity.scopes = scopes.with_code(identity, request.scopes)
    identity.connect_issued_at = request.said_at
    identity.connect_person = notices.masked(request.profile)
    if request.kyc is None or not identity.allows(*kyc.SCOPES):
        return
    known_at = identity.kyc_said_at
    if known_at is None or known_at <= request.said_at:
        identity.set_columns(kyc.level_columns(request.kyc, said_at=request.said_at))


def _take_sign_in(
    request: LinkRequest,
    identity: LinkedIdentity,
    answer: TokenAnswer,
    heard: Iterable[WebhookEvent],
) -> Stored:
    """A sign-in replaces everything: all else is emptied."""
    columns = {
        **withdrawal.NOTHING_BROUGHT,
        # In whole seconds, because the service's time-stamps may have no fractions.
        "signed_in_at": max(
            identity.signed_in_at, request.began_at.replace(microsecond=0)
        ),
        "scopes": list(request.scopes),
    }
    if request.kyc is not None:
        columns |= kyc.level_columns(request.kyc, said_at=request.said_at)

    rows: list[StoredClaim] | None = []
    claims_until = None
    unread = request.unread
    verified = request.claims
    if verified is None:
        withdrawal.take_claims_back(identity)
    elif claims.is_usable(verified, identity):
        rows = claims.write(identity, verified, heard=heard)
        columns |= verified.columns_for(identity)
        claims_until = verified.lasts_until
    else:
        # The person has just consented to the claims that are stored, and they are proven still.
        rows = None
        claims.revoke_listed(identity, verified.answer)
        columns["credential_expires_at"] = identity.credential_expires_at
        error = MalformedAnswer("an older credential, or none", endpoint="claims")
        log_failure(LogEvent.SIGN_IN_UNREAD, error)
        unread = unread or error.code
    columns["last_error"] = unread
    identity.set_columns(columns)

    identity.refetch_due_at = due.after_answers(identity, claims_until=claims_until)
    if unread:
        identity.refetch_due_at = timezone.now()
    tokens.store(identity, answer)
    return Stored(rows, unread)
