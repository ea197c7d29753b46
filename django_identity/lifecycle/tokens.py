"""Valid access tokens of a linked identity. A refresh token is never sent twice.

Refresh tokens rotate on use. The caller that gets the lease, by one conditional UPDATE, sends the
token outside any transaction and stores the answer if ``generation``, the number of the tokens, is
unchanged. The others wait for it. If a worker dies, its lease ends after five minutes: an answer
that arrives byte by byte may take almost as long. Before ``retry_at`` nobody refreshes, because
the last attempt got no usable answer.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeVar

from django.db import InterfaceError, InternalError, OperationalError
from django.db.models import F, Q
from django.utils import timezone

from django_identity import conf, database, exceptions, signals
from django_identity.conf import Application
from django_identity.lifecycle import sealing, sessions
from django_identity.lifecycle.key_sets import subject_of
from django_identity.lifecycle.withdrawal import NO_LEVEL
from django_identity.logs import LogEvent, log
from django_identity.models import LinkedIdentity, TokenGrant
from django_identity.models.querysets import disabled_account
from django_identity.secrets import Secret
from django_identity.service import ServiceClient
from django_identity.service.answers import TokenAnswer

# Longer than any refresh. An expired lease means that the worker has died.
LEASE = timedelta(minutes=5)
# For so many seconds storing is tried again while the database is away.
STORED_WITHIN = 20.0
LONGEST_WAIT = 10.0
POLL = 0.2
# Before the same refresh token is sent again. A spent one that is sent again looks stolen.
UNANSWERED_PAUSE = 30.0
PUT_KEY_BACK = "put the former key back into ENCRYPTION_KEYS, behind the current one"

NOT_HERE = (
    "The access token has to be refreshed, which cannot be done inside a transaction: a rollback"
    " would lose the new tokens. Call access_token_for before the transaction begins; with"
    " ATOMIC_REQUESTS, mark the view with transaction.non_atomic_requests."
)

T = TypeVar("T")


@dataclass(slots=True)
class Reader:
    """Reads from the service with the person's access token, refreshed once if it is refused.

    ``rejected``: a token that the service refused before its expiry, so it is not used again.
    ``_refreshed``: the grant, if this reader has refreshed its tokens.
    """

    identity: LinkedIdentity
    rejected: Secret | None = None
    application: Application = field(init=False)
    client: ServiceClient = field(init=False)
    _token: Secret | None = field(default=None, init=False)
    _refreshed: TokenGrant | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.application = conf.application(self.identity.application)
        self.client = ServiceClient(self.application)
        if self.application.environment != self.identity.environment:
            raise exceptions.ConfigurationError(
                "The identity is of the other environment."
            )

    def read(self, call: Callable[[Secret], T]) -> T:
        """``call(access_token)``. A 401 for a fresh token means that the consent was revoked."""
        while True:
            self._token = self._token or self.token()
            try:
                return call(self._token)
            except exceptions.AccessTokenRejected as refused:
                if self._refreshed is not None:
                    end_grant(self.identity, self._refreshed, reason=refused.code)
                    raise exceptions.ReauthorizationNeeded(
                        f"fresh: {refused.code}"
                    ) from refused
                self.rejected = self._token
                self._token = None

    def token(self) -> Secret:
        """The stored access token, or a new one by a refresh of this or another caller."""
        give_up_at = time.monotonic() + LONGEST_WAIT
        while True:
            grant = self._grant()
            if token := self._usable_token(grant):
                return token

            database.require_no_transaction(NOT_HERE)
            refresh_token = self._refresh_token(grant)
            if grant.retry_at is not None and grant.retry_at > timezone.now():
                raise exceptions.RefreshPending(
                    "not answered a moment ago", endpoint="token"
                )
            # One UPDATE decides who of all processes refreshes. The others read what it stores.
            if lease(grant):
                if token := self._refresh(grant, refresh_token):
                    return token
                continue

            if time.monotonic() > give_up_at:
                raise exceptions.RefreshPending(
                    "another refresh is running", endpoint="token"
                )
            time.sleep(POLL)

    def _grant(self) -> TokenGrant:
        """The grant of an account that is neither disabled nor hidden."""
        usable = TokenGrant.objects.filter(~disabled_account("identity__user"))
        if sessions.hides_users():
            usable = usable.filter(identity__user__in=database.users())
        grant = usable.filter(identity_id=self.identity.pk).first()
        if grant is None:
            raise exceptions.ReauthorizationNeeded("there is no grant")
        return grant

    def _usable_token(self, grant: TokenGrant) -> Secret | None:
        """The stored access token, if the caller can use it."""
        if not grant.access_token or grant.access_expires_at <= timezone.now():
            return None
        try:
            token = sealing.unseal(self.identity, grant, "access_token")
        except exceptions.SealedValueUnreadable:
            return None  # The refresh token, which is needed now, tells whether a key is missing.
        if token == self.rejected:
            return None
        return token

    def _refresh_token(self, grant: TokenGrant) -> Secret:
        """The stored refresh token. If there is none, mark the grant and raise.

        A token that no key opens is the site's fault, not the person's: a key is missing from the
        settings, for all people at once, and may return. So nothing is marked, and nothing is lost.
        """
        if grant.needs_reauthorization:
            raise exceptions.ReauthorizationNeeded("the grant is dead")
        if not grant.refresh_token:
            end_grant(self.identity, grant, reason="no_refresh_token")
            raise exceptions.ReauthorizationNeeded("there is no refresh token")
        try:
            return sealing.unseal(self.identity, grant, "refresh_token")
        except exceptions.SealedValueUnreadable as unreadable:
            facts = {
                "identity": self.identity.pk,
                "detail": f"{unreadable}; {PUT_KEY_BACK}",
            }
            alias = self.application.alias
            log(
                LogEvent.GRANT_UNREADABLE,
                level=logging.ERROR,
                application=alias,
                **facts,
            )
            raise

    def _refresh(self, grant: TokenGrant, refresh_token: Secret) -> Secret | None:
        """Send the refresh token once and store the answer. None if the row has changed since.

        To the service a spent refresh token that comes again looks stolen, and it may end the whole
        grant (RFC 9700 §4.14.2). So an unanswered one is not sent again at once.
        """
        asked_at = timezone.now()
        try:
            answer = self.client.refresh(refresh_token)
            if subject_of(self.application, answer) not in (
                None,
                self.identity.subject,
            ):
                raise exceptions.SubjectMismatch(
                    "a token of another subject", endpoint="token"
                )
        except (exceptions.InvalidGrant, exceptions.SubjectMismatch) as error:
            # Final, unless another caller has stored newer tokens; then the next look finds them.
            if end_grant(self.identity, grant, reason=error.code):
                raise exceptions.ReauthorizationNeeded(
                    f"refresh: {error.code}"
                ) from error
            return None
        except exceptions.ServiceError as error:
            pause = timedelta(seconds=error.retry_after or UNANSWERED_PAUSE)
            _same(grant).update(lease_until=None, retry_at=timezone.now() + pause)
            raise
        changed = sealing.columns_of(self.identity, answer, asked_at=asked_at)
        if not _replace(
            grant, changed, identity=self.identity, lost=self._lost_by(answer)
        ):
            return None
        grant.generation += 1
        self._refreshed = grant
        return answer.access_token

    def _lost_by(self, answer: TokenAnswer) -> set[str]:
        """What only a gate asks for, and the new tokens lack (RFC 6749 §6)."""
        if answer.scopes is None:
            return set()
        return {*self.application.later_scopes} - {*answer.scopes}


def access_token_for(
    identity: LinkedIdentity, *, rejected: Secret | None = None
) -> Secret:
    """A valid access token of ``identity``, refreshed if necessary.

    ``rejected``: a token that the service refused before its expiry, so it is not returned again.
    Concurrent callers, in any number of threads and processes, cause only one refresh. Inside a
    transaction a refresh raises ``RuntimeError`` before anything is sent, because a rollback would
    lose the new tokens. Raises ``ReauthorizationNeeded`` if the grant is dead or the account is
    disabled or hidden, and the ``ServiceError`` if the service gave no token; ``RefreshPending``
    means that another attempt is running or has just failed.
    """
    return Reader(identity, rejected).token()


def store(identity: LinkedIdentity, answer: TokenAnswer) -> None:
    """Store the tokens of a sign-in, replacing older ones.

    It increments ``generation``, so that a running refresh of the older tokens stores nothing.
    """
    columns = {
        "refresh_token": "",
        "refresh_expires_at": None,
        "scopes": list(identity.scopes),
        **sealing.columns_of(identity, answer, asked_at=timezone.now()),
    }
    grants = TokenGrant.objects.filter(identity_id=identity.pk)
    if not grants.update(generation=F("generation") + 1, **columns):
        TokenGrant.objects.create(identity=identity, **columns)


def lease(grant: TokenGrant) -> bool:
    """Take the lease to refresh these tokens. Returns False if another worker has it."""
    now = timezone.now()
    # Not after an attempt that has failed since the grant was read.
    free = Q(lease_until=None) | Q(lease_until__lte=now)
    same = _same(grant).filter(free, retry_at=grant.retry_at)
    return bool(same.update(lease_until=now + LEASE))


def _replace(
    grant: TokenGrant,
    changed: dict[str, Any],
    *,
    identity: LinkedIdentity,
    lost: set[str],
) -> bool:
    """Replace the tokens of ``grant``. Returns False if the row has changed meanwhile.

    A revocation deletes the row, and a sign-in increments the generation. In both cases the late
    answer is discarded. The answer cannot be requested again, so if the database fails, storing is
    retried for ``STORED_WITHIN`` seconds. The gates of scopes that are ``lost`` close with it.
    """
    give_up_at = time.monotonic() + STORED_WITHIN
    while True:
        try:
            if lost:
                return _replace_with_less(grant, changed, identity=identity, lost=lost)
            return bool(_same(grant).update(generation=F("generation") + 1, **changed))
        except (OperationalError, InterfaceError, InternalError):
            if time.monotonic() > give_up_at:
                raise
            database.connection().close()
        time.sleep(POLL)


def _replace_with_less(
    grant: TokenGrant,
    changed: dict[str, Any],
    *,
    identity: LinkedIdentity,
    lost: set[str],
) -> bool:
    """Replace the tokens, and take the ``lost`` scopes from the identity.

    From the locked row, and only while the tokens are those that were refreshed. Else a sign-in
    that came meanwhile, with a smaller or a larger consent, would be overwritten by what this
    process read before, and a revoked identity would be written to.
    """
    with database.atomic():
        locked = LinkedIdentity.objects.locked(
            identity.subject_digest
        )  # first, as every writer
        is_ours = _same(grant).update(generation=F("generation") + 1, **changed)
        if locked is None or not is_ours:
            return False
        kept = [scope for scope in locked.scopes if scope not in lost]
        if kept == locked.scopes:
            return True
        LinkedIdentity.objects.filter(pk=locked.pk).change(scopes=kept)
    identity.scopes = kept
    identity.version += 1
    return True


def end_grant(identity: LinkedIdentity, grant: TokenGrant, *, reason: str) -> bool:
    """Mark the grant as dead, delete its tokens and send the signal. False if it has changed.

    The level that the grant brought no longer counts, and nothing is due: only a sign-in helps.
    """
    with database.atomic():
        LinkedIdentity.objects.locked(identity.subject_digest)  # first, as every writer
        marked = _same(grant).update(
            generation=F("generation") + 1,
            access_token="",
            refresh_token="",
            # Since when, for those who count how many were lost lately.
            access_expires_at=timezone.now(),
            lease_until=None,
            retry_at=None,
            needs_reauthorization=True,
        )
        if not marked or grant.needs_reauthorization:
            return bool(marked)
        columns = {**NO_LEVEL, "refetch_due_at": None, "refetch_failures": 0}
        columns["last_error"] = exceptions.ReauthorizationNeeded.code
        LinkedIdentity.objects.filter(pk=identity.pk).change(**columns)
    identity.version += 1

    facts = {"identity": identity.pk, "reason": reason}
    log(
        LogEvent.GRANT_LOST,
        level=logging.WARNING,
        application=identity.application,
        **facts,
    )
    signals.announce(signals.reauthorization_needed, LinkedIdentity, identity=identity)
    return True


def _same(grant: TokenGrant) -> Any:
    return TokenGrant.objects.filter(pk=grant.pk, generation=grant.generation)
