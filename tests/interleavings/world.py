"""The world around the package: one clock, and a service with a truth and a clock of its own.

Moments are texts such as ``2026-11-01 12:00:07``, which compare as they follow each other.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from django_identity.conf import Application
from django_identity.policy import IdentityPolicy
from django_identity.service.http import Call
from django_identity.testing.issuer import Issuer

START = datetime(2026, 11, 1, 12, 0, tzinfo=UTC)
MINUTE = 60
CLAIM = {"claim_type": "age_over_18", "provider": "KYC"}
ISSUER = Issuer()


class SilentPolicy(IdentityPolicy):
    """The default policy. The explorer reads no mail."""

    def notice(self, *_arguments: Any, **_facts: Any) -> None:
        return None


def text_of(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S}"


@dataclass
class Clock:
    """The site's clock. It moves only when it is moved."""

    seconds: int = 0

    def now(self) -> datetime:
        return START + timedelta(seconds=self.seconds)

    def to_next_minute(self) -> None:
        self.seconds += MINUTE - self.seconds % MINUTE


@dataclass
class Consent:
    """What a person allowed an application, in truth."""

    state: str = ""
    scopes: tuple[str, ...] = ()
    granted_at: str = ""
    #: The newest revocation or deletion.
    ended_at: str = ""
    deleted_at: str = ""


@dataclass
class Told:
    """An event that the service has made. It is delivered until the site acknowledges it."""

    alias: str
    body: bytes
    acknowledged: int = 0


@dataclass(frozen=True)
class Holder:
    """Whose data a code or token gives, to whom."""

    alias: str
    subject: str
    scopes: tuple[str, ...]


