"""Valid access tokens of a linked identity. A refresh token is never sent twice.

Refresh tokens rotate on use, and each step of a refresh is one conditional UPDATE of the grant's
row. The caller that gets the lease sends the token, outside any transaction, and stores the answer
if the row is unchanged. The others wait for it. If a worker dies, its lease ends after 25 seconds.

``generation`` numbers the tokens: storing newer tokens increments it. ``lease_until`` is the end of
the lease. Before ``retry_at`` nobody refreshes, because the last attempt got no usable answer.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any, TypeVar

from django.db import InterfaceError, InternalError, OperationalError, models
from django.db.models import F, Q
from django.utils import timezone
from django.views.decorators.debug import sensitive_variables

from django_identity import conf, database, exceptions, signals, vault
from django_identity.conf import Application
from django_identity.lifecycle.upkeep.key_sets import subject_of
from django_identity.lifecycle.upkeep.threads import durably, may_read_first
from django_identity.models import LinkedIdentity, TokenGrant, disabled_account
from django_identity.service import ServiceClient, backoff
from django_identity.service.answers import TokenAnswer
from django_identity.service.budget import Priority
from django_identity.telemetry import LogEvent, log_refusal

REFRESH_TOKEN_LIFETIME = timedelta(days=30)
# A token is not used in its last seconds, because clocks differ and a call takes time.
LONGEST_MARGIN = 60.0
MARGIN_SHARE = 0.1
# Longer than the longest refresh. An expired lease means that the worker has died.
LEASE = timedelta(seconds=25)
# A little longer, because the clocks of two machines differ. A lease that ends even later was
# written by a wrong clock.
LONGEST_BELIEVED_LEASE = timedelta(seconds=30)
LONGEST_BELIEVED_PAUSE = timedelta(hours=1)
# Storing ends this many seconds before the lease.
STORE_MARGIN = 1.0
LONGEST_STORE_PAUSE = 0.5
LONGEST_WAIT = 20.0
FIRST_POLL = 0.05
LONGEST_POLL = 0.5
UNANSWERED_PAUSE = timedelta(seconds=30)
UNSENT_PAUSE = timedelta(seconds=5)
SHORTEST_PAUSE = 1.0
KEPT_ALIVE_AHEAD = timedelta(days=5)
UNUSED_FOR = timedelta(days=1)

T = TypeVar("T")

logger = logging.getLogger("django_identity.tokens")


@dataclass(frozen=True, slots=True)
class HeldToken:
    """An access token. ``fresh``: it was just refreshed. ``generation``: the row's generation."""

    value: str = field(repr=False)
    generation: int
    fresh: bool


