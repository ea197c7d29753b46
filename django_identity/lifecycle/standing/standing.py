"""The standing of one user: the state of every gate, filter, permission and page."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum, StrEnum
from functools import lru_cache
from typing import Any, Final, Self

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractBaseUser
from django.core.exceptions import ImproperlyConfigured
from django.db.models import QuerySet
from django.utils import timezone

from django_identity import conf, database, policy
from django_identity.lifecycle.standing import values
from django_identity.lifecycle.standing.request_memory import memory
from django_identity.lifecycle.upkeep.replacement import KYC_SCOPE
from django_identity.models import Consent, LinkedIdentity, RevokedBy
from django_identity.models.choices import connect_only
from django_identity.models.compiled import CompiledQuery, Given
from django_identity.texts.labels import LEVEL, is_level

VERIFIED = "verified"
# The columns of the one query, in the order in which ``_read`` takes them.
OF_IDENTITY = (
    "consent", "consent_changed_at", "kyc_level", "kyc_status", "kyc_checked_at", "scopes",
    "grant__needs_reauthorization", "grant__updated_at", "connect_issued_at", "signed_in_at",
    "credential_expires_at", "revoked_at", "revoked_by",
)  # fmt: skip
OF_CLAIM = (
    "claims__claim_type", "claims__provider", "claims__value", "claims__valid_until",
    "claims__revoked",
)  # fmt: skip


class Unasked(Enum):
    """The default of an argument. ``None``, as from a missing setting, is always a mistake."""

    UNASKED = "unasked"


UNASKED: Final = Unasked.UNASKED


@dataclass(frozen=True, slots=True)
class Requirement:
    """A claim that a gate requires, and its required value. Without a value it must be true.

    Raises ``ImproperlyConfigured`` for arguments that are not non-empty text.
    """

    claim_type: str
    value: str | Unasked = UNASKED

    def __post_init__(self) -> None:
        require_text(self.claim_type, "a claim's name")
        if self.value is not UNASKED:
            require_text(self.value, "a claim's value")

    @classmethod
    def parse(cls, text: str) -> Self:
        """``"age_over_18"`` or ``"country_resident=NG"``."""
        require_text(text, "what a gate asks for")
        claim_type, asks_value, value = text.partition("=")
        return cls(claim_type, value if asks_value else UNASKED)

    def __str__(self) -> str:
        return self.claim_type if self.value is UNASKED else f"{self.claim_type}={self.value}"


def require_text(given: object, what: str) -> None:
    """Raises ``ImproperlyConfigured`` unless ``given`` is non-empty text."""
    if not isinstance(given, str) or not given.strip():
        raise ImproperlyConfigured(f"{what} must be non-empty text")


class Reason(StrEnum):
    """Why a gate is closed for a signed-in person."""

    NOT_LINKED = "not_linked"
    CONSENT_REVOKED = "consent_revoked"
    #: An operator of the site ended the connection.
    ENDED_BY_SITE = "ended_by_site"
    CONNECT_ONLY = "code_alone"
    NOT_HELD = "not_held"
    NEVER_PROVEN = "never_proven"
    RUN_OUT = "run_out"
    REVOKED = "revoked"
    OTHER_VALUE = "other_value"
    KYC_UNKNOWN = "kyc_unknown"
    NOT_VERIFIED = "not_verified"
    LOWER_LEVEL = "lower_level"
    #: Only on the account page: the site can no longer ask the service about the person.
    PERMISSION_ENDED = "permission_ended"
    PERMISSION_ENDS = "permission_ends"
    # Only operators see these: for the person such an identity counts as not linked.
    NOT_SET_UP = "not_set_up"
    OTHER_ENVIRONMENT = "other_environment"


@dataclass(frozen=True, slots=True)
class Shortfall:
    """Why a gate is closed, ``since`` when, and the value ``held`` instead, if known."""

    reason: Reason
    since: datetime | None = None
    held: str = ""


@dataclass(frozen=True, slots=True)
class HeldClaim:
    """A claim of a linked identity, as stored. ``text``: what a gate with a value compares."""

    claim_type: str
    provider: str
    value: Any
    valid_until: datetime | None
    revoked: bool
    text: str = ""

    def is_proven(self, now: datetime) -> bool:
        """Whether a credential proves the claim, and it has not expired and is not revoked."""
        return not self.revoked and self.valid_until is not None and now < self.valid_until

    def meets(self, requirement: Requirement, now: datetime) -> bool:
        """Whether the claim opens a gate with ``requirement``.

        A disclosed claim can be false; ``values`` says which values open a gate.
        """
        if self.claim_type != requirement.claim_type or not self.is_proven(now):
            return False
        if requirement.value is UNASKED:
            return values.affirms(self.claim_type, self.value)
        return self.text == requirement.value

    def said(self) -> bool | str | None:
        """What a gate may require of the value: a text or ``True``. None if it is denied."""
        return self.text or (True if values.affirms(self.claim_type, self.value) else None)


@dataclass(frozen=True, slots=True)
class Standing:
    """What the site stores about one user.

    ``barrier``: a reason that closes all gates. If it is None, the user has an identity with a
    granted consent. ``kyc_holds_until``: until when the KYC level counts. ``connect_only``: only a
    Connect code verified the user, so there are no claims.
    """

    barrier: Shortfall | None
    kyc_level: str = ""
    kyc_status: str = ""
    kyc_holds_until: datetime | None = None
    claims: tuple[HeldClaim, ...] = ()
    connect_only: bool = False

    @property
    def is_linked(self) -> bool:
        """Whether the user has an identity with a granted consent."""
        return self.barrier is None

    @property
    def consent_revoked_at(self) -> datetime | None:
        """When the consent was revoked, if that closes the gates."""
        ended = (Reason.CONSENT_REVOKED, Reason.ENDED_BY_SITE)
        return self.barrier.since if self.barrier and self.barrier.reason in ended else None

    def has_claim(self, requirement: Requirement) -> bool:
        """Whether the gate with ``requirement`` is open now."""
        now = timezone.now()
        return self.is_linked and any(claim.meets(requirement, now) for claim in self.claims)

    def open_until(self, requirement: Requirement) -> datetime | None:
        """When the last claim that opens the gate with ``requirement`` expires."""
        now = timezone.now()
        ends = [claim.valid_until for claim in self.claims if claim.meets(requirement, now)]
        return max((end for end in ends if end is not None), default=None)

    def has_kyc_level(self, level: str) -> bool:
        """Whether the person has ``level`` or a higher one, and the level still counts."""
        until = self.kyc_holds_until
        return until is not None and timezone.now() < until and self._has_reached(level)

    @property
    def kyc_status_now(self) -> str:
        """The stored status; ``run_out`` for a verified person whose level no longer counts."""
        until = self.kyc_holds_until
        counts = until is not None and timezone.now() < until
        return Reason.RUN_OUT if self.kyc_status == VERIFIED and not counts else self.kyc_status

    def _has_reached(self, level: str) -> bool:
        """Whether the person has ``level`` or a higher one, even if it no longer counts."""
        if not self.is_linked or self.kyc_status != VERIFIED:
            return False
        held, asked = LEVEL.fullmatch(self.kyc_level), LEVEL.fullmatch(level)
        if held is None or asked is None:
            return bool(level) and self.kyc_level == level
        return int(held[1]) >= int(asked[1])

    def shortfall(self, requirement: Requirement) -> Shortfall | None:
        """Why the gate with ``requirement`` is closed, or None if it is open."""
        if self.has_claim(requirement):
            return None
        return self.barrier or self._unproven(requirement.claim_type)

    def level_shortfall(self, level: str) -> Shortfall | None:
        """Why the gate for ``level`` is closed, or None if it is open."""
        if self.has_kyc_level(level):
            return None
        if self.barrier is not None:
            return self.barrier
        if not self.kyc_status:
            return Shortfall(Reason.KYC_UNKNOWN)
        if self.kyc_status != VERIFIED:
            return Shortfall(Reason.NOT_VERIFIED)
        if self._has_reached(level):
            return Shortfall(Reason.RUN_OUT, since=self.kyc_holds_until)
        return Shortfall(Reason.LOWER_LEVEL, held=self.kyc_level)

    def _unproven(self, claim_type: str) -> Shortfall:
        """The reason for the claim type. Of several claims the one nearest to a proof counts."""
        if self.connect_only:
            return Shortfall(Reason.CONNECT_ONLY)
        now = timezone.now()
        held = [claim for claim in self.claims if claim.claim_type == claim_type]
        for claim in held:
            if claim.is_proven(now):
                return Shortfall(Reason.OTHER_VALUE, held=claim.text)
        ends = [claim.valid_until for claim in held if claim.valid_until and not claim.revoked]
        if ends:
            return Shortfall(Reason.RUN_OUT, since=max(ends))
        if any(claim.revoked for claim in held):
            return Shortfall(Reason.REVOKED)
        return Shortfall(Reason.NEVER_PROVEN if held else Reason.NOT_HELD)

    def proven_claims(self) -> dict[str, bool | str]:
        """Claim name -> ``True``, or a text that a gate may require, such as a country.

        It contains only claims that open a gate now, and no claims that the service denied. If two
        providers prove a claim, the later expiry wins, then the first name.
        """
        now = timezone.now()
        proven = [claim for claim in self.claims if self.is_linked and claim.is_proven(now)]
        proven.sort(key=lambda claim: claim.provider)
        proven.sort(key=lambda claim: claim.valid_until or now, reverse=True)
        said: dict[str, bool | str] = {}
        for claim in proven:
            if (value := claim.said()) is not None:
                said.setdefault(claim.claim_type, value)
        return said


NOBODY = Standing(barrier=Shortfall(Reason.NOT_LINKED))


def standing_of(user: object, *, application: str = conf.DEFAULT_ALIAS) -> Standing:
    """The standing of ``user`` under ``application``. One query for each request.

    Only instances of the site's user model have a standing. Other principals get the standing of
    the user that the policy's ``user_of_principal`` returns. The standing is remembered until the
    request ends; expiry is checked at each call.
    """
    person = _person(user, application)
    if person is None or not database.holds(person):
        return NOBODY
    key = (person.pk, application)
    standing: Standing | None = memory.recall(key)
    if standing is None:
        standing = _read(person.pk, conf.application(application))
        memory.keep(key, standing)
    return standing


def shortfall_of(
    user: object, asked: str, *, application: str = conf.DEFAULT_ALIAS
) -> Shortfall | None:
    """Why the gate for ``asked`` (a claim, a claim with a value, or a level) is closed."""
    standing = standing_of(user, application=application)
    if is_level(asked):
        return standing.level_shortfall(asked)
    return standing.shortfall(Requirement.parse(asked))


def revocation_reason(revoked_by: str) -> Reason:
    """Why all gates are closed after a revocation: the person ended the consent, or the site."""
    return Reason.ENDED_BY_SITE if revoked_by == RevokedBy.SITE else Reason.CONSENT_REVOKED


def _person(user: object, application: str) -> AbstractBaseUser | None:
    """The saved user for whom the request is made, or None."""
    model = get_user_model()
    if not getattr(user, "is_authenticated", False):
        return None
    if not isinstance(user, model):
        chosen = policy.load(conf.application(application).policy)
        user = chosen.user_of_principal(user)
    return user if isinstance(user, model) and user.pk is not None else None


def _read(user_id: Any, application: conf.Application) -> Standing:
    query = _query(get_user_model(), application.alias, application.environment)
    rows = query.rows(user_id)
    if not rows:
        return NOBODY
    consent, changed_at, kyc_level, kyc_status, checked_at, scopes = rows[0][:6]
    is_dead, died_at, by_code_at, signed_in_at, expires_at, revoked_at, revoked_by = rows[0][6:13]
    if consent != Consent.GRANTED:
        return Standing(barrier=Shortfall(revocation_reason(revoked_by), since=changed_at))
    # A revocation after the last sign-in has revoked all claims.
    is_over = revoked_at is not None and signed_in_at <= revoked_at
    claims = [
        HeldClaim(
            claim_type,
            provider,
            value,
            valid_until,
            is_over or revoked,
            values.text_in(claim_type, value, application=application.alias),
        )
        for *_, claim_type, provider, value, valid_until, revoked in rows
        if claim_type
    ]
    return Standing(
        barrier=None,
        kyc_level=kyc_level,
        kyc_status=kyc_status,
        kyc_holds_until=_kyc_holds_until(
            application, checked_at, scopes, grant_died_at=died_at if is_dead else None
        ),
        claims=tuple(claims),
        connect_only=connect_only(
            by_code_at=by_code_at, signed_in_at=signed_in_at, expires_at=expires_at
        ),
    )


def _kyc_holds_until(
    application: conf.Application,
    checked_at: datetime | None,
    scopes: Sequence[str],
    *,
    grant_died_at: datetime | None,
) -> datetime | None:
    """Until when the KYC level counts, or None if it does not count.

    Upkeep cannot re-read a level from a Connect code. A level that a grant brought no longer counts
    when the grant needs reauthorization, unless the service confirmed the level after that.
    """
    if checked_at is None:
        return None
    if KYC_SCOPE not in scopes:
        return checked_at + application.connect_kyc_holds
    if grant_died_at is not None and checked_at <= grant_died_at:
        return None
    return checked_at + application.kyc_holds


@lru_cache
def _query(model: type[AbstractBaseUser], application: str, environment: str) -> CompiledQuery:
    """The query for a user under one application: a row for each claim, or one without a claim."""

    def build(user_id: Given) -> QuerySet[Any, Any]:
        identity = LinkedIdentity.objects.filter(
            user_id=user_id, application=application, environment=environment
        )
        return identity.values_list(*OF_IDENTITY, *OF_CLAIM)

    return CompiledQuery(build, model._meta.pk)
