"""The service's data about a person, and how it is stored with their identity."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.utils import timezone

from django_identity import background, signals
from django_identity.credentials import VerifiedCredential
from django_identity.lifecycle.events import events_meanwhile
from django_identity.lifecycle.upkeep import replacement, tokens
from django_identity.lifecycle.upkeep.claims import (
    CLAIMS_SCOPE,
    NO_LEVEL,
    columns_of_level,
    may_read_claims,
)
from django_identity.lifecycle.upkeep.replacement import KYC_SCOPE
from django_identity.models import NEVER, Consent, LinkedIdentity, LinkedVia, Purpose
from django_identity.service.answers import (
    ClaimsAnswer,
    ConnectAnswer,
    KycStatus,
    Profile,
    TokenAnswer,
)
from django_identity.service.answers.connect import KYC_SCOPE as CONNECT_KYC_SCOPE

if TYPE_CHECKING:
    from django_identity.lifecycle.arrival.linking import LinkRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceData:
    """The service's data about the person, checked to be about one subject.

    A sign-in has ``tokens`` and verified ``claims``; a Connect code has ``connect``.
    """

    subject: str
    scopes: tuple[str, ...]
    profile: Profile
    kyc: KycStatus | None
    tokens: TokenAnswer | None = None
    claims: ClaimsAnswer | None = None
    proof: VerifiedCredential | None = None
    connect: ConnectAnswer | None = None

    @property
    def is_by_code(self) -> bool:
        """Whether the data comes from a Connect code, which may be another person's code."""
        return self.connect is not None

    @property
    def is_incomplete(self) -> bool:
        """Whether a sign-in left a slow answer to upkeep."""
        lacks_claims = CLAIMS_SCOPE in self.scopes and self.claims is None
        lacks_kyc = KYC_SCOPE in self.scopes and self.kyc is None
        return self.tokens is not None and (lacks_claims or lacks_kyc)

    def consented_at(self, began_at: datetime) -> datetime:
        """The time from which the consent counts. A later revocation is never older than this time.

        It is the start of the flow, or ``issued_at`` of a Connect answer if that is earlier. It is
        in whole seconds, because the service's time-stamps may have no fractions; at equal times
        the revocation wins.
        """
        moment = min(began_at, self.connect.issued_at) if self.connect else began_at
        return moment.replace(microsecond=0)


