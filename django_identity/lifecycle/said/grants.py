"""The row of the tokens: leased, replaced or ended by conditional statements.

New tokens, and the end of the grant, raise ``generation``. A refresh changes the row only if
``generation`` is as it was read. Otherwise a revocation has deleted the row meanwhile, or a sign-in
has stored newer tokens. ``tokens`` says who sends a refresh token, and when.
"""

import logging
import time
from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any

from django.db import InternalError
from django.db.models import F, QuerySet
from django.utils import timezone

from django_identity import database, exceptions, signals
from django_identity.lifecycle.ground import sealing, withdrawal
from django_identity.lifecycle.ground.kyc import NO_LEVEL, announce_change
from django_identity.logs import LogEvent, log
from django_identity.models import LinkedIdentity, TokenGrant
from django_identity.models.choices import Columns
from django_identity.service.answers import TokenAnswer

# Longer than any refresh, even with an answer that arrives byte by byte. So an expired lease means
# that its worker has died.
LEASE = timedelta(minutes=5)
# Seconds for which storing is retried while the database is away.
STORED_WITHIN = 20.0
# Seconds between two of these tries.
TRIED_EVERY = 0.2


def store(identity: LinkedIdentity, answer: TokenAnswer) -> None:
    """Store the tokens of a sign-in, replacing older ones.

    It increments ``generation``, so the result of a running refresh of the older tokens is dropped.
    """
    columns = {
        "refresh_token": "",
        "refresh_expires_at": None,
        "scopes": list(identity.scopes),
        **sealing.token_columns(identity, answer, asked_at=timezone.now()),
    }
    grants = TokenGrant.objects.filter(identity_id=identity.pk)
    newer = {"generation": F("generation") + 1, **columns}
    if identity.is_new or not grants.update(**newer):
        TokenGrant.objects.create(identity=identity, **columns)


def lease(grant: TokenGrant) -> bool:
    """Take the lease to refresh these tokens. False if another has it, or the row has changed."""
    now = timezone.now()
    if grant.lease_until is not None and grant.lease_until > now:
        return False
    # Another ``lease_until`` or ``retry_at`` means that somebody has the lease, or that an attempt
    # has failed, since the grant was read.
    as_read = _unchanged(grant).filter(
        lease_until=grant.lease_until,
        retry_at=grant.retry_at,
    )
    return bool(as_read.update(lease_until=now + LEASE))


def postpone(grant: TokenGrant, *, until: datetime) -> None:
    """Give the lease back. Nobody refreshes these tokens before ``until``."""
    _unchanged(grant).update(lease_until=None, retry_at=until)


def replace(grant: TokenGrant, changed: Columns) -> bool:
    """Replace the tokens of ``grant``. Returns False if the row has changed meanwhile.

    A revocation deletes the row, and a sign-in increments the generation. In both cases the late
    answer is discarded. The answer for an unchanged row must be kept, or the person has to sign in.
    So if the database fails, storing is retried for ``STORED_WITHIN`` seconds, where
    ``database.tried_again`` retries once.
    """
    give_up_at = time.monotonic() + STORED_WITHIN
    while True:
        try:
            return _written(grant, changed)
        except (*database.BROKEN, InternalError):
            if time.monotonic() > give_up_at:
                raise
            database.connection().close()
        time.sleep(TRIED_EVERY)


def end(
    identity: LinkedIdentity,
    grant: TokenGrant,
    *,
    reason: str,
    lost: Collection[str] = (),
) -> bool:
    """Mark the grant as dead, delete its tokens and send the signals. False if it has changed.

    The level that the grant brought counts as run out, and only a sign-in makes the row due again.
    ``lost``: scopes that the person has taken back. They go, and so do the claims.
    """
    with database.atomic():
        # The identity before its grant, as in a sign-in: two orders could deadlock.
        locked = LinkedIdentity.objects.locked(identity.subject_digest)
        dead = {
            "access_token": "",
            "refresh_token": "",
            # The time of the loss: the doctor counts recent ones by it.
            "access_expires_at": timezone.now(),
            "lease_until": None,
            "retry_at": None,
            "needs_reauthorization": True,
        }
        if locked is None or not _written(grant, dead):
            return False
        columns: dict[str, Any] = {
            **NO_LEVEL,
            "refetch_due_at": None,
            "refetch_failures": 0,
        }
        columns["last_error"] = exceptions.ReauthorizationNeeded.code
        if lost:
            columns["scopes"] = [each for each in locked.scopes if each not in lost]
            columns["credential_expires_at"] = None
            withdrawal.take_claims_away(identity)
        identity.change(**columns)

    log(
        LogEvent.GRANT_LOST,
        level=logging.WARNING,
        identity=identity.pk,
        reason=reason,
    )
    announce_change(identity, before=locked.kyc_state)
    signals.announce(signals.reauthorization_needed, LinkedIdentity, identity=identity)
    return True


def _written(grant: TokenGrant, columns: Columns) -> bool:
    """Write these columns and the next generation. False if the tokens have changed meanwhile."""
    next_generation = grant.generation + 1
    rows = _unchanged(grant).update(generation=next_generation, **columns)
    return rows > 0


def _unchanged(grant: TokenGrant) -> QuerySet[TokenGrant]:
    """The row of ``grant``, if its tokens are those that were read."""
    return TokenGrant.objects.filter(pk=grant.pk, generation=grant.generation)
