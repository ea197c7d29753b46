"""The grant of a linked identity: a token with life left, and never two refreshes of one token.

Refresh tokens rotate on use, so each is sent once: whoever wins the row's lease sends it, outside
any transaction, and stores what comes back by a second conditional UPDATE; the others wait for it.
A worker that dies leaves a lease that runs out after 25 seconds.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial

from django.db import OperationalError, models
from django.db.models import F
from django.utils import timezone
from django.views.decorators.debug import sensitive_variables

from django_identity import conf
from django_identity.conf import Application
from django_identity.exceptions import (
    BudgetSpent,
    ConfigurationError,
    InvalidGrant,
    RateLimited,
    ReauthorizationNeeded,
    RefreshPending,
    ServiceAway,
    ServiceError,
    ServiceUnavailable,
    SubjectMismatch,
)
from django_identity.lifecycle.upkeep import grants
from django_identity.lifecycle.upkeep.durable import durably, may_read_first
from django_identity.models import LinkedIdentity, TokenGrant, disabled_account
from django_identity.service import ServiceClient
from django_identity.service.messages import TokenAnswer

LONGEST_WAIT = 20.0
FIRST_POLL = 0.05
LONGEST_POLL = 0.5
UNANSWERED_PAUSE = timedelta(seconds=30)
UNSENT_PAUSE = timedelta(seconds=5)
SHORTEST_PAUSE = 1.0
KEPT_ALIVE_AHEAD = timedelta(days=5)
UNUSED_FOR = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class HeldToken:
    """An access token. ``fresh``: it was refreshed just now; ``generation``: the row's then."""

    value: str = field(repr=False)
    generation: int
    fresh: bool


@dataclass(frozen=True, slots=True)
class _Want:
    """What the caller needs: a token that is not ``rejected``, of a generation past ``beyond``."""

    application: Application
    identity: LinkedIdentity
    client: ServiceClient
    rejected: str | None = field(default=None, repr=False)
    beyond: int = 0


@sensitive_variables()
def access_token_for(
    identity: LinkedIdentity, *, rejected: str | None = None, client: ServiceClient | None = None
) -> str:
    """An access token of ``identity`` with life left, refreshed if need be.

    ``rejected``: a token that the service refused although it had not expired; it is not given
    again. ``client`` says with which priority a refresh is sent. Callers at the same moment, in
    any number of threads and processes, lead to one refresh.

    May be called inside a transaction: what was refreshed stays stored if that rolls back. The
    refresh then uses a database connection of its own, so the identity must be committed already.
    On SQLite a transaction that has written, or without WAL has read, locks the whole database:
    then nothing is sent, and ``RefreshPending`` is raised after two seconds.

    Raises ``ReauthorizationNeeded`` if there is none to be had, or the account is disabled; a
    ``ServiceError`` if the service gave none, of which ``RefreshPending`` means that another try is
    on its way or just failed.
    """
    return current(identity, rejected=rejected, client=client).value


@sensitive_variables()
def current(
    identity: LinkedIdentity, *, rejected: str | None = None, client: ServiceClient | None = None
) -> HeldToken:
    """As ``access_token_for``, and says whether the token was refreshed for this very call."""
    want = _want(identity, rejected=rejected, client=client)
    held = _usable_token(want, grants.grant_of(identity)) if may_read_first() else None
    return held or durably(partial(_renew, want))


def keep_alive(identity: LinkedIdentity, *, client: ServiceClient | None = None) -> bool:
    """Refresh the grant if it would run out soon and nothing else used it. False: no need to.

    Raises as ``access_token_for``.
    """
    grant = grants.grant_of(identity)
    if grant is None or not expiring_unused().filter(pk=grant.pk).exists():
        return False
    return durably(partial(_renew, _want(identity, client=client, beyond=grant.generation))).fresh


def expiring_unused() -> models.QuerySet[TokenGrant]:
    """Grants that live under five more days and that nothing used for a day."""
    now = timezone.now()
    return TokenGrant.objects.filter(
        ~disabled_account("identity__user"),
        refresh_expires_at__gt=now,
        refresh_expires_at__lt=now + KEPT_ALIVE_AHEAD,
        access_expires_at__lt=now - UNUSED_FOR,
        needs_reauthorization=False,
    )


def mark_dead(identity: LinkedIdentity, *, generation: int) -> None:
    """The service no longer honours the tokens of that generation: drop them and say so."""
    grant = grants.grant_of(identity)
    if grant is not None and grant.generation == generation:
        grants.mark_dead(identity, grant)


@sensitive_variables()
def store(application: Application, identity: LinkedIdentity, answer: TokenAnswer) -> None:
    """Keep the tokens of a sign-in, in place of any older ones.

    ``generation`` rises, so that a refresh of the older ones that is on its way stores nothing.
    """
    columns = {
        "refresh_token": "",
        "refresh_expires_at": None,
        "scopes": list(application.scopes),
        **grants.columns_of(application, identity, answer, asked_at=timezone.now()),
    }
    replaced = TokenGrant.objects.filter(identity=identity).update(
        generation=F("generation") + 1, **columns
    )
    if not replaced:
        TokenGrant.objects.create(identity=identity, **columns)