@dataclass(slots=True)
class Reader:
    """Reads from the service with the person's access token, refreshed once if it is refused.

    ``rejected``: a token that the service refused before its expiry, so it is not used again.
    ``beyond``: only tokens of a generation after this one are used. ``grant``: the row, if it was
    just read; it is not read again before its first use.
    """

    application: Application
    identity: LinkedIdentity
    client: ServiceClient
    rejected: str | None = field(default=None, repr=False)
    beyond: int = 0
    grant: TokenGrant | None = field(default=None, repr=False)
    _held: HeldToken | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        environment = self.identity.environment
        if self.application.environment != environment:
            said = f"The identity is not of the environment {environment}."
            raise exceptions.ConfigurationError(said)

    @sensitive_variables()
    def read(self, call: Callable[[str], T]) -> T:
        """``call(access_token)``. A 401 for a fresh token means that the consent was revoked."""
        held = self._held = self._held or self.token()
        if not held.fresh:
            try:
                return call(held.value)
            except exceptions.AccessTokenRejected:
                self.rejected = held.value
                held = self._held = self.token()
        try:
            return call(held.value)
        except exceptions.AccessTokenRejected as refused:
            mark_dead(self.identity, generation=held.generation, reason=refused.code)
            said = f"a fresh token was refused: {refused.code}"
            raise exceptions.ReauthorizationNeeded(said) from refused

    @sensitive_variables()
    def token(self) -> HeldToken:
        """A valid access token: the stored one, or a new one."""
        grant, self.grant = self.grant, None
        grant = grant or (_grant_of(self.identity) if may_read_first() else None)
        return self._usable_token(grant) or durably(partial(self.renew, grant))

    @sensitive_variables()
    def renew(self, grant: TokenGrant | None = None) -> HeldToken:
        """Refresh, or wait for the caller that does. ``grant``: the row, if it was just read."""
        give_up_at = time.monotonic() + LONGEST_WAIT
        pause = FIRST_POLL
        while True:
            grant = grant or _grant_of(self.identity)
            held = self._usable_token(grant)
            if held is not None:
                return held
            if grant is None:
                raise exceptions.ReauthorizationNeeded("there is no grant")
            refresh_token = self._refresh_token(grant)
            if _is_ahead(grant.retry_at, at_most=LONGEST_BELIEVED_PAUSE):
                raise exceptions.RefreshPending("not answered a moment ago", endpoint="token")
            if lease(grant):
                held = self._refresh(grant, refresh_token)
                if held is not None:
                    return held
            elif time.monotonic() > give_up_at:
                said = "somebody else's refresh brought nothing"
                raise exceptions.RefreshPending(said, endpoint="token")
            else:
                time.sleep(backoff.spread(pause / 2, pause * 1.5))
                pause = min(pause * 2, LONGEST_POLL)
            # The row has changed, or another caller may have changed it.
            grant = None

    @sensitive_variables()
    def _usable_token(self, grant: TokenGrant | None) -> HeldToken | None:
        """The stored access token, if the caller can use it."""
        if grant is None or grant.generation <= self.beyond:
            return None
        if grant.access_expires_at <= timezone.now():
            return None
        token = self._open(grant, "access_token")
        if token is None or token == self.rejected:
            return None
        return HeldToken(token, grant.generation, fresh=False)

    @sensitive_variables()
    def _refresh_token(self, grant: TokenGrant) -> str:
        """The stored refresh token. Without one, mark the grant and raise."""
        token = self._open(grant, "refresh_token")
        if token is not None:
            return token
        if not grant.needs_reauthorization:
            unreadable = exceptions.SealedValueUnreadable.code
            reason = unreadable if grant.refresh_token else "no_refresh_token"
            # A token that no key opens is kept, because the missing key may return.
            _mark_dead(self.identity, grant, reason=reason, keep_sealed=True)
        raise exceptions.ReauthorizationNeeded("no refresh token that can be used")

    @sensitive_variables()
    def _open(self, grant: TokenGrant, column: str) -> str | None:
        """The decrypted token of the column, or None if it is missing or no key opens it."""
        sealed, keys = getattr(grant, column), self.application.encryption_keys
        if not sealed:
            return None
        try:
            context = self.identity.sealing_context(column)
            return vault.unseal(sealed, keys=keys, context=context)
        except exceptions.SealedValueUnreadable:
            logger.error("the %s of grant #%s cannot be opened", column, grant.pk)
            return None

    @sensitive_variables()
    def _refresh(self, grant: TokenGrant, refresh_token: str) -> HeldToken | None:
        """Send the refresh token once and store the answer. None if the row has changed since."""
        asked_at = timezone.now()
        # Until then no other worker can have the lease.
        store_until = time.monotonic() + LEASE.total_seconds() - STORE_MARGIN
        try:
            answer = self.client.refresh(refresh_token)
            if subject_of(self.application, answer) not in (None, self.identity.subject):
                raise exceptions.SubjectMismatch("a token of another subject", endpoint="token")
        except (exceptions.InvalidGrant, exceptions.SubjectMismatch) as error:
            # Final, unless another caller has stored newer tokens; then the next look finds them.
            if _mark_dead(self.identity, grant, reason=error.code):
                said = f"the refresh failed: {error.code}"
                raise exceptions.ReauthorizationNeeded(said) from error
            return None
        except exceptions.ServiceError as error:
            retry_at = _retry_at(error)
            _same(grant).update(lease_until=None, retry_at=retry_at, updated_at=timezone.now())
            raise
        changed = _columns_of(self.application, self.identity, answer, asked_at=asked_at)
        if not _replace(grant, changed, store_until=store_until):
            return None
        return HeldToken(answer.access_token, grant.generation + 1, fresh=True)


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
    application = conf.application(identity.application)
    sender = client or ServiceClient(application)
    return Reader(application, identity, sender, rejected).token().value


def keep_alive(identity: LinkedIdentity) -> bool:
    """Refresh the grant if it is unused and expires soon. Returns whether it was refreshed.

    Raises like ``access_token_for``.
    """
    grant = _grant_of(identity)
    if grant is None or not expiring_unused().filter(pk=grant.pk).exists():
        return False
    application = conf.application(identity.application)
    client = ServiceClient(application, priority=Priority.UPKEEP)
    return durably(Reader(application, identity, client, beyond=grant.generation).renew).fresh


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


@sensitive_variables()
def store(application: Application, identity: LinkedIdentity, answer: TokenAnswer) -> None:
    """Store the tokens of a sign-in, replacing older ones.

    It increments ``generation``, so that a running refresh of the older tokens stores nothing.
    """
    columns = {
        "refresh_token": "",
        "refresh_expires_at": None,
        "scopes": list(application.scopes),
        **_columns_of(application, identity, answer, asked_at=timezone.now()),
    }
    grants = TokenGrant.objects.filter(identity_id=identity.pk)
    if not grants.update(generation=F("generation") + 1, **columns):
        TokenGrant.objects.create(identity=identity, **columns)


