"""The row of a grant. Each step of a refresh is one conditional UPDATE of this row.

``generation`` numbers the tokens: storing newer tokens increments it. ``lease_until`` is the end of
the lease of the worker that refreshes. Before ``retry_at`` nobody refreshes, because the last
attempt got no usable answer.
"""

from __future__ import annotations

import logging
import time
from datetime import datetime, timedelta
from typing import Any

from django.db import InterfaceError, InternalError, OperationalError
from django.db.models import F, Q
from django.utils import timezone
from django.views.decorators.debug import sensitive_variables

from django_identity import database, signals, vault
from django_identity.conf import Application
from django_identity.exceptions import SealedValueUnreadable
from django_identity.models import LinkedIdentity, TokenGrant, disabled_account
from django_identity.service.messages import TokenAnswer
from django_identity.telemetry import LogEvent, log_refusal

REFRESH_TOKEN_LIFETIME = timedelta(days=30)
# Longer than the longest refresh. An expired lease means that the worker has died.
LEASE = timedelta(seconds=25)
# A little longer, because the clocks of two machines differ. A lease that ends even later was
# written by a wrong clock.
LONGEST_BELIEVED_LEASE = timedelta(seconds=30)
LONGEST_BELIEVED_PAUSE = timedelta(hours=1)
# A token is not used in its last seconds, because clocks differ and a call takes time.
LONGEST_MARGIN = 60.0
MARGIN_SHARE = 0.1
# Storing ends this many seconds before the lease.
STORE_MARGIN = 1.0
LONGEST_STORE_PAUSE = 0.5

logger = logging.getLogger("django_identity.tokens")


def grant_of(identity: LinkedIdentity) -> TokenGrant | None:
    """Read the grant from the database. None for a disabled account."""
    usable = TokenGrant.objects.filter(~disabled_account("identity__user"))
    return usable.filter(identity_id=identity.pk).first()


@sensitive_variables()
def open_token(
    application: Application, identity: LinkedIdentity, grant: TokenGrant, column: str
) -> str | None:
    """The decrypted token of the column, or None if it is missing or no key opens it."""
    sealed = getattr(grant, column)
    if not sealed:
        return None
    context = identity.sealing_context(column)
    try:
        return vault.unseal(sealed, keys=application.encryption_keys, context=context)
    except SealedValueUnreadable:
        logger.error("the %s of grant #%s cannot be opened", column, grant.pk)
        return None


@sensitive_variables()
def columns_of(
    application: Application, identity: LinkedIdentity, answer: TokenAnswer, *, asked_at: datetime
) -> dict[str, Any]:
    """The columns that a token answer changes. Without a refresh token the stored one stays."""
    margin = min(LONGEST_MARGIN, answer.expires_in * MARGIN_SHARE)
    changed: dict[str, Any] = {
        "access_token": _sealed(application, identity, "access_token", answer.access_token),
        "access_expires_at": asked_at + timedelta(seconds=answer.expires_in - margin),
        "lease_until": None,
        "retry_at": None,
        "needs_reauthorization": False,
        "updated_at": timezone.now(),
    }
    if answer.refresh_token is not None:
        sealed = _sealed(application, identity, "refresh_token", answer.refresh_token)
        changed["refresh_token"] = sealed
        changed["refresh_expires_at"] = asked_at + REFRESH_TOKEN_LIFETIME
    if answer.scopes is not None:
        changed["scopes"] = list(answer.scopes)
    return changed


@sensitive_variables()
def _sealed(application: Application, identity: LinkedIdentity, column: str, token: str) -> str:
    keys = application.encryption_keys
    return vault.seal(token, keys=keys, context=identity.sealing_context(column))


def lease(grant: TokenGrant) -> bool:
    """Take the lease to refresh these tokens. Returns False if another worker has it."""
    now = timezone.now()
    unbelieved = Q(lease_until__gt=now + LONGEST_BELIEVED_LEASE)
    free = Q(lease_until=None) | Q(lease_until__lte=now) | unbelieved
    won = _same(grant).filter(free).update(lease_until=now + LEASE, updated_at=now)
    return bool(won)


def is_leased(grant: TokenGrant) -> bool:
    """Whether a worker has the lease."""
    return _is_ahead(grant.lease_until, at_most=LONGEST_BELIEVED_LEASE)


def is_paused(grant: TokenGrant) -> bool:
    """Whether the refresh token must not be sent now."""
    return _is_ahead(grant.retry_at, at_most=LONGEST_BELIEVED_PAUSE)


def _is_ahead(moment: datetime | None, *, at_most: timedelta) -> bool:
    now = timezone.now()
    return moment is not None and now < moment <= now + at_most


def replace(grant: TokenGrant, changed: dict[str, Any], *, store_until: float) -> bool:
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


def store_until(*, leased_at: float) -> float:
    """The time (``time.monotonic``) until which no other worker can have the lease."""
    return leased_at + LEASE.total_seconds() - STORE_MARGIN


def release(grant: TokenGrant, *, retry_at: datetime | None) -> None:
    """Release the lease without other changes. Nobody refreshes before ``retry_at``."""
    now = timezone.now()
    _same(grant).update(lease_until=None, retry_at=retry_at, updated_at=now)


def mark_dead(
    identity: LinkedIdentity, grant: TokenGrant, *, reason: str, keep_sealed: bool = False
) -> bool:
    """Mark the grant as dead, delete its tokens and send the signal. False if it has changed.

    ``reason``: a code for the log. ``keep_sealed``: keep tokens that no key opens, because the
    missing key may return.
    """
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
