"""Valid access tokens of a linked identity. No two callers send the same refresh token.

Refresh tokens rotate on use (RFC 6749 §6). A spent token looks stolen at its second use, and the
service may then end the whole grant (RFC 9700 §4.14.2). So of all processes one sends it. The
caller that gets the lease, by one conditional UPDATE (``grants.lease``), sends the token outside
any transaction. It stores the answer if ``generation``, which rises with each change of the tokens,
is unchanged. The others wait for it. The answer decides (``_refresh``):

- The new access token replaces the old one. So does the refresh token, if the answer has one.
- ``invalid_grant`` is final (``grants.end``), and so is an answer about another subject, or without
  a scope of ``LATER_SCOPES`` that the grant had. Only a sign-in brings new tokens.
- After any other answer, or none, the service may have taken the token nevertheless. It is sent
  again after ``retry_at``: 30 seconds, or as the service says, a minute at most.
- If the worker dies before it has stored the answer, the old token is sent again when the lease is
  over, after five minutes. A service that took it the first time answers ``invalid_grant``.

The rotation of the keys that encrypt the tokens: ``operators.rotation``.
"""

import logging
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TypeVar

from django.utils import timezone

from django_identity import conf, database, exceptions
from django_identity.lifecycle.ground import runs, sealing
from django_identity.lifecycle.said import grants, scopes
from django_identity.lifecycle.said.key_sets import subject_of
from django_identity.logs import LogEvent, log
from django_identity.models import LinkedIdentity, TokenGrant
from django_identity.models.querysets import disabled_account
from django_identity.secrets import Secret
from django_identity.service import ServiceClient
from django_identity.service.answers import TokenAnswer

# Seconds that a caller waits for another one's refresh. It looks again after each ``POLL``.
LONGEST_WAIT = 10.0
POLL = 0.2
# Seconds before the same refresh token is sent again, if the service names no time.
UNANSWERED_PAUSE = 30.0
PUT_KEY_BACK = "put the former key back into ENCRYPTION_KEYS, behind the current one"

NOT_IN_A_TRANSACTION = (
    "The access token has to be refreshed, which cannot be done inside a transaction: a rollback"
    " would lose the new tokens. Call access_token_for before the transaction begins; with"
    " ATOMIC_REQUESTS, mark the view with transaction.non_atomic_requests."
)

T = TypeVar("T")