def _want(
    identity: LinkedIdentity,
    *,
    rejected: str | None = None,
    client: ServiceClient | None = None,
    beyond: int = 0,
) -> _Want:
    application = conf.application(identity.application)
    if application.environment != identity.environment:
        raise ConfigurationError(f"The identity is not of the environment {identity.environment}.")
    sender = client or ServiceClient(application)
    return _Want(application, identity, sender, rejected=rejected, beyond=beyond)


@sensitive_variables()
def _usable_token(want: _Want, grant: TokenGrant | None) -> HeldToken | None:
    """The stored access token, if it is one that the caller can use."""
    if grant is None or grant.generation <= want.beyond:
        return None
    if grant.access_expires_at <= timezone.now():
        return None
    token = grants.open_token(want.application, want.identity, grant, "access_token")
    if token is None or token == want.rejected:
        return None
    return HeldToken(token, grant.generation, fresh=False)


@sensitive_variables()
def _renew(want: _Want) -> HeldToken:
    """Refresh, or wait for the one who does. Each look at the row is a new one."""
    give_up_at = time.monotonic() + LONGEST_WAIT
    pause = FIRST_POLL
    while True:
        grant = grants.grant_of(want.identity)
        held = _usable_token(want, grant)
        if held is not None:
            return held
        if grant is None:
            raise ReauthorizationNeeded("there is no grant")
        refresh_token = _refresh_token(want, grant)
        if grants.is_paused(grant):
            raise RefreshPending("not answered a moment ago", endpoint="token")
        if _win_lease(grant):
            held = _refresh(want, grant, refresh_token)
            if held is not None:
                return held
            continue
        if time.monotonic() > give_up_at:
            raise RefreshPending("somebody else's refresh brought nothing", endpoint="token")
        time.sleep(pause * random.uniform(0.5, 1.5))  # noqa: S311  spreads polls, guards nothing
        pause = min(pause * 2, LONGEST_POLL)


@sensitive_variables()
def _refresh_token(want: _Want, grant: TokenGrant) -> str:
    """The stored refresh token. Raises ``ReauthorizationNeeded``, and marks it, if there is none.

    A key that comes back brings back what it opens, so what cannot be opened is not thrown away.
    """
    token = grants.open_token(want.application, want.identity, grant, "refresh_token")
    if token is not None:
        return token
    if not grant.needs_reauthorization:
        grants.mark_dead(want.identity, grant, keep_sealed=True)
    raise ReauthorizationNeeded("no refresh token that can be used")


def _win_lease(grant: TokenGrant) -> bool:
    """Whether this caller may refresh. A lease that runs is seen without asking for it."""
    if grants.is_leased(grant):
        return False
    try:
        return grants.lease(grant)
    except OperationalError:
        raise RefreshPending("the grant is locked in the database", endpoint="token") from None


@sensitive_variables()
def _refresh(want: _Want, grant: TokenGrant, refresh_token: str) -> HeldToken | None:
    """Send the refresh token, once, and store what comes back.

    None if the row has changed in the meantime (a sign-in, a revocation): what came is thrown away.
    """
    asked_at, store_until = timezone.now(), grants.store_until(leased_at=time.monotonic())
    try:
        answer = want.client.refresh(refresh_token)
        if answer.subject not in (None, want.identity.subject):
            raise SubjectMismatch("a token of another subject", endpoint="token")
    except (InvalidGrant, SubjectMismatch) as error:
        # Final, unless somebody else has stored newer tokens: then the next look finds them.
        if grants.mark_dead(want.identity, grant):
            raise ReauthorizationNeeded(f"the refresh failed: {error.code}") from error
        return None
    except ServiceError as error:
        grants.release(grant, retry_at=_retry_at(error))
        raise
    changed = grants.columns_of(want.application, want.identity, answer, asked_at=asked_at)
    if not grants.replace(grant, changed, store_until=store_until):
        return None
    return HeldToken(answer.access_token, grant.generation + 1, fresh=True)


def _retry_at(error: ServiceError) -> datetime | None:
    """When the same refresh token may be sent again.

    If the service may have read it, that is not at once: it could have been spent, and a second
    sight of it looks like theft.
    """
    now = timezone.now()
    if isinstance(error, (BudgetSpent, ServiceAway)):
        return None
    if isinstance(error, RateLimited):
        return now + timedelta(seconds=max(error.retry_after, SHORTEST_PAUSE))
    if isinstance(error, ServiceUnavailable) and not error.may_have_arrived:
        return now + UNSENT_PAUSE
    return now + UNANSWERED_PAUSE
