"""What a sign-in or a Connect code brought about a person, and how an identity takes it."""

from collections.abc import Iterable
from typing import NamedTuple

from django.utils import timezone

from django_identity.exceptions import MalformedAnswer
from django_identity.lifecycle.arriving.request import LinkRequest
from django_identity.lifecycle.ground import kyc, notices, withdrawal
from django_identity.lifecycle.said import claims, due, grants, scopes
from django_identity.logs import LogEvent, log_failure
from django_identity.models import (
    Consent,
    LinkedIdentity,
    LinkedVia,
    StoredClaim,
    WebhookEvent,
)
from django_identity.service.answers import TokenAnswer


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
    if known_at is not None and known_at > request.said_at:
        return
    level = kyc.level_columns(request.kyc, said_at=request.said_at)
    identity.set_columns(level)


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
            identity.signed_in_at,
            request.began_at.replace(microsecond=0),
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
        withdrawal.take_claims_away(identity)
    elif claims.is_usable(verified, identity):
        rows = claims.write(identity, verified, heard=heard)
        columns |= claims.identity_columns(verified, identity)
        claims_until = verified.lasts_until
        if claims.is_behind(rows, verified):
            claims_until = timezone.now()
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
    grants.store(identity, answer)
    return Stored(rows, unread)