def _retry_at(error: exceptions.ServiceError) -> datetime | None:
    """When the same refresh token may be sent again.

    If the service may have received it, wait: the token could be spent, and a spent token that is
    sent again looks stolen.
    """
    now = timezone.now()
    if isinstance(error, (exceptions.BudgetSpent, exceptions.ServiceAway)):
        return None
    if isinstance(error, exceptions.RateLimited):
        return now + timedelta(seconds=max(error.retry_after, SHORTEST_PAUSE))
    if isinstance(error, exceptions.ServiceUnavailable) and not error.may_have_arrived:
        return now + UNSENT_PAUSE
    return now + UNANSWERED_PAUSE


# The row of the grant


def _grant_of(identity: LinkedIdentity) -> TokenGrant | None:
    """Read the grant from the database. None for a disabled account."""
    usable = TokenGrant.objects.filter(~disabled_account("identity__user"))
    return usable.filter(identity_id=identity.pk).first()


@sensitive_variables()
def _columns_of(
    application: Application, identity: LinkedIdentity, answer: TokenAnswer, *, asked_at: datetime
) -> dict[str, Any]:
    """The columns that a token answer changes. Without a refresh token the stored one stays."""
    keys = application.encryption_keys
    margin = min(LONGEST_MARGIN, answer.expires_in * MARGIN_SHARE)
    changed: dict[str, Any] = {
        "access_token": vault.seal(
            answer.access_token, keys=keys, context=identity.sealing_context("access_token")
        ),
        "access_expires_at": asked_at + timedelta(seconds=answer.expires_in - margin),
        "lease_until": None,
        "retry_at": None,
        "needs_reauthorization": False,
        "updated_at": timezone.now(),
    }
    if answer.refresh_token is not None:
        changed["refresh_token"] = vault.seal(
            answer.refresh_token, keys=keys, context=identity.sealing_context("refresh_token")
        )
        changed["refresh_expires_at"] = asked_at + REFRESH_TOKEN_LIFETIME
    if answer.scopes is not None:
        changed["scopes"] = list(answer.scopes)
    return changed


def lease(grant: TokenGrant) -> bool:
    """Take the lease to refresh these tokens. Returns False if another worker has it."""
    now = timezone.now()
    if _is_ahead(grant.lease_until, at_most=LONGEST_BELIEVED_LEASE):
        return False
    unbelieved = Q(lease_until__gt=now + LONGEST_BELIEVED_LEASE)
    free = Q(lease_until=None) | Q(lease_until__lte=now) | unbelieved
    try:
        # Not after an attempt that has failed since the grant was read.
        same = _same(grant).filter(free, retry_at=grant.retry_at)
        return bool(same.update(lease_until=now + LEASE, updated_at=now))
    except OperationalError:
        raise exceptions.RefreshPending(
            "the grant is locked in the database", endpoint="token"
        ) from None


def _is_ahead(moment: datetime | None, *, at_most: timedelta) -> bool:
    now = timezone.now()
    return moment is not None and now < moment <= now + at_most


def _replace(grant: TokenGrant, changed: dict[str, Any], *, store_until: float) -> bool:
    """Replace the tokens of ``grant``. Returns False if the row has changed meanwhile.

    A revocation deletes the row, and a sign-in increments the generation. In both cases the late
    answer is discarded. The answer cannot be requested again, so if the database fails, storing is
    retried until ``store_until`` (``time.monotonic``).
    """
    pause = 0.05
    while True:
        try:
            return bool(_same(grant).update(generation=F("generation") + 1, **changed))
        except (OperationalError, InterfaceError, InternalError):
            if database.connection().in_atomic_block or time.monotonic() + pause > store_until:
                raise
            database.connection().close()
            time.sleep(pause)
            pause = min(pause * 2, LONGEST_STORE_PAUSE)


def mark_dead(identity: LinkedIdentity, *, generation: int, reason: str) -> None:
    """The service refuses the tokens of this generation: delete them and send the signal."""
    grant = _grant_of(identity)
    if grant is not None and grant.generation == generation:
        _mark_dead(identity, grant, reason=reason)


def _mark_dead(
    identity: LinkedIdentity, grant: TokenGrant, *, reason: str, keep_sealed: bool = False
) -> bool:
    """Mark the grant as dead, delete its tokens and send the signal. False if it has changed."""
    dropped = {} if keep_sealed else {"access_token": "", "refresh_token": ""}
    marked = _same(grant).update(
        generation=F("generation") + 1, needs_reauthorization=True, lease_until=None,
        retry_at=None, updated_at=timezone.now(), **dropped,
    )  # fmt: skip
    if marked and not grant.needs_reauthorization:
        facts = {"identity": identity.pk, "reason": reason}
        log_refusal(LogEvent.GRANT_LOST, application=identity.application, **facts)
        signals.announce(signals.reauthorization_needed, LinkedIdentity, identity=identity)
    return bool(marked)


def _same(grant: TokenGrant) -> Any:
    return TokenGrant.objects.filter(pk=grant.pk, generation=grant.generation)
