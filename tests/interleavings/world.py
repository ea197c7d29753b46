"""The world around the package: one clock, and a service with a truth and a clock of its own.

Moments are texts such as ``2026-11-01 12:00:07``, which compare as they follow each other.
"""

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from django_identity.conf import Application
from django_identity.policy import IdentityPolicy
from django_identity.service.http import Call
from django_identity.testing.issuer import Issuer

START = datetime(2026, 11, 1, 12, 0, tzinfo=UTC)
MINUTE = 60
CLAIM = {"claim_type": "age_over_18", "provider": "KYC"}
ISSUER = Issuer()
Reply = tuple[int, dict[str, Any]]


class SilentPolicy(IdentityPolicy):
    """The default policy. The explorer reads no mail."""

    def notice(self, *_arguments: Any, **_facts: Any) -> None:
        return None


@dataclass
class Clock:
    """The site's clock. It moves only when it is moved."""

    seconds: int = 0

    def now(self) -> datetime:
        return START + timedelta(seconds=self.seconds)

    def text(self) -> str:
        return f"{self.now():%Y-%m-%d %H:%M:%S}"

    def to_next_minute(self) -> None:
        self.seconds += MINUTE - self.seconds % MINUTE


@dataclass
class Consent:
    """What a person allowed an application, in truth."""

    state: str = ""
    scopes: tuple[str, ...] = ()
    #: The newest revocation or deletion.
    ended_at: str = ""
    deleted_at: str = ""


class Told(NamedTuple):
    """An event that the service has made. It is delivered until the site acknowledges it."""

    alias: str
    body: bytes


class Holder(NamedTuple):
    """Whose data a code or token gives, to whom. A Connect code: to anybody."""

    alias: str
    subject: str
    scopes: tuple[str, ...] = ()


@dataclass
class Service:
    """The service. ``skew``: the seconds by which its clock is ahead of the site's."""

    clock: Clock = field(repr=False)
    skew: int = 0
    consents: dict[tuple[str, str], Consent] = field(default_factory=dict)
    level: str = "level_2"
    claim_is_revoked: bool = False
    address: str = ""
    #: Of codes, tokens and Connect codes.
    holders: dict[str, Holder] = field(default_factory=dict)
    redeemed_at: str = ""
    #: Refresh tokens, as they were sent to it.
    sent: list[str] = field(default_factory=list)
    events: list[Told] = field(default_factory=list)
    issued: int = 0

    def now(self) -> datetime:
        return self.clock.now() + timedelta(seconds=self.skew)

    def consent(self, alias: str, subject: str) -> Consent:
        return self.consents.setdefault((alias, subject), Consent())

    @property
    def status(self) -> str:
        """What it says of the level."""
        return "verified" if self.level == "level_2" else "rejected"

    # What people do there

    def approve(self, alias: str, subject: str, scopes: tuple[str, ...]) -> str:
        """The person allows the application these scopes. Returns the code."""
        consent = self.consent(alias, subject)
        consent.state = "granted"
        consent.scopes = scopes
        return self._issue("code", Holder(alias, subject, scopes))

    def make_connect_code(self) -> str:
        """Ada makes a Connect code, and gives it to somebody."""
        return self._issue("CNX-CODE", Holder("", "ada"))

    def revoke(self, alias: str = "default") -> Told:
        self._end(alias, "revoked")
        return self.tell("consent.revoked", alias)

    def delete(self, alias: str = "default") -> Told:
        self._end(alias, "deleted")
        self.consent(alias, "ada").deleted_at = self.clock.text()
        return self.tell("data.deletion_requested", alias)

    def revoke_claim(self) -> Told:
        self.claim_is_revoked = True
        return self.tell("claim.revoked", **CLAIM)

    def issue_claim(self) -> Told:
        self.claim_is_revoked = False
        return self.tell("claim.issued", **CLAIM)

    def reject(self) -> Told:
        self.level = "level_0"
        return self.tell("kyc.rejected", **self._kyc())

    def verify(self) -> Told:
        self.level = "level_2"
        return self.tell("kyc.verified", **self._kyc())

    def grant(self) -> Told:
        """The event of a consent. The consent itself is a sign-in's."""
        return self.tell("consent.granted")

    def tell(self, event_type: str, alias: str = "default", **about: str) -> Told:
        members = {
            "event_id": f"event-{len(self.events) + 1}",
            "event_type": event_type,
            "timestamp": f"{self.now()}",
            "data": {"user_id": "ada", **about},
        }
        told = Told(alias, json.dumps(members).encode())
        self.events.append(told)
        return told

    def _end(self, alias: str, state: str) -> None:
        consent = self.consent(alias, "ada")
        consent.state = state
        consent.ended_at = self.clock.text()
        for secret, holder in list(self.holders.items()):
            if holder[:2] == (alias, "ada"):
                del self.holders[secret]

    def _issue(self, kind: str, holder: Holder) -> str:
        self.issued += 1
        secret = f"{kind}-{self.issued:04}"
        self.holders[secret] = holder
        return secret

    # What applications ask it

    def answer(self, application: Application, call: Call) -> Reply:
        """Status and body of the answer."""
        if call.form is not None:
            return self._token(dict(call.form))
        if call.json is not None:
            return self._connect(application.alias, call.json["connect_code"])
        bearer = call.headers["Authorization"].removeprefix("Bearer ")
        if bearer not in self.holders:
            return 401, {"success": False, "error": {"code": "UNAUTHORIZED"}}
        holder = self.holders[bearer]
        if call.endpoint == "claims":
            return _good(self._claims(holder))
        if call.endpoint == "kyc":
            return _good(self._kyc())
        return _good(self._profile(holder))

    def _token(self, form: dict[str, str]) -> Reply:
        secret = form.get("code", "")
        if form["grant_type"] == "refresh_token":
            secret = form["refresh_token"]
            self.sent.append(secret)
        holder = self.holders.pop(secret, None)
        if holder is None:
            return 400, {"error": "invalid_grant"}
        return 200, {
            "access_token": self._issue("access", holder),
            "refresh_token": self._issue("refresh", holder),
            "expires_in": 3600,
            "scope": " ".join(holder.scopes),
            "user_id": holder.subject,
        }

    def _profile(self, holder: Holder) -> dict[str, Any]:
        address = self.address or f"{holder.subject}@example.org"
        return {"id": holder.subject, "email": address}

    def _kyc(self) -> dict[str, str]:
        return {"kyc_level": self.level, "status": self.status, "provider": "KYC"}

    def _claims(self, holder: Holder) -> dict[str, Any]:
        listed = {**CLAIM, "revoked": self.claim_is_revoked}
        answer: dict[str, Any] = {"user_id": holder.subject, "claims": [listed]}
        if not self.claim_is_revoked:
            answer["issued_at"] = f"{self.now()}"
            now = int(self.now().timestamp())
            times = {"iat": now, "exp": now + 24 * 60 * MINUTE}
            answer["credential"] = ISSUER.credential(
                holder.subject, application=holder.alias, **times
            )
        return answer

    def _connect(self, alias: str, code: str) -> Reply:
        holder = self.holders.pop(code)
        self.consent(alias, holder.subject).state = "granted"
        self.redeemed_at = self.clock.text()
        data = {"profile": self._profile(holder), "kyc": self._kyc()}
        approved = {
            "request_id": "request-1",
            "status": "approved",
            "user_id": holder.subject,
            "data": data,
            "issued_at": f"{self.now()}",
            "signature": "not checked",
        }
        return _good(approved)


def _good(data: dict[str, Any]) -> Reply:
    return 200, {"success": True, "data": data}
