"""The standing of a user: which gates are open now, and why the others are closed.

Every gate, DRF permission, template filter, page and admin screen asks here and gets the same
answer. It starts from the identities that ``get_user`` read with the user, and costs one query of
claims a request.
"""

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractBaseUser
from django.utils import timezone

from django_identity import conf, database
from django_identity.lifecycle import kyc, sessions
from django_identity.lifecycle.requirements import HeldClaim, Requirement
from django_identity.models import Consent, LinkedIdentity, RevokedBy, StoredClaim, TokenGrant
from django_identity.models.querysets import Changes
from django_identity.service.webhooks import VERIFIED
from django_identity.texts.labels import LEVEL, RECENT_SIGN_IN, is_level, is_scope

#: The attribute of a user instance that keeps what was read, as Django keeps permissions.
MEMORY = "_identity_memory"
#: Seconds. A user instance can live longer than a request, for example in a stream or a socket.
REMEMBERED_FOR = 5.0


class Reason(StrEnum):
    """Why a gate is closed for a signed-in person."""

    NOT_LINKED = "not_linked"
    CONSENT_REVOKED = "consent_revoked"
    #: An operator of the site ended the connection.
    ENDED_BY_SITE = "ended_by_site"
    CONNECT_ONLY = "code_alone"
    NOT_HELD = "not_held"
    RUN_OUT = "run_out"
    REVOKED = "revoked"
    OTHER_VALUE = "other_value"
    NOT_VERIFIED = "not_verified"
    LOWER_LEVEL = "lower_level"
    #: The person has not allowed this yet.
    SCOPE_NOT_GIVEN = "scope_not_given"
    #: The person has not come back from the service lately.
    NOT_RECENT = "not_recent"
    #: Only on the account page: the site can no longer ask the service about the person.
    PERMISSION_ENDED = "permission_ended"


@dataclass(frozen=True, slots=True)
class Shortfall:
    """Why a gate is closed, ``since`` when, and what the claim says instead, if known."""

    reason: Reason
    since: datetime | None = None
    held: str = ""
    claim_type: str = ""


@dataclass(frozen=True, slots=True)
class Standing:
    """What the site stores about one user.

    ``barrier``: a reason that closes all gates; then ``identity`` is an empty one. If it is None,
    the consent of ``identity`` is granted.
    """

    barrier: Shortfall | None
    identity: LinkedIdentity = field(default_factory=LinkedIdentity)
    claims: tuple[HeldClaim, ...] = ()

    @property
    def is_linked(self) -> bool:
        """Whether the user has an identity with a granted consent."""
        return self.barrier is None

    @property
    def kyc_holds_until(self) -> datetime | None:
        """Until when the KYC level counts."""
        return kyc.holds_until(self.identity)

    @property
    def kyc_status_now(self) -> str:
        """The stored status; ``run_out`` for a verified person whose level no longer counts."""
        status = self.identity.kyc_status
        return Reason.RUN_OUT if status == VERIFIED and not self._level_counts() else status

    def shortfall(self, requirement: Requirement) -> Shortfall | None:
        """Why the gate with ``requirement`` is closed, or None if it is open.

        Of several claims of the type the one nearest to a proof decides the reason.
        """
        if self.barrier is not None:
            return self.barrier
        now = timezone.now()
        if any(claim.meets(requirement, now) for claim in self.claims):
            return None
        if self.identity.connect_only:
            return Shortfall(Reason.CONNECT_ONLY)
        asked = requirement.claim_type
        held = [claim for claim in self.claims if claim.row.claim_type == asked]
        for claim in held:
            if claim.is_proven(now):
                return Shortfall(Reason.OTHER_VALUE, None, claim.text, asked)
        rows = [claim.row for claim in held]
        ends = [row.valid_until for row in rows if row.valid_until and not row.revoked]
        if ends:
            return Shortfall(Reason.RUN_OUT, since=max(ends))
        is_revoked = any(row.revoked for row in rows)
        return Shortfall(Reason.REVOKED if is_revoked else Reason.NOT_HELD)

    def level_shortfall(self, level: str) -> Shortfall | None:
        """Why the gate for ``level`` is closed, or None if it is open."""
        if self.barrier is not None:
            return self.barrier
        if self.identity.kyc_status != VERIFIED:
            return Shortfall(Reason.NOT_VERIFIED)
        stored = self.identity.kyc_level
        held, asked = LEVEL.fullmatch(stored), LEVEL.fullmatch(level)
        is_reached = bool(level) and stored == level
        if held is not None and asked is not None:
            is_reached = int(held[1]) >= int(asked[1])
        if not is_reached:
            return Shortfall(Reason.LOWER_LEVEL, held=stored)
        is_over = not self._level_counts()
        return Shortfall(Reason.RUN_OUT, since=self.kyc_holds_until) if is_over else None

    def scope_shortfall(self, scope: str) -> Shortfall | None:
        """Why the gate for ``scope`` is closed, or None if the person has allowed it."""
        if self.barrier is not None or scope in self.identity.scopes:
            return self.barrier
        return Shortfall(Reason.SCOPE_NOT_GIVEN)

    def shortfall_for(self, asked: str) -> Shortfall | None:
        """Why the gate for a claim, also with a value, a level, a scope or a sign-in is closed."""
        if is_level(asked):
            return self.level_shortfall(asked)
        if is_scope(asked):
            return self.scope_shortfall(asked)
        if asked == RECENT_SIGN_IN:
            return self.barrier or Shortfall(Reason.NOT_RECENT)
        return self.shortfall(Requirement.parse(asked))

    def account_shortfall(self, grant: TokenGrant | None) -> Shortfall | None:
        """What keeps the account from being fully verified, or None."""
        if self.barrier is not None:
            return self.barrier
        if grant is not None and grant.needs_reauthorization:
            return Shortfall(Reason.PERMISSION_ENDED)
        if self.identity.connect_only:
            return Shortfall(Reason.CONNECT_ONLY)
        expires_at = self.identity.credential_expires_at
        if expires_at is not None and expires_at <= timezone.now():
            return Shortfall(Reason.RUN_OUT, since=expires_at)
        return None if self.identity.kyc_status == VERIFIED else Shortfall(Reason.NOT_VERIFIED)

    def _level_counts(self) -> bool:
        ends_at = self.kyc_holds_until
        return ends_at is not None and timezone.now() < ends_at

    def proven_claims(self) -> dict[str, bool | str]:
        """Claim name -> ``True``, or a text that a gate may require, such as a country.

        It contains only claims that open a gate now, and no claims that the service denied. If two
        providers prove a claim, the later expiry wins, then the last name.
        """
        now = timezone.now()
        proven = [claim for claim in self.claims if self.is_linked and claim.is_proven(now)]
        proven.sort(key=lambda claim: (claim.row.valid_until or now, claim.row.provider))
        return {claim.row.claim_type: claim.said for claim in proven if claim.said}