class Reader:
    """Reads from the service with the person's access token, refreshed once if it is refused.

    ``rejected``: a token that the service refused before its expiry. It counts as expired.
    """

    def __init__(
        self,
        identity: LinkedIdentity,
        rejected: Secret | None = None,
    ) -> None:
        self.identity = identity
        self.rejected = rejected
        self.application = conf.application()
        self.client = ServiceClient(self.application)
        self._token: Secret | None = None
        # The grant, if this reader has refreshed its tokens.
        self._refreshed_grant: TokenGrant | None = None
        if self.application.environment != identity.environment:
            raise exceptions.ConfigurationError(
                "The identity is of the other environment.",
            )

    def read(self, call: Callable[[Secret], T]) -> T:
        """``call(access_token)``. A 401 for a fresh token means that the consent was revoked.

        For an older one it may only mean that the token ended early (RFC 6750 §3.1).
        """
        while True:
            if self._token is None:
                self._token = self.token()
            try:
                return call(self._token)
            except exceptions.AccessTokenRejected as refused:
                if self._refreshed_grant is not None:
                    # Nothing ends if a sign-in has stored newer tokens: the next call reads them.
                    grants.end(
                        self.identity,
                        self._refreshed_grant,
                        reason=refused.code,
                    )
                    detail = f"fresh: {refused.code}"
                    raise exceptions.ReauthorizationNeeded(detail) from refused
                self.rejected = self._token
                self._token = None

    def token(self) -> Secret:
        """The stored access token, or a new one by a refresh of this or another caller."""
        give_up_at = time.monotonic() + LONGEST_WAIT
        while True:
            grant = self._grant()
            token = self._usable_token(grant)
            if token is not None:
                return token

            database.require_no_transaction(NOT_IN_A_TRANSACTION)
            refresh_token = self._stored_refresh_token(grant)
            if grant.retry_at is not None and grant.retry_at > timezone.now():
                detail = "not answered a moment ago"
                raise exceptions.RefreshPending(detail, endpoint="token")
            _require_no_pause(grant)
            if not grants.lease(grant):
                self._wait(give_up_at)
                continue

            token = self._refresh(grant, refresh_token)
            if token is not None:
                return token

    def _wait(self, give_up_at: float) -> None:
        """Wait a moment for the worker that has the lease, or raise ``RefreshPending``."""
        if time.monotonic() > give_up_at:
            detail = "another refresh is running"
            raise exceptions.RefreshPending(detail, endpoint="token")
        time.sleep(POLL)

    def _grant(self) -> TokenGrant:
        """The grant of an active and visible account."""
        usable = TokenGrant.objects.filter(
            ~disabled_account("identity__user"),
            identity_id=self.identity.pk,
            identity__user__in=database.users(),
        )
        usable = usable.annotate(paused_until=runs.end_of_pause())
        # Not ``first``, which would have the one row sorted.
        grant = next(iter(usable), None)
        if grant is None:
            raise exceptions.ReauthorizationNeeded("there is no grant")
        return grant

    def _usable_token(self, grant: TokenGrant) -> Secret | None:
        """The stored access token, if the caller can use it."""
        if grant.access_expires_at <= timezone.now():
            return None
        try:
            token = sealing.unseal(self.identity, grant, "access_token")
        except exceptions.SealedValueUnreadable:
            # Not an error yet: a refresh follows. If no key opens its token either, that raises.
            return None
        if token == self.rejected:
            return None
        return token

    def _stored_refresh_token(self, grant: TokenGrant) -> Secret:
        """The stored refresh token. If it is missing, mark the grant and raise.

        A token that no key opens is the site's fault, not the person's: a key is missing from the
        settings, for all people at once, and may return. So nothing is marked, and nothing is lost.
        """
        if grant.needs_reauthorization:
            raise exceptions.ReauthorizationNeeded("the grant is dead")
        if not grant.refresh_token:
            grants.end(self.identity, grant, reason="no_refresh_token")
            raise exceptions.ReauthorizationNeeded("there is no refresh token")
        try:
            return sealing.unseal(self.identity, grant, "refresh_token")
        except exceptions.SealedValueUnreadable as unreadable:
            log(
                LogEvent.GRANT_UNREADABLE,
                level=logging.ERROR,
                identity=self.identity.pk,
                detail=f"{unreadable}; {PUT_KEY_BACK}",
            )
            raise

    def _refresh(self, grant: TokenGrant, refresh_token: Secret) -> Secret | None:
        """Send the refresh token once and store the answer. None if the row has changed since."""
        asked_at = timezone.now()
        try:
            answer = self._ask(refresh_token)
        except (exceptions.InvalidGrant, exceptions.SubjectMismatch) as error:
            # Final, unless another caller has stored newer tokens; then the next look finds them.
            if grants.end(self.identity, grant, reason=error.code):
                detail = f"refresh: {error.code}"
                raise exceptions.ReauthorizationNeeded(detail) from error
            return None
        except exceptions.ServiceError as error:
            seconds = error.retry_after or UNANSWERED_PAUSE
            retry_at = timezone.now() + timedelta(seconds=seconds)
            # If the database is away, too, the lease stays, and nobody refreshes until it expires.
            grants.postpone(grant, until=retry_at)
            raise

        lost = scopes.lost(answer, had=grant.scopes)
        if lost:
            if grants.end(self.identity, grant, reason="fewer_scopes", lost=lost):
                raise exceptions.ReauthorizationNeeded("refresh: fewer scopes")
            return None
        changed = sealing.token_columns(self.identity, answer, asked_at=asked_at)
        if not grants.replace(grant, changed):
            return None
        grant.generation += 1
        self._refreshed_grant = grant
        return answer.access_token

    def _ask(self, refresh_token: Secret) -> TokenAnswer:
        """The answer to the refresh token. Raises ``SubjectMismatch`` if it is about another."""
        answer = self.client.refresh(refresh_token)
        if subject_of(self.application, answer) not in (None, self.identity.subject):
            raise exceptions.SubjectMismatch(
                "a token of another subject",
                endpoint="token",
            )
        return answer


def _require_no_pause(grant: TokenGrant) -> None:
    """Raise ``RateLimited`` while re-fetches pause. The error names the end of the pause."""
    until: datetime | None = vars(grant)["paused_until"]
    if until is None or until <= timezone.now():
        return
    seconds = (until - timezone.now()).total_seconds()
    detail = f"refreshes pause until {until:%Y-%m-%d %H:%M} UTC"
    refused = exceptions.RateLimited(detail, endpoint="token", pause=seconds)
    # So nobody takes it for another 429, and begins a pause that an operator has just ended.
    refused.may_have_arrived = False
    raise refused


def access_token_for(
    identity: LinkedIdentity,
    *,
    rejected: Secret | None = None,
) -> Secret:
    """A valid access token of ``identity``, refreshed if necessary.

    ``rejected``: a token that the service refused before its expiry. It counts as expired.
    Concurrent callers, in any number of threads and processes, cause one refresh.

    Raises:

    - ``ReauthorizationNeeded``: the grant is dead, or the account is disabled or hidden
    - ``RefreshPending``: another attempt is running, or has just failed
    - ``RateLimited``: the service asked for a pause, whose end it may name
    - ``ServiceError``: the service gave no token
    - ``SealedValueUnreadable``: no key of ``ENCRYPTION_KEYS`` opens the stored token
    - ``RuntimeError``: a refresh inside a transaction, whose rollback would lose the new tokens
    """
    return Reader(identity, rejected).token()
