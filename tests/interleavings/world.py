"""The world around the package: the site's clock, the service, and what people have done.

Moments are noted as texts such as ``2026-11-01 12:00:07+00:00``: they compare as they follow each
other.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from django_identity.policy import IdentityPolicy
from django_identity.service.http import Call
from django_identity.testing.issuer import Issuer

START = datetime(2026, 11, 1, 12, tzinfo=UTC)
CLAIM = {"claim_type": "age_over_18", "provider": "KYC"}
LEVELS = {
    "kyc.verified": {"kyc_level": "level_2", "status": "verified", "provider": "KYC"},
    "kyc.rejected": {"kyc_level": "level_0", "status": "rejected", "provider": "KYC"},
}
ISSUER = Issuer()
Reply = tuple[int, dict[str, Any]]


class SilentPolicy(IdentityPolicy):
    """The default policy. The explorer reads no mail."""

    def notice(self, *_arguments: Any, **_facts: Any) -> None:
        return None


class Arrived(NamedTuple):
    """A sign-in or a code that was completed. ``mark``: of the session that it began, if any."""

    subject: str
    approved_at: str
    user_id: int
    mark: str = ""
    by_code: bool = False


class Told(NamedTuple):
    """An event that the service has made. It is delivered until the site acknowledges it."""

    event_type: str
    event_id: str
    at: str
    about: dict[str, str]


@dataclass
class Truth:
    """What Ada allowed the site, in truth. ``ended_at``: by the newest event."""

    is_granted: bool = False
    ended_at: str = ""
    deleted_at: str = ""


@dataclass
class World:
    """``now``: the site's clock, which moves only when it is moved.

    ``skew``: how far the service's is ahead. ``quiet``: calls of the service of which nothing in
    the scenario changes the answer, so nobody is switched there.
    """

    skew: timedelta
    quiet: tuple[str, ...]
    now: datetime = field(default=START, repr=False)

    # The service

    truth: Truth = field(default_factory=Truth)
    claim_is_revoked: bool = False
    kyc: dict[str, str] = field(default_factory=lambda: LEVELS["kyc.verified"])
    #: Code or token -> whose data it gives.
    holders: dict[str, str] = field(default_factory=dict)
    issued: int = 0
    #: Codes and refresh tokens, as they were sent to it.
    sent: list[str] = field(default_factory=list)
    redeemed_at: str = ""
    told: list[Told] = field(default_factory=list)

    # What the actors note for the invariants

    arrived: list[Arrived] = field(default_factory=list)
    #: Marks of sessions.
    ended: list[str] = field(default_factory=list)
    #: Keys of events.
    handled: list[int] = field(default_factory=list)
    #: Processes.
    failed: list[str] = field(default_factory=list)
    died: list[str] = field(default_factory=list, repr=False)
    #: What somebody here, and not at the service, did to the first account, and when.
    here: dict[str, str] = field(default_factory=lambda: defaultdict(str))

    def advance(self, **span: float) -> None:
        self.now += timedelta(**span)

    # What people do at the service

    def approve(self, subject: str) -> str:
        """The person allows the site what it asks for. Returns the code."""
        self.truth.is_granted = True
        return self._issue("code", subject)

    def happens(self, event_type: str) -> Told:
        """Something happens to Ada there, and becomes an event."""
        about = {}
        if event_type in LEVELS:
            about = self.kyc = LEVELS[event_type]
        if event_type.startswith("claim."):
            about = CLAIM
            self.claim_is_revoked = event_type == "claim.revoked"
        if event_type in ("consent.revoked", "data.deletion_requested"):
            self._end(event_type)
        event_id = f"event-{len(self.told)}"
        at = str(self.now + self.skew)
        told = Told(event_type, event_id, at, about)
        self.told.append(told)
        return told

    def _end(self, event_type: str) -> None:
        """The consent ends, and its codes and tokens with it."""
        self.truth.is_granted = False
        self.truth.ended_at = str(self.now)
        if event_type == "data.deletion_requested":
            self.truth.deleted_at = str(self.now)
        self.holders = {}

    def _issue(self, kind: str, subject: str) -> str:
        self.issued += 1
        secret = f"{kind}-{self.issued:03}"
        self.holders[secret] = subject
        return secret

    # What the site asks the service

    def answer(self, call: Call) -> Reply:
        """Status and body of the answer."""
        if call.form is not None:
            return self._tokens(call.form.get("refresh_token") or call.form["code"])
        if call.json is not None:
            return _good(self._connected())
        subject = self.holders.get(
            call.headers["Authorization"].removeprefix("Bearer "),
        )
        if subject is None:
            return 401, {"success": False, "error": {"code": "UNAUTHORIZED"}}
        if call.endpoint == "claims":
            return _good(self._claims(subject))
        if call.endpoint == "kyc":
            return _good(self.kyc)
        return _good(_profile(subject))

    def _tokens(self, secret: str) -> Reply:
        """New ones, for a code or a refresh token, which is good for once."""
        self.sent.append(secret)
        subject = self.holders.pop(secret, None)
        if subject is None:
            return 400, {"error": "invalid_grant"}
        return 200, {
            "access_token": self._issue("access", subject),
            "refresh_token": self._issue("refresh", subject),
            "expires_in": 3600,
            "user_id": subject,
        }

    def _claims(self, subject: str) -> dict[str, Any]:
        listed = {**CLAIM, "revoked": self.claim_is_revoked}
        answer = {"user_id": subject, "claims": [listed]}
        if not self.claim_is_revoked:
            issued_at = int((self.now + self.skew).timestamp())
            answer["credential"] = ISSUER.credential(subject, iat=issued_at)
        return answer

    def _connected(self) -> dict[str, Any]:
        """Every Connect code is one that Ada has just made."""
        self.truth.is_granted = True
        self.redeemed_at = str(self.now)
        return {
            "request_id": "request-1",
            "status": "approved",
            "user_id": "ada",
            "data": {"profile": _profile("ada"), "kyc": self.kyc},
            "issued_at": str(self.now + self.skew),
            "signature": "not checked",
        }


def _profile(subject: str) -> dict[str, str]:
    """All people have one e-mail address."""
    return {"id": subject, "email": "family@example.org"}


def _good(data: dict[str, Any]) -> Reply:
    return 200, {"success": True, "data": data}