@dataclass
class Service:
    """The service. ``skew``: the seconds by which its clock is ahead of the site's."""

    clock: Clock = field(repr=False, default_factory=Clock)
    skew: int = 0
    consents: dict[tuple[str, str], Consent] = field(default_factory=dict)
    level: tuple[str, str] = ("level_2", "verified")
    claim_is_revoked: bool = False
    address: str = ""
    codes: dict[str, Holder] = field(default_factory=dict)
    connect_codes: dict[str, Holder] = field(default_factory=dict)
    #: Connect code -> when it was redeemed.
    redeemed: dict[str, str] = field(default_factory=dict)
    access_tokens: dict[str, Holder] = field(default_factory=dict)
    refresh_tokens: dict[str, Holder] = field(default_factory=dict)
    #: Refresh tokens, as they were sent to it.
    sent: list[str] = field(default_factory=list)
    events: list[Told] = field(default_factory=list)
    issued: int = 0

    def now(self) -> datetime:
        return self.clock.now() + timedelta(seconds=self.skew)

    def consent(self, alias: str, subject: str) -> Consent:
        return self.consents.setdefault((alias, subject), Consent())

    # What people do there

    def approve(self, alias: str, subject: str, scopes: tuple[str, ...]) -> str:
        """The person allows the application these scopes. Returns the code."""
        consent = self.consent(alias, subject)
        consent.state = "granted"
        consent.scopes = scopes
        consent.granted_at = text_of(self.clock.now())
        return self._issue(self.codes, "code", Holder(alias, subject, scopes))

    def make_connect_code(self, alias: str, subject: str) -> str:
        """The person makes a Connect code, and gives it to somebody."""
        self.issued += 1
        code = f"CNX-CODE-{self.issued:04}"
        self.connect_codes[code] = Holder(alias, subject, ())
        return code

    def revoke(self, alias: str = "default", subject: str = "ada") -> Told:
        self._end(alias, subject, state="revoked")
        return self.tell("consent.revoked", alias=alias, subject=subject)

    def delete(self, alias: str = "default", subject: str = "ada") -> Told:
        self._end(alias, subject, state="deleted")
        self.consent(alias, subject).deleted_at = text_of(self.clock.now())
        return self.tell("data.deletion_requested", alias=alias, subject=subject)

    def revoke_claim(self) -> Told:
        self.claim_is_revoked = True
        return self.tell("claim.revoked", **CLAIM)

    def issue_claim(self) -> Told:
        self.claim_is_revoked = False
        return self.tell("claim.issued", **CLAIM)

    def reject(self) -> Told:
        return self._state_level("level_0", "rejected")

    def verify(self) -> Told:
        return self._state_level("level_2", "verified")

    def grant(self) -> Told:
        """The event of a consent. The consent itself is a sign-in's."""
        return self.tell("consent.granted")

    def tell(
        self, event_type: str, *, alias: str = "default", subject: str = "ada", **about: str
    ) -> Told:
        event_id = f"event-{len(self.events) + 1}"
        members = {
            "event_id": event_id,
            "event_type": event_type,
            "timestamp": f"{self.now():%Y-%m-%dT%H:%M:%SZ}",
            "data": {"user_id": subject, **about},
        }
        told = Told(alias, json.dumps(members).encode())
        self.events.append(told)
        return told

    def _state_level(self, level: str, status: str) -> Told:
        self.level = (level, status)
        return self.tell(f"kyc.{status}", kyc_level=level, status=status, provider="KYC")

    def _end(self, alias: str, subject: str, *, state: str) -> None:
        consent = self.consent(alias, subject)
        consent.state = state
        consent.ended_at = text_of(self.clock.now())
        for issued in (self.codes, self.access_tokens, self.refresh_tokens):
            for secret, holder in list(issued.items()):
                if (holder.alias, holder.subject) == (alias, subject):
                    del issued[secret]

    def _issue(self, issued: dict[str, Holder], kind: str, holder: Holder) -> str:
        self.issued += 1
        secret = f"{kind}-{self.issued}"
        issued[secret] = holder
        return secret

    # What applications ask it

    def answer(self, application: Application, call: Call) -> tuple[int, dict[str, Any]]:
        """Status and body of the answer."""
        if call.endpoint == "token":
            return self._token(dict(call.form or {}))
        if call.endpoint == "connect":
            return self._connect(dict(call.json or {}))
        bearer = call.headers["Authorization"].removeprefix("Bearer ")
        holder = self.access_tokens.get(bearer)
        if holder is None:
            return 401, {"success": False, "error": {"code": "UNAUTHORIZED"}}
        data: Callable[[Holder], dict[str, Any]] = getattr(self, f"_{call.endpoint}")
        return 200, {"success": True, "data": data(holder)}

    def _token(self, form: dict[str, str]) -> tuple[int, dict[str, Any]]:
        if form["grant_type"] == "refresh_token":
            spent = form["refresh_token"]
            self.sent.append(spent)
            holder = self.refresh_tokens.pop(spent, None)
        else:
            holder = self.codes.pop(form["code"], None)
        if holder is None:
            return 400, {"error": "invalid_grant"}
        return 200, {
            "access_token": self._issue(self.access_tokens, "access", holder),
            "refresh_token": self._issue(self.refresh_tokens, "refresh", holder),
            "expires_in": 3600,
            "scope": " ".join(holder.scopes),
            "user_id": holder.subject,
        }

    def _profile(self, holder: Holder) -> dict[str, Any]:
        return {"id": holder.subject, "email": self.address or f"{holder.subject}@example.org"}

    def _kyc(self, _holder: Holder) -> dict[str, Any]:
        level, status = self.level
        return {"kyc_level": level, "status": status, "provider": "KYC"}

    def _claims(self, holder: Holder) -> dict[str, Any]:
        listed = {**CLAIM, "revoked": self.claim_is_revoked}
        answer = {"user_id": holder.subject, "claims": [listed]}
        if not self.claim_is_revoked:
            answer["issued_at"] = text_of(self.now())
            issued_at = int(self.now().timestamp())
            times = {"iat": issued_at, "exp": issued_at + 24 * 60 * MINUTE}
            answer["credential"] = ISSUER.credential(
                holder.subject, application=holder.alias, **times
            )
        return answer

    def _connect(self, sent: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        code = sent["connect_code"]
        holder = self.connect_codes.pop(code, None)
        if holder is None:
            return 400, {"success": False, "error": {"code": "INVALID_CONNECT_CODE"}}
        consent = self.consent(holder.alias, holder.subject)
        consent.state = "granted"
        consent.granted_at = text_of(self.clock.now())
        self.redeemed[code] = consent.granted_at
        return 200, {
            "success": True,
            "data": {
                "request_id": "request-1",
                "status": "approved",
                "user_id": holder.subject,
                "data": {"profile": self._profile(holder), "kyc": self._kyc(holder)},
                "issued_at": f"{self.now():%Y-%m-%dT%H:%M:%SZ}",
                "signature": "not checked",
            },
        }
