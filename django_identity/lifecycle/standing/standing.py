"""The standing of a user: which gates are open now, and why the others are closed.

Every gate, DRF permission, template filter, page and admin screen asks here and gets the same
answer. It starts from the identity that ``get_user`` read with the user, and costs one query of
claims a request.

Events close gates (``said.effects``). Without an event a gate closes

- by time, as soon as this site's clock reaches the end: of a claim (``valid_until``: its own end or
  its credential's, at most 24 hours after the credential was read; set in ``said.claims``, compared
  in ``values.is_proven``), of a level (``kyc.holds_until``), of a recent sign-in (``step_up``).
- by an answer with less than before: to a re-fetch (``said.claims``), to a sign-in (``arrivals``),
  or to a refresh, if it ends the grant (``grants.end``).
- by a person: a disconnection, an erasure (``leaving``), a revocation by an operator
  (``operators.interventions``).
- with the session (``ground.sessions``).
"""

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeGuard, assert_never

from django.contrib.auth.models import AbstractBaseUser
from django.db.models import prefetch_related_objects
from django.utils import timezone

from django_identity import database
from django_identity.lifecycle.ground import kyc, sessions
from django_identity.lifecycle.ground.values import ClaimValue
from django_identity.lifecycle.standing import shortfalls
from django_identity.models import Consent, LinkedIdentity, StoredClaim, TokenGrant
from django_identity.models.querysets import Changes
from django_identity.reasons import Reason, Shortfall
from django_identity.requirements import (
    RecentSignIn,
    RequiredClaim,
    RequiredLevel,
    RequiredScope,
    Requirement,
)
from django_identity.service.webhooks import REJECTED, VERIFIED

#: The attribute of a user instance that keeps what was read, as Django keeps permissions.
MEMORY = "_identity_memory"
#: Seconds. A user instance can live longer than a request, for example in a stream or a socket.
REMEMBERED_FOR = 5.0


@dataclass(frozen=True, slots=True, repr=False)
class Standing:
    """What the site stores about one user.

    ``barrier``: a reason that closes all gates; then ``identity`` is an empty one. If it is None,
    the consent of ``identity`` is granted.
    """

    barrier: Shortfall | None
    identity: LinkedIdentity = field(default_factory=LinkedIdentity)
    claims: tuple[ClaimValue, ...] = ()

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
        """The stored status; ``run_out`` for a verified person whose level has run out."""
        status = self.identity.kyc_status
        if status == VERIFIED and not self._level_counts():
            return Reason.RUN_OUT
        return status

    def shortfall(self, requirement: Requirement) -> Shortfall | None:
        """Why the gate with ``requirement`` is closed, or None if it is open.

        Whether the person came back lately depends on the session, which ``step_up`` reads. A
        missing session closes such a gate.
        """
        if self.barrier is not None:
            return self.barrier
        match requirement:
            case RequiredClaim():
                return self._claim_shortfall(requirement)
            case RequiredLevel():
                return self.level_shortfall(requirement.level)
            case RequiredScope():
                if self.identity.allows(requirement.scope):
                    return None
                return Shortfall(Reason.SCOPE_NOT_GIVEN)
            case RecentSignIn():
                return Shortfall(Reason.NOT_RECENT)
            case _:
                assert_never(requirement)

    def _claim_shortfall(self, required: RequiredClaim) -> Shortfall | None:
        """Of several claims of the type the one nearest to a proof decides the reason."""
        now = timezone.now()
        if any(claim.meets(required, now) for claim in self.claims):
            return None
        if self.identity.connect_only:
            return Shortfall(Reason.CONNECT_ONLY)

        of_type = [
            claim
            for claim in self.claims
            if claim.row.claim_type == required.claim_type
        ]
        proven = [claim for claim in of_type if claim.is_proven(now)]
        for claim in proven:
            if claim.text:
                return Shortfall(
                    Reason.OTHER_VALUE,
                    None,
                    claim.text,
                    required.claim_type,
                )
        if proven:
            # It says no, or yes without the value that is asked for.
            return Shortfall(shortfalls.why_unproven(self.identity))

        rows = [claim.row for claim in of_type]
        ended = shortfalls.end_of(self.identity, rows)
        if ended is not None:
            return ended
        why = shortfalls.why_not_listed(self.identity, lists_any=bool(self.claims))
        return shortfalls.because(why, self.identity)

    def level_shortfall(self, level: str) -> Shortfall | None:
        """Why the gate for the KYC level is closed, or None if it is open."""
        if self.barrier is not None:
            return self.barrier
        if self.identity.kyc_status != VERIFIED:
            why = shortfalls.why_not_verified(self.identity)
            return shortfalls.because(why, self.identity)
        stored = self.identity.kyc_level
        if not RequiredLevel(level).is_reached_by(stored):
            return Shortfall(Reason.LOWER_LEVEL, held=stored)
        if not self._level_counts():
            ended_at = self.kyc_holds_until
            return shortfalls.because(Reason.RUN_OUT, self.identity, since=ended_at)
        return None

    def account_shortfall(self, grant: TokenGrant | None) -> Shortfall | None:
        """What keeps the account from being fully verified, or None."""
        if self.barrier is not None:
            return self.barrier
        if grant is not None and grant.needs_reauthorization:
            return Shortfall(Reason.PERMISSION_ENDED)
        if self.identity.kyc_status == REJECTED:
            return Shortfall(Reason.REJECTED)
        if self.identity.connect_only:
            return Shortfall(Reason.CONNECT_ONLY)
        expires_at = self.identity.credential_expires_at
        if expires_at is not None and expires_at <= timezone.now():
            return shortfalls.because(Reason.RUN_OUT, self.identity, since=expires_at)
        if self.identity.kyc_status == VERIFIED:
            return self._end_of_all()
        why = shortfalls.why_not_verified(self.identity)
        # A person who chose not to share the level is not reminded of it at each visit.
        if why is Reason.SCOPE_NOT_GIVEN:
            return None
        return shortfalls.because(why, self.identity)

    def _end_of_all(self) -> Shortfall | None:
        """Why no proof is left, or none ever came."""
        now = timezone.now()
        if any(claim.is_proven(now) for claim in self.claims):
            return None
        rows = [claim.row for claim in self.claims]
        ended = shortfalls.end_of(self.identity, rows)
        if ended is None and shortfalls.is_unverifiable(self.identity):
            return shortfalls.because(Reason.UNREAD, self.identity)
        return ended

    def _level_counts(self) -> bool:
        ends_at = self.kyc_holds_until
        if ends_at is None:
            return False
        return timezone.now() < ends_at

    def proven_claims(self) -> dict[str, bool | str]:
        """Claim name -> ``True``, or a text that a gate may require, such as a country.

        It contains exactly the claims for which a gate opens now. If two providers prove a claim,
        the later expiry wins, then the last name.
        """
        if not self.is_linked:
            return {}
        now = timezone.now()
        proven = [claim for claim in self.claims if claim.is_proven(now)]
        proven.sort(
            key=lambda claim: (claim.row.valid_until or now, claim.row.provider),
        )
        shown: dict[str, bool | str] = {}
        for claim in proven:
            if claim.shown:
                shown[claim.row.claim_type] = claim.shown
        return shown


