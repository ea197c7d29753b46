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
    signed_in_at: datetime = NEVER
    arrived_at: datetime = NEVER
    revoked_at: datetime = NEVER
    is_withdrawn: bool = False
    kyc: tuple[datetime, bool] = (NEVER, False)
    level: str = ""
    vouched_at: datetime | None = None
    level_counts_for: timedelta = LEVEL_BY_SIGN_IN
    proven_at: datetime | None = None
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
        is_vouched_for = (
            self.vouched_at is not None and now < self.vouched_at + self.level_counts_for
        )
        is_said = self.level == "level_2" and not self.kyc[1]
        return self.has_consent and is_said and is_vouched_for

    def has_claim(self, now: datetime) -> bool:
        return self.has_consent and self.proven_at is not None and now < self.proven_at + DAY

    # What happens

    def arrive(self, began_at: datetime, *, level: str, signs_in: bool, proves: bool) -> None:
        """They came with the service's word, and were let in: consent counts from that second."""
        at = began_at.replace(microsecond=0)
        assert not self.is_erasure_pending, "let in although they are to be erased"
        assert not (self.is_linked and self.consent[1] and self.revoked_at >= began_at), (
            "let in although the consent was taken back since"
        )
        if not self.is_linked:
            self.is_by_code = not signs_in
        self.is_linked = self.is_named = True
        self.consent = (at if self.consent[1] else max(at, self.consent[0]), False)
        if at >= self.kyc[0]:
            self.learn(datetime.now(UTC), level=level, at=at)
        self.level_counts_for = LEVEL_BY_SIGN_IN if signs_in else LEVEL_BY_CODE
        self.arrived_at, self.is_withdrawn = max(at, self.arrived_at), False
        if signs_in:
            self.signed_in_at = max(at, self.signed_in_at)
            self.proven_at = None
        if proves:
            self.prove(datetime.now(UTC))

    def learn(self, now: datetime, *, level: str, at: datetime) -> None:
        """The service answered about the level; ``at``: events from before that are older."""
        self.kyc, self.level = (max(at, self.kyc[0]), False), level
        self.vouched_at = now

    def prove(self, now: datetime) -> None:
        """A credential of this moment proves the claim; they are dated in whole seconds."""
        assert self.has_consent, "a proof was stored without consent"
        self.proven_at = now.replace(microsecond=0)

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
            self.proven_at, self.sessions = None, self.sessions + 1
            self.is_withdrawn |= at >= self.arrived_at
            if self.is_withdrawn or self.consent[1]:
                self.kyc, self.level, self.vouched_at = (NEVER, False), "", None
        elif kind == EventType.CONSENT_GRANTED:
            if at >= event.received_at - HORIZON and at > self.consent[0]:
                self.consent = (at if at <= event.received_at else self.consent[0], False)
        elif kind in (EventType.KYC_VERIFIED, EventType.KYC_REJECTED):
            change = (at, kind == EventType.KYC_REJECTED)
            if change >= self.kyc and not (self.is_withdrawn or self.consent[1]):
                self.kyc, self.level = change, event.level
                self.vouched_at = self.vouched_at and min(at, event.received_at)
        elif kind == EventType.CLAIM_REVOKED:
            if event.claim_type in ("", "kyc_verified") and at >= self.signed_in_at:
                self.vouched_at = None
            if self._loses_claim(event):
                self.proven_at = None

    def _loses_claim(self, event: Heard) -> bool:
        """What was proven since, or came with a sign-in since, stands."""
        is_named = event.claim_type in ("", "age_over_18")
        since = max(self.proven_at or NEVER, self.signed_in_at)
        return is_named and event.at >= since - SKEW

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
