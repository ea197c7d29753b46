"""When the re-fetch of an identity is due: all that sets ``refetch_due_at`` to a date.

When an event or an erasure is due: ``attempts``.

- After usable answers of a re-fetch or a sign-in: after 65 to 85 % of the time until the claims,
  the level or the grant end, whichever is first (``after_answers``).
- After an answer that is dated before a revocation: after five minutes (``claims.is_behind``).
- After a failure: after a minute, doubled with each failure up to six hours (``backoff``), for ever
  (``retry``).
- At once: after an event about level or claims (``make_due``), after a sign-in with an answer
  that could not be read (``arrivals``), and when an operator asks (``make_all_due``).
- A row that a worker has taken (``take``): in five minutes, unless its real date is set by then. If
  a run stops early or a worker dies, the rest of its twenty rows waits so long. The order is
  random, so a row that kills its worker does not always delay the same others.

The date is empty, so the re-fetch is never due, for a link by code, without consent
(``withdrawal.NOTHING_BROUGHT``), and without a grant or with a disabled account (``grants.end``,
``give_up``).
"""

import random
from collections.abc import Iterable
from datetime import datetime, timedelta

from django.db.models import QuerySet
from django.utils import timezone

from django_identity import conf, database
from django_identity.lifecycle.ground import backoff, clocks, kyc
from django_identity.lifecycle.ground.sealing import REFRESH_TOKEN_LIFETIME
from django_identity.models import Consent, LinkedIdentity, LinkedVia, WebhookEvent
from django_identity.models.querysets import number_of

LEVEL_CHECKED_EVERY = timedelta(hours=24)
DUE_AT_SHARE = 0.75
DUE_SPREAD = 0.10
# Without claims a re-fetch is due for the level alone, and not before the level is.
LONGEST_LEVEL_LIFE = LEVEL_CHECKED_EVERY / (DUE_AT_SHARE - DUE_SPREAD)
# An answer from a cache may expire at once. It must not cause calls without a pause.
SOONEST = timedelta(minutes=5)
# A message's rows, too. With few rows each, the messages of a minute suffice for many threads.
ROWS_AT_ONCE = 20
# Longer than a message, with all waits of its last re-fetch. Short, because a row that kills its
# worker delays the others of its twenty by half of it on average.
TAKEN_FOR = timedelta(minutes=5)


def rows() -> QuerySet[LinkedIdentity]:
    """The identities whose re-fetch is due."""
    ours = LinkedIdentity.objects.served()
    return ours.filter(refetch_due_at__lte=timezone.now())


def count() -> int:
    """How many identities are due, as far as they are counted."""
    return number_of(rows())


def take(most: int = ROWS_AT_ONCE, *, only: int | None = None) -> list[LinkedIdentity]:
    """Identities whose re-fetch is due, in random order. They are due again in five minutes.

    ``only``: the key of one, to be taken ahead of all others.
    """
    now = timezone.now()  # Not ``Now()``: MariaDB's session may have another time zone.
    found = rows()
    if only is not None:
        found = found.filter(pk=only)
    with database.atomic():
        free = found.select_for_update(skip_locked=True)
        taken = list(free.order_by("refetch_due_at", "pk")[:most])
        keys = [row.pk for row in taken]
        found.filter(pk__in=keys).update(refetch_due_at=now + TAKEN_FOR)
    random.shuffle(taken)
    return taken


# After a re-fetch, or a sign-in


def after_answers(
    identity: LinkedIdentity,
    *,
    claims_until: datetime | None,
) -> datetime:
    """After about three quarters of what ends first: the claims, the level or the grant.

    ``claims_until``: None unless claims were read.
    """
    now = timezone.now()
    dates = [_due_at(identity, begins=now, ends=now + REFRESH_TOKEN_LIFETIME)]
    if claims_until is not None:
        dates.append(_due_at(identity, begins=now, ends=claims_until))
    if identity.allows(kyc.SCOPE):
        # With claims, the level is read together with them, if it lasts until then.
        life = conf.application().kyc_holds
        if claims_until is None:
            life = min(life, LONGEST_LEVEL_LIFE)
        said_at = identity.kyc_said_at or now
        dates.append(_due_at(identity, begins=said_at, ends=said_at + life))
    return max(min(dates), now + SOONEST)


def _due_at(identity: LinkedIdentity, *, begins: datetime, ends: datetime) -> datetime:
    """After about three quarters of that time, with a fixed offset for each identity."""
    position = int(identity.subject_digest[:8], 16) / 0xFFFFFFFF
    # From -1 to 1.
    offset = 2 * position - 1
    share = DUE_AT_SHARE + DUE_SPREAD * offset
    life = ends - begins
    return begins + life * share


def retry(identity: LinkedIdentity, code: str) -> None:
    """Store a failure and the next attempt, unless the row has changed since it was read."""
    now = timezone.now()
    failures = identity.refetch_failures + 1
    LinkedIdentity.objects.change_unchanged(
        identity,
        last_error=code,
        refetch_failures=failures,
        refetch_failed_at=now,
        refetch_due_at=now + timedelta(seconds=backoff.pause(failures)),
    )


def give_up(identity: LinkedIdentity, code: str) -> None:
    """The grant is gone, or the account is disabled. A sign-in makes the identity due again."""
    LinkedIdentity.objects.change_unchanged(
        identity,
        last_error=code,
        refetch_failures=0,
        refetch_failed_at=timezone.now(),
        refetch_due_at=None,
    )


def is_level_due(identity: LinkedIdentity) -> bool:
    """Whether a re-fetch reads the level too: once a day, and after an event."""
    if not identity.allows(kyc.SCOPE):
        return False
    said_at = identity.kyc_said_at
    life = conf.application().kyc_holds
    every = min(LEVEL_CHECKED_EVERY, life / 2)
    if said_at is None or clocks.is_ahead(said_at):
        return True
    if said_at <= timezone.now() - every:
        return True
    # Another machine of the site, with a clock of its own, may have received it.
    since = said_at - clocks.CLOCK_SKEW
    events = WebhookEvent.objects.filter(subject_digest=identity.subject_digest)
    return events.filter(received_at__gte=since).exists()


# At once


def make_due(identity: LinkedIdentity) -> None:
    """The re-fetch is due now, unless the link is by code. The caller saves the identity."""
    if identity.consent != Consent.GRANTED or identity.connect_only:
        return
    now = timezone.now()
    due_at = identity.refetch_due_at or now
    identity.refetch_due_at = min(due_at, now)


def make_all_due(identities: Iterable[LinkedIdentity]) -> int:
    """Make ``identities`` due, except revoked ones and links by code, which have no grant.

    Upkeep finds them within a minute.
    """
    keys = [identity.pk for identity in identities]
    granted = LinkedIdentity.objects.filter(
        pk__in=keys,
        consent=Consent.GRANTED,
        linked_via=LinkedVia.OAUTH,
    )
    return granted.change(refetch_due_at=timezone.now())