def _nobody() -> Standing:
    return Standing(barrier=Shortfall(Reason.NOT_LINKED))


@dataclass(slots=True, repr=False)
class _Memory:
    """What was read about a user, for five seconds. Pickling the user instance leaves it out.

    This process forgets it as soon as it changes an identity itself: receivers of a sign-in's
    signals and the next page see the new rows.
    """

    user_id: Any
    identity: LinkedIdentity | None
    read_at: float = field(default_factory=time.monotonic)
    newest_change: object = field(default_factory=lambda: Changes.newest)
    standing: Standing | None = None

    def is_fresh(self, user: AbstractBaseUser) -> bool:
        # An instance becomes another account by ``user.pk = None``, Django's way to copy a row.
        if self.user_id != user.pk or self.newest_change is not Changes.newest:
            return False
        return self.read_at > time.monotonic() - REMEMBERED_FOR

    def __reduce__(self) -> tuple[type[None], tuple[()]]:
        return type(None), ()


def standing_of(user: object) -> Standing:
    """The standing of ``user``.

    Only a saved instance of the site's user model has one. It is remembered on the instance for 5
    seconds at most, and until this process changes an identity; expiry is checked at each call.
    """
    if not may_have_standing(user):
        return _nobody()
    memory: _Memory | None = getattr(user, MEMORY, None)
    if memory is None or not memory.is_fresh(user):
        _user, identity = sessions.user_with_identity(user.pk)
        memory = remember(user, identity)
    if memory.standing is None:
        memory.standing = _standing(memory.identity)
    return memory.standing


def standings_of(users: Iterable[object]) -> dict[Any, Standing]:
    """Key -> standing, of all ``users`` who can have one, in two queries.

    It is remembered on each instance, as ``standing_of`` does.
    """
    people = [user for user in users if may_have_standing(user)]
    read = sessions.users_with_identities({user.pk for user in people})
    found = {user.pk: identity for user, identity in read}
    linked = [identity for identity in found.values() if identity is not None]
    prefetch_related_objects(linked, "claims")

    standings: dict[Any, Standing] = {}
    for user in people:
        memory = remember(user, found.get(user.pk))
        memory.standing = _standing(memory.identity)
        standings[user.pk] = memory.standing
    return standings


def may_have_standing(user: object) -> TypeGuard[AbstractBaseUser]:
    """Whether ``user`` is a saved instance of the site's user model, of our database."""
    if getattr(user, "pk", None) is None or not database.is_account(user):
        return False
    return database.is_of_our_database(user)


def remember(user: AbstractBaseUser, identity: LinkedIdentity | None) -> _Memory:
    """Keep the identity on the user instance, so that gates start from it."""
    memory = _Memory(user.pk, identity)
    setattr(user, MEMORY, memory)
    return memory


def share_memory(user: object, same_user: object) -> None:
    """Let another instance of the same person remember what ``user`` remembers.

    Django loads one instance for ``request.user`` and one for ``request.auser()``. Templates of
    async views must be kept from the database.
    """
    setattr(same_user, MEMORY, getattr(user, MEMORY))


def standing_with(identity: LinkedIdentity, claims: Iterable[StoredClaim]) -> Standing:
    """The standing of somebody whose consent is granted, by their identity and its claims."""
    values = tuple(ClaimValue.of(row) for row in claims)
    return Standing(barrier=None, identity=identity, claims=values)


def _standing(identity: LinkedIdentity | None) -> Standing:
    """The standing of a user with this identity. Its claims are read if the consent is granted."""
    if identity is None:
        return _nobody()
    if identity.consent != Consent.GRANTED:
        reason = shortfalls.revocation_reason(identity.revoked_by)
        return Standing(barrier=Shortfall(reason, since=identity.revoked_at))
    return standing_with(identity, identity.claims.all())
