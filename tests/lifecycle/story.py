"""What may be said of a person, in plain Python: the model that ``test_model`` holds the code to.

It knows what happened and what was heard, in the order in which it was heard, and says at most what
may be open. Moments are by the test's clock: when time passes, all of them move into the past.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from django_identity.handlers import WITHDRAWALS, EventType

SKEW = timedelta(minutes=5)
HORIZON = timedelta(days=180)
DAY = timedelta(hours=24)
LEVEL_BY_SIGN_IN, LEVEL_BY_CODE = timedelta(hours=48), timedelta(days=30)
ALL_SCOPES = frozenset({"profile:read", "kyc:read", "claims:read"})
CODE_SCOPES = frozenset({"profile:basic", "kyc:status"})
KYC_SCOPES = frozenset({"kyc:read", "kyc:status"})
#: Of these a time-stamp that is hardly older than the sign-in counts as newer.
WITHDRAWING = (EventType.CONSENT_REVOKED, EventType.CLAIM_REVOKED, EventType.KYC_REJECTED)
NEVER = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Heard:
    """An event as it was delivered: ``at`` is its moment, as far as it is believed."""

    event_type: str
    at: datetime
    received_at: datetime
    level: str = ""
    claim_type: str = ""


@dataclass
class Story:
    """One subject. ``is_linked``: the site holds an identity of theirs, in whatever state.

    ``is_by_code``: only a code has linked them to an account that was there: it signs nobody in.
    """

    is_linked: bool = False
    is_by_code: bool = False
    consent: tuple[datetime, bool] = (NEVER, True)
    scopes: frozenset[str] = frozenset()
    signed_in_at: datetime = NEVER
    arrived_at: datetime = NEVER
    code_at: datetime = NEVER
    revoked_at: datetime = NEVER
    is_withdrawn: bool = False
    kyc: tuple[datetime, bool] = (NEVER, False)
    is_answered: bool = True
    level: str = ""
    vouched_at: datetime | None = None
    proven_at: datetime | None = None
    credential_at: datetime | None = None
    claims_revoked_at: datetime = NEVER
    sessions: int = 0
    is_erasure_pending: bool = False
    erased_at: datetime | None = None
    is_named: bool = False
    personal: set[str] = field(default_factory=set)

    # What may be open

    @property
    def has_consent(self) -> bool:
        return self.is_linked and not self.consent[1]

    def has_level_2(self, now: datetime) -> bool:
        counts_for = LEVEL_BY_SIGN_IN if "kyc:read" in self.scopes else LEVEL_BY_CODE
        is_vouched_for = self.vouched_at is not None and now < self.vouched_at + counts_for
        is_said = self.level == "level_2" and not self.kyc[1]
        return self.has_consent and is_said and is_vouched_for

    def has_claim(self, now: datetime) -> bool:
        return self.has_consent and self.proven_at is not None and now < self.proven_at + DAY

    # What happens

    def arrive(
        self, began_at: datetime, *, level: str, scopes: frozenset[str], signs_in: bool
    ) -> None:
        """They came with the service's word, and were let in: consent counts from that second."""
        at = began_at.replace(microsecond=0)
        assert not self.is_erasure_pending, "let in although they are to be erased"
        assert not (self.is_linked and self.consent[1] and self.revoked_at >= began_at), (
            "let in although the consent was taken back since"
        )
        if not self.is_linked:
            self.is_by_code = not signs_in
        was_granted = self.is_linked and not self.consent[1]
        rests_on_code = was_granted and "kyc:read" not in self.scopes
        self.is_linked = self.is_named = True
        self.consent = (at if self.consent[1] else max(at, self.consent[0]), False)
        self.arrived_at, self.is_withdrawn = max(at, self.arrived_at), False
        if not scopes.isdisjoint(KYC_SCOPES):
            if at >= self.kyc[0]:
                self.learn(datetime.now(UTC), level=level, at=at)
        elif not rests_on_code:
            self.level, self.vouched_at, self.is_answered = "", None, True
            self.kyc = (max(at, self.kyc[0]), False)
        if not signs_in:
            self.code_at = datetime.now(UTC)
            self.scopes = scopes | (self.scopes if was_granted else frozenset())
            return
        self.signed_in_at = max(at, self.signed_in_at)
        keeps = rests_on_code and "kyc:read" not in scopes
        self.scopes = scopes | (self.scopes & {"kyc:status"} if keeps else frozenset())
        if "claims:read" not in scopes:
            self.proven_at = self.credential_at = None

    def learn(self, now: datetime, *, level: str, at: datetime) -> None:
        """The service answered about the level; ``at``: events from before that are older."""
        self.kyc, self.level = (max(at, self.kyc[0]), False), level
        self.vouched_at, self.is_answered = now, True

    def prove(self, now: datetime, *, issued_at: datetime, adult: bool) -> bool:
        """The service sent a credential. Whether it counts: older ones prove nothing."""
        assert self.has_consent, "a proof was stored without consent"
        known = (self.credential_at or NEVER, self.claims_revoked_at.replace(microsecond=0))
        if issued_at < max(known):
            return False
        self.credential_at, self.proven_at = issued_at, now if adult else None
        return True

    def hear(self, event: Heard) -> None:
        """An event of theirs is delivered, for the first time."""
        if event.event_type == EventType.DATA_DELETION_REQUESTED:
            self.is_erasure_pending = self.is_named = True
        elif not self._is_of_the_erased(event):
            self.is_named = True
        if self.is_linked:
            self._obey(event)

    def _is_of_the_erased(self, event: Heard) -> bool:
        if self.erased_at is None or self.is_erasure_pending:
            return self.is_erasure_pending
        return not self.is_linked or self.erased_at >= event.at

    def _obey(self, event: Heard) -> None:
        kind, at = event.event_type, event.at
        if kind == EventType.DATA_DELETION_REQUESTED:
            at = max(at, event.received_at)
        elif kind in WITHDRAWING and self.signed_in_at - SKEW <= at < self.signed_in_at:
            at = self.signed_in_at
        if kind in WITHDRAWALS and at >= self.signed_in_at:
            self.consent = max(self.consent, (at, True))
            self.revoked_at = max(self.revoked_at, min(at, max(event.received_at, self.arrived_at)))
            self.proven_at, self.credential_at = None, None
            self.sessions += 1
            self.is_withdrawn |= at >= self.arrived_at
            if self.is_withdrawn or self.consent[1]:
                self.kyc, self.is_answered = (NEVER, False), True
                self.level, self.vouched_at = "", None
        elif kind == EventType.CONSENT_GRANTED:
            if at >= event.received_at - HORIZON and at > self.consent[0]:
                self.consent = (at if at <= event.received_at else self.consent[0], False)
        elif kind in (EventType.KYC_VERIFIED, EventType.KYC_REJECTED):
            if not (self.is_withdrawn or self.consent[1] or self.scopes.isdisjoint(KYC_SCOPES)):
                self._obey_kyc(event, at)
        elif kind == EventType.CLAIM_REVOKED and at >= self.signed_in_at:
            heard_at = min(event.at, event.received_at)
            self.claims_revoked_at = max(self.claims_revoked_at, heard_at)
            if event.claim_type in ("", "kyc_verified"):
                self.vouched_at = None
            is_named = event.claim_type in ("", "age_over_18")
            if is_named and event.at >= (self.credential_at or NEVER) - SKEW:
                self.proven_at = None

    def _obey_kyc(self, event: Heard, at: datetime) -> None:
        """The newest counts. A rejection wins over an answer that is hardly newer."""
        is_rejection = event.event_type == EventType.KYC_REJECTED
        if not is_rejection:
            at = min(at, event.received_at)
        elif self.is_answered and not self._rests_on_code and self.kyc[0] - SKEW <= at:
            at = max(at, self.kyc[0])
        if (at, is_rejection) >= self.kyc:
            self.kyc, self.level, self.is_answered = (at, is_rejection), event.level, False
            self.vouched_at = self.vouched_at and min(event.at, event.received_at)

    @property
    def _rests_on_code(self) -> bool:
        return self.credential_at is None and self.signed_in_at < self.code_at

    def erase(self, at: datetime) -> None:
        """The erasure is done; only what is heard from now on may name them again."""
        personal, sessions = self.personal, self.sessions
        self.__init__(erased_at=at, sessions=sessions + 1, personal=personal)  # type: ignore[misc]  # anew

    def is_let_in(self, began_at: datetime) -> bool:
        """Whether the button has to sign them in, begun at that moment and nothing heard since."""
        if self.is_erasure_pending:
            return False
        if self.is_by_code:
            return self.consent[1] and self.revoked_at < began_at
        return not self.is_linked or self.revoked_at < began_at

    def get_free(self) -> None:
        """They prove themselves, and the link that only a code had made goes."""
        assert not self.is_by_code or self.consent[1], "let in by what a code had linked"
        if self.is_by_code:
            kept = {"erased_at": self.erased_at, "is_named": self.is_named}
            sessions, personal = self.sessions + 1, self.personal
            self.__init__(**kept, sessions=sessions, personal=personal)  # type: ignore[misc]  # anew

    def pass_time(self, by: timedelta) -> None:
        moved = {name: _moved(value, by) for name, value in vars(self).items()}
        vars(self).update(moved)


def _moved(value: object, by: timedelta) -> object:
    if isinstance(value, tuple):
        return (_moved(value[0], by), value[1])
    return value - by if isinstance(value, datetime) and value != NEVER else value
