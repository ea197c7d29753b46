"""Valid access tokens of a linked identity. A refresh token is never sent twice.

Refresh tokens rotate on use. The caller that gets the row's lease sends the token, outside any
transaction, and stores the answer with a second conditional UPDATE. The others wait for it. If a
worker dies, its lease ends after 25 seconds.
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
    SealedValueUnreadable,
    ServiceAway,
    ServiceError,
    ServiceUnavailable,
    SubjectMismatch,
)
from django_identity.lifecycle.upkeep import grants
from django_identity.lifecycle.upkeep.durable import durably, may_read_first
from django_identity.lifecycle.upkeep.token_subjects import named_subject
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
    """An access token. ``fresh``: it was just refreshed. ``generation``: the row's generation."""

    value: str = field(repr=False)
    generation: int
    fresh: bool


@dataclass(frozen=True, slots=True)
class _Want:
    """The wanted token: not ``rejected``, and of a generation after ``beyond``."""

    application: Application
    identity: LinkedIdentity
    client: ServiceClient
    rejected: str | None = field(default=None, repr=False)
    beyond: int = 0


@sensitive_variables()
def access_token_for(
    identity: LinkedIdentity, *, rejected: str | None = None, client: ServiceClient | None = None
) -> str:
    """A valid access token of ``identity``. It is refreshed if necessary.

    ``rejected``: a token that the service refused before its expiry, so it is not returned again.
    ``client``: its priority is used for a refresh. Concurrent callers, in any number of threads and
    processes, cause only one refresh.

    It may be called inside a transaction: new tokens stay stored if the transaction rolls back. The
    refresh then uses its own database connection, so the identity must be committed already. On
    SQLite a transaction that has written (or has read, without WAL) locks the whole database. Then
    nothing is sent, and ``RefreshPending`` is raised after two seconds.

    Raises ``ReauthorizationNeeded`` if the grant is dead or the account is disabled. Raises a
    ``ServiceError`` if the service gave no token; ``RefreshPending`` means that another attempt is
    running or has just failed.
    """
    return current(identity, rejected=rejected, client=client).value


@sensitive_variables()
def current(
    identity: LinkedIdentity, *, rejected: str | None = None, client: ServiceClient | None = None
) -> HeldToken:
    """Like ``access_token_for``, but also tells whether this call refreshed the token."""
    want = _want(identity, rejected=rejected, client=client)
    grant = grants.grant_of(identity) if may_read_first() else None
    return _usable_token(want, grant) or durably(partial(_renew, want, grant))


def keep_alive(identity: LinkedIdentity, *, client: ServiceClient | None = None) -> bool:
    """Refresh the grant if it is unused and expires soon. Returns whether it was refreshed.

    Raises like ``access_token_for``.
    """
    grant = grants.grant_of(identity)
    if grant is None or not expiring_unused().filter(pk=grant.pk).exists():
        return False
    return durably(partial(_renew, _want(identity, client=client, beyond=grant.generation))).fresh


def expiring_unused() -> models.QuerySet[TokenGrant]:
    """Grants that expire in less than five days and were not used for one day."""
    now = timezone.now()
    return TokenGrant.objects.filter(
        ~disabled_account("identity__user"),
        refresh_expires_at__gt=now,
        refresh_expires_at__lt=now + KEPT_ALIVE_AHEAD,
        access_expires_at__lt=now - UNUSED_FOR,
        needs_reauthorization=False,
    )


def mark_dead(identity: LinkedIdentity, *, generation: int, reason: str) -> None:
    """The service refuses the tokens of this generation: delete them and send the signal."""
    grant = grants.grant_of(identity)
    if grant is not None and grant.generation == generation:
        grants.mark_dead(identity, grant, reason=reason)


@sensitive_variables()
def store(application: Application, identity: LinkedIdentity, answer: TokenAnswer) -> None:
    """Store the tokens of a sign-in, replacing older ones.

    It increments ``generation``, so that a running refresh of the older tokens stores nothing.
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
    """The stored access token, if the caller can use it."""
    if grant is None or grant.generation <= want.beyond:
        return None
    if grant.access_expires_at <= timezone.now():
        return None
    token = grants.open_token(want.application, want.identity, grant, "access_token")
    if token is None or token == want.rejected:
        return None
    return HeldToken(token, grant.generation, fresh=False)


@sensitive_variables()
def _renew(want: _Want, grant: TokenGrant | None = None) -> HeldToken:
    """Refresh, or wait for the caller that does. The row is re-read each time.

    ``grant``: the row, if it was just read.
    """
    give_up_at = time.monotonic() + LONGEST_WAIT
    pause = FIRST_POLL
    while True:
        grant = grant or grants.grant_of(want.identity)
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
            grant = None
            continue
        if time.monotonic() > give_up_at:
            raise RefreshPending("somebody else's refresh brought nothing", endpoint="token")
        time.sleep(pause * random.uniform(0.5, 1.5))  # noqa: S311  spreads polls, guards nothing
        pause = min(pause * 2, LONGEST_POLL)
        grant = None


@sensitive_variables()
def _refresh_token(want: _Want, grant: TokenGrant) -> str:
    """The stored refresh token. Without one, mark the grant and raise ``ReauthorizationNeeded``.

    A token that no key opens is kept, because the missing key may return.
    """
    token = grants.open_token(want.application, want.identity, grant, "refresh_token")
    if token is not None:
        return token
    if not grant.needs_reauthorization:
        reason = SealedValueUnreadable.code if grant.refresh_token else "no_refresh_token"
        grants.mark_dead(want.identity, grant, reason=reason, keep_sealed=True)
    raise ReauthorizationNeeded("no refresh token that can be used")


def _win_lease(grant: TokenGrant) -> bool:
    """Try to take the lease. A lease of another worker is seen without an UPDATE."""
    if grants.is_leased(grant):
        return False
    try:
        return grants.lease(grant)
    except OperationalError:
        raise RefreshPending("the grant is locked in the database", endpoint="token") from None


@sensitive_variables()
def _refresh(want: _Want, grant: TokenGrant, refresh_token: str) -> HeldToken | None:
    """Send the refresh token once and store the answer.

    Returns None and discards the answer if the row has changed (a sign-in, a revocation).
    """
    asked_at, store_until = timezone.now(), grants.store_until(leased_at=time.monotonic())
    try:
        answer = want.client.refresh(refresh_token)
        if named_subject(want.application, answer) not in (None, want.identity.subject):
            raise SubjectMismatch("a token of another subject", endpoint="token")
    except (InvalidGrant, SubjectMismatch) as error:
        # Final, unless another caller has stored newer tokens; then the next look finds them.
        if grants.mark_dead(want.identity, grant, reason=error.code):
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

    If the service may have received it, wait: the token could be spent, and a spent token that is
    sent again looks stolen.
    """
    now = timezone.now()
    if isinstance(error, (BudgetSpent, ServiceAway)):
        return None
    if isinstance(error, RateLimited):
        return now + timedelta(seconds=max(error.retry_after, SHORTEST_PAUSE))
    if isinstance(error, ServiceUnavailable) and not error.may_have_arrived:
        return now + UNSENT_PAUSE
    return now + UNANSWERED_PAUSE