def _nobody() -> Standing:
    return Standing(barrier=Shortfall(Reason.NOT_LINKED))


@dataclass(slots=True, repr=False)
class _Memory:
    """What was read about a user, for five seconds. It is not pickled with the user instance.

    This process forgets it as soon as it changes an identity itself: the receivers of a sign-in's
    signals, and the page that it leads to, have to see what it has just stored.
    """

    identities: list[LinkedIdentity]
    read_at: float = field(default_factory=time.monotonic)
    newest_change: object = field(default_factory=lambda: Changes.newest)
    standings: dict[str, Standing] = field(default_factory=dict)

    @property
    def is_fresh(self) -> bool:
        if self.newest_change is not Changes.newest:
            return False
        return self.read_at > time.monotonic() - REMEMBERED_FOR

    def __reduce__(self) -> tuple[type[None], tuple[()]]:
        return type(None), ()


def standing_of(user: object, *, application: str = conf.DEFAULT_ALIAS) -> Standing:
    """The standing of ``user`` under ``application``.

    Only a saved instance of the site's user model has one. It is remembered on the instance for 5
    seconds at most, and until this process changes an identity; expiry is checked at each call.
    """
    is_saved = getattr(user, "pk", None) is not None
    if not is_saved or not isinstance(user, get_user_model()) or not database.holds(user):
        return _nobody()
    memory: _Memory | None = getattr(user, MEMORY, None)
    if memory is None or not memory.is_fresh:
        memory = remember(user, sessions.identities_of(user.pk))
    if application not in memory.standings:
        memory.standings[application] = _read(memory.identities, conf.application(application))
    return memory.standings[application]


def revocation_reason(revoked_by: str) -> Reason:
    """Why all gates are closed after a revocation: the person ended the consent, or the site."""
    return Reason.ENDED_BY_SITE if revoked_by == RevokedBy.SITE else Reason.CONSENT_REVOKED


def remember(user: AbstractBaseUser, identities: Iterable[LinkedIdentity]) -> _Memory:
    """Keep the identities on the user instance, so that gates start from them."""
    memory = _Memory(list(identities))
    setattr(user, MEMORY, memory)
    return memory


def _read(identities: Iterable[LinkedIdentity], application: conf.Application) -> Standing:
    place = (application.alias, application.environment)
    here = [each for each in identities if (each.application, each.environment) == place]
    if not here:
        return _nobody()
    identity = here[0]
    if identity.consent != Consent.GRANTED:
        reason = revocation_reason(identity.revoked_by)
        return Standing(barrier=Shortfall(reason, since=identity.revoked_at))
    rows = StoredClaim.objects.filter(identity_id=identity.pk)
    return standing_with(identity, rows)


def standing_with(identity: LinkedIdentity, rows: Iterable[StoredClaim]) -> Standing:
    """The standing of somebody whose consent is granted, by their identity and its claims."""
    claims = tuple(HeldClaim.of(row, application=identity.application) for row in rows)
    return Standing(barrier=None, identity=identity, claims=claims)