@dataclass(frozen=True, slots=True)
class Storing:
    """Stores ``data`` with ``identity``. The subject is locked."""

    request: LinkRequest
    data: ServiceData
    identity: LinkedIdentity

    def store(self) -> None:
        """Save the data, unless an event since the start of the sign-in revokes it."""
        application, data, identity = self.request.application, self.data, self.identity
        before = dict(vars(identity))
        was_granted = identity.consent == Consent.GRANTED
        level_before = (identity.kyc_level, identity.kyc_status)
        had_claims = may_read_claims(identity)
        changes = self._set(self._columns())
        claims = None
        if data.claims is not None:
            claims = replacement.prepare(application, identity, data.claims, data.proof)
            changes |= self._set(claims.columns)
        if data.is_incomplete:
            changes |= self._set({"refetch_due_at": timezone.now()})
            background.enqueue_on_commit(background.TaskName.REFETCH_ONE, identity.pk)
        elif data.tokens is not None and claims is None:
            due_at = replacement.next_refetch(application, identity, claims_due_at=None)
            changes |= self._set({"refetch_due_at": due_at})
        answered_at = self._consented_at if data.is_by_code else None
        since = events_meanwhile.Since(self.request.began_at, answered_at)
        is_done = events_meanwhile.save_if_no_event_came(identity, since, changes, before=before)
        if not is_done:
            events_meanwhile.save_unless_revoked(identity, since, changes)
        # A row that is as it was read holds claims only if its scopes allowed them.
        may_hold_claims = had_claims or not is_done
        if claims is not None:
            replacement.write(identity, claims)
        elif data.tokens is not None and CLAIMS_SCOPE not in data.scopes and may_hold_claims:
            replacement.take_back(identity)
        if data.tokens is not None:
            tokens.store(application, identity, data.tokens)
        if not is_done:
            events_meanwhile.apply_events_since(identity, since)
        if not was_granted:
            signals.announce(signals.consent_granted, LinkedIdentity, identity=identity)
        if (identity.kyc_level, identity.kyc_status) != level_before:
            signals.announce(signals.kyc_changed, LinkedIdentity, identity=identity)

    def _set(self, columns: Mapping[str, Any]) -> dict[str, Any]:
        """Set these columns only. Others may change meanwhile, so the row is not saved whole."""
        for name, value in columns.items():
            setattr(self.identity, name, value)
        return {**columns}

    def _columns(self) -> dict[str, Any]:
        data, consented_at = self.data, self._consented_at
        columns = self._consent_columns()
        if data.kyc is not None and self.identity.kyc_changed_at <= consented_at:
            columns |= {"kyc_changed_at": consented_at, "kyc_rank": ""}
            columns |= columns_of_level(data.kyc, checked_at=timezone.now())
        if data.connect is not None:
            columns["connect_request_id"] = data.connect.request_id
            # The service's clock may be ahead. A time from the future would outlast a revocation.
            columns["connect_issued_at"] = min(data.connect.issued_at, timezone.now())
            columns["connect_person"] = data.profile.masked()
        if data.tokens is not None:
            columns |= self._taken_back() | self._sign_in_columns()
        return columns

    def _consent_columns(self) -> dict[str, Any]:
        """A sign-in replaces the scopes of the consent; a Connect code adds scopes."""
        is_granted = self.identity.consent == Consent.GRANTED
        held, scopes = self.identity.scopes, self.data.scopes
        kept = held if is_granted and self.data.is_by_code else []
        if is_granted and not self.data.is_by_code and KYC_SCOPE not in (*held, *scopes):
            # The level that a code brought stays, so the events about it still count.
            kept = [scope for scope in held if scope == CONNECT_KYC_SCOPE]
        changed_at = self.identity.consent_changed_at if is_granted else NEVER
        return {
            "consent": Consent.GRANTED,
            "consent_changed_at": max(changed_at, self._consented_at),
            "scopes": list(dict.fromkeys([*kept, *scopes])),
        }

    def _taken_back(self) -> dict[str, Any]:
        """What scopes had brought that this sign-in does not have. A Connect code's level stays."""
        identity, columns = self.identity, dict[str, Any]()
        is_by_code = identity.consent == Consent.GRANTED and KYC_SCOPE not in identity.scopes
        if KYC_SCOPE not in self.data.scopes and not is_by_code:
            columns |= {**NO_LEVEL, "kyc_rank": ""}
            columns["kyc_changed_at"] = max(identity.kyc_changed_at, self._consented_at)
        if CLAIMS_SCOPE not in self.data.scopes:
            columns |= replacement.NO_CREDENTIAL
        return columns

    def _sign_in_columns(self) -> dict[str, Any]:
        """The columns that a full sign-in changes: the kind of link, sessions, re-fetches."""
        identity, columns = self.identity, dict[str, Any](connect_person="", last_error="")
        columns["signed_in_at"] = max(identity.signed_in_at, self._consented_at)
        columns |= {"refetch_taken_until": None, "refetch_started": False, "refetch_failures": 0}
        if self.request.purpose != Purpose.SIGN_IN:
            # The sign-in came from the account's own session, so the identity now signs in.
            columns["linked_via"] = LinkedVia.OAUTH
        if identity.revoked_at is not None and identity.revoked_at >= self._consented_at:
            # An earlier revocation in the same second. Each sign-in writes a different time, so
            # that a session that the revocation has ended does not become valid again.
            columns["revoked_at"] = self.request.began_at - timedelta(seconds=1)
        return columns

    @property
    def _consented_at(self) -> datetime:
        return self.data.consented_at(self.request.began_at)
