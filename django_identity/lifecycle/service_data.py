"""What a sign-in or a Connect code brought about a person, and how an identity takes it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.utils import timezone

from django_identity import background
from django_identity.conf import Application
from django_identity.credentials import VerifiedCredential
from django_identity.lifecycle import claims, notices, refetch, tokens, withdrawal
from django_identity.models import Consent, LinkedIdentity, LinkedVia
from django_identity.service.answers import ClaimsAnswer, KycStatus, Profile, TokenAnswer
from django_identity.service.connect import ConnectAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceData:
    """The service's data about the person, checked to be about one subject.

    A sign-in has ``tokens`` and verified ``claims``; a Connect code has ``connect``. ``asked_at``:
    when the service was asked. ``unread``: the code of the error for which claims or level could
    not be read or proven, or an empty text.
    """

    subject: str
    scopes: tuple[str, ...]
    profile: Profile
    kyc: KycStatus | None
    asked_at: datetime
    tokens: TokenAnswer | None = None
    claims: ClaimsAnswer | None = None
    proof: VerifiedCredential | None = None
    connect: ConnectAnswer | None = None
    unread: str = ""


def store(
    application: Application,
    identity: LinkedIdentity,
    data: ServiceData,
    *,
    via: LinkedVia,
    began_at: datetime,
) -> None:
    """Grant the consent and take ``data``. The caller has locked the identity, and saves it."""
    was_granted = identity.consent == Consent.GRANTED
    identity.consent, identity.linked_via = Consent.GRANTED, via
    identity.revoked_at, identity.revoked_by = None, ""
    if data.connect is not None:
        held = identity.scopes if was_granted else []
        _take_code(identity, data, data.connect, held=held)
    elif data.tokens is not None:
        _take_sign_in(application, identity, data, data.tokens, began_at=began_at)


def _take_code(
    identity: LinkedIdentity, data: ServiceData, answer: ConnectAnswer, *, held: list[str]
) -> None:
    """A code adds its scopes, and its level if it is the newest statement."""
    identity.scopes = list(dict.fromkeys([*held, *data.scopes]))
    # The service's clock may be ahead. A time from the future would outlast a revocation.
    issued_at = min(answer.issued_at, timezone.now())
    identity.connect_issued_at = issued_at
    identity.connect_person = notices.masked(data.profile)
    if data.kyc is not None and (identity.kyc_said_at is None or identity.kyc_said_at <= issued_at):
        refetch.set_columns(identity, refetch.level_columns(data.kyc, said_at=issued_at))


def _take_sign_in(
    application: Application,
    identity: LinkedIdentity,
    data: ServiceData,
    answer: TokenAnswer,
    *,
    began_at: datetime,
) -> None:
    """A sign-in replaces everything: what it does not bring is emptied."""
    level, until = withdrawal.NO_LEVEL, None
    if data.kyc is not None:
        level = refetch.level_columns(data.kyc, said_at=data.asked_at)
    # In whole seconds, because the service's time-stamps may have no fractions.
    identity.signed_in_at = max(identity.signed_in_at, began_at.replace(microsecond=0))
    identity.scopes = list(data.scopes)
    columns = {
        **withdrawal.NOTHING_HELD,
        **level,
        "scopes": list(data.scopes),
        "credential_issued_at": identity.credential_issued_at,
        "credential_expires_at": identity.credential_expires_at,
        "last_error": data.unread,
    }
    refetch.set_columns(identity, columns)
    if data.claims is not None:
        # A credential that is older than the stored one could replay a revoked claim.
        is_older = claims.is_older(data.proof, identity)
        proof = None if is_older else data.proof
        until = claims.lasts_until(data.claims, proof)
        refetch.set_columns(identity, claims.columns_of(proof))
        claims.write(identity, data.claims, proof)
    else:
        refetch.set_columns(identity, withdrawal.NO_CREDENTIAL)
        withdrawal.take_claims_back(identity)
    said_at = identity.kyc_said_at
    identity.refetch_due_at = refetch.next_due(
        application, identity, level_said_at=said_at, claims_until=until
    )
    if data.unread:
        identity.refetch_due_at = timezone.now()
        background.nudge_on_commit(background.TaskName.REFETCH_DUE, identity.application, 1)
    tokens.store(application, identity, answer)
