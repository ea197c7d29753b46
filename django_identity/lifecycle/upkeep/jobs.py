"""Upkeep: hand out what is due, work on it, keep grants alive, and follow the key set.

The row's lease is the truth, not the broker: a task that is lost, repeated or late does no harm.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from django.db import InterfaceError, OperationalError, models
from django.db.models import Q
from django.utils import timezone

from django_identity import background, conf
from django_identity.background import TaskName
from django_identity.conf import Application
from django_identity.exceptions import IdentityError, KeysUnavailable
from django_identity.lifecycle.upkeep import claims, due_rows, key_sets, tallies, tokens
from django_identity.lifecycle.upkeep.claims import Refetched
from django_identity.models import LinkedIdentity, TallyName, TokenGrant
from django_identity.service import ServiceClient, outage
from django_identity.service.budget import Priority

CHUNK = 50
CALLS_EACH = 2
# What may wait in queues at once where no budget says how fast it goes.
MOST_IN_HAND = 100_000
MOST_GRANTS = 1000
MOST_KIDS = 50
MOST_MARKED = 2000
# Well below the tasks' time limit, which kills.
LONGEST_WORK = 240.0
COUNTED = {
    Refetched.STORED: TallyName.REFETCHED,
    Refetched.FAILED: TallyName.REFETCH_FAILED,
}
UNEXPECTED = "unexpected_error"

logger = logging.getLogger("django_identity.upkeep")

Tally = Counter[Refetched]


def sweep() -> int:
    """Hand every due identity out to a worker, once, in chunks; returns how many.

    Any number of sweeps may run at once. What the broker does not take is let go again.
    """
    for application in _applications():
        mark_vanished_keys(application)
    handed_out = 0
    for page in _take_due():
        for chunk in _in_chunks(page):
            try:
                background.publish_now(TaskName.REFETCH_CHUNK, chunk)
            except Exception as error:  # noqa: BLE001  any transport's own errors; the next sweep
                logger.warning("the broker takes nothing (%s)", type(error).__name__)
                due_rows.let_go(page[page.index(chunk[0]) :])
                return handed_out
            handed_out += len(chunk)
    return handed_out


def refetch_chunk(ids: Sequence[int]) -> Tally:
    """Re-fetch those of ``ids`` that are still due and that nobody else works on.

    Stops when the service takes no calls, or when its time is over; the rest stays due.
    """
    return _work(ids, stop=_after(LONGEST_WORK))


def refetch_one(identity_id: int) -> Refetched | None:
    """Re-fetch one identity if it is due. None if it is not, or if somebody is at it."""
    return next(iter(_work([identity_id], stop=lambda: False)), None)


def refetch_due(
    *, most: int | None, stop: Callable[[], bool], tell: Callable[[Refetched], object]
) -> Tally:
    """What the sweep and its tasks do, here and now, until nothing is due or ``stop()`` says so.

    ``tell`` hears of each identity. Rows that were taken and not worked on are let go.
    """
    tally: Tally = Counter()
    for application in _applications():
        left = None if most is None else most - tally.total()
        for page in due_rows.take(application, most=left, page=CHUNK):
            done = _work(page, stop=stop, tell=tell)
            tally += done
            if stop():
                return tally
            # The next application may have another service.
            if done[Refetched.NOT_NOW]:
                break
    return tally


def takes_no_calls() -> bool:
    """Whether an application with something due waits for its service to be back."""
    now = timezone.now()
    away = [site for site in conf.applications() if not outage.may_try(site)]
    return any(due_rows.due(application, now=now).exists() for application in away)


def refetch_these(
    ids: Iterable[int], *, stop: Callable[[], bool], tell: Callable[[Refetched], object]
) -> Tally:
    """Re-fetch these identities, due or not."""
    given, now = list(ids), timezone.now()
    not_due = Q(refetch_due_at=None) | Q(refetch_due_at__gt=now)
    LinkedIdentity.objects.filter(not_due, pk__in=given).update(refetch_due_at=now)
    return _work(given, stop=stop, tell=tell)


def count_due() -> int:
    """How many identities are due at this moment."""
    now = timezone.now()
    return sum(due_rows.due(site, now=now).count() for site in conf.applications())


def keep_alive() -> int:
    """Refresh the grants that would run out within five days; returns how many were."""
    over = _after(LONGEST_WORK)
    refreshed = 0
    for identity in _fading():
        if over():
            break
        try:
            refreshed += _kept_alive(identity)
        except IdentityError as error:
            logger.info("a grant was not kept alive (%s)", error.code)
    return refreshed


def mark_vanished_keys(application: Application) -> int:
    """Make due what was signed by keys that the service publishes no more; returns how many.

    Costs one look at an index for each key in use, and marks a bounded number at a time.
    """
    try:
        published = key_sets.current(application).kids
    except KeysUnavailable:
        return 0
    mine = LinkedIdentity.objects.filter(
        application=application.alias, environment=application.environment
    )
    marked = 0
    for kid in _kids_in_use(mine):
        if kid not in published:
            marked += _mark(mine.filter(credential_kid=kid))
    return marked


def _applications() -> list[Application]:
    """Those whose service takes calls, as far as anybody knows."""
    return [site for site in conf.applications() if outage.may_try(site)]


def _take_due() -> Iterator[list[int]]:
    """Pages of due rows: as many as the budget lets workers do before the rows come back.

    Of an application whose service was away one row is enough, to see whether it is back.
    """
    for application in _applications():
        if outage.is_away(application):
            yield from due_rows.take(application, most=1, page=1)
        else:
            yield from due_rows.take(application, in_hand=_most_in_hand(application))


def _most_in_hand(application: Application) -> int:
    if application.rate_limit is None:
        return MOST_IN_HAND
    calls, seconds = application.rate_limit
    return max(1, int(calls / seconds * due_rows.HANDED_OUT_FOR.total_seconds() / CALLS_EACH))


def _in_chunks(ids: list[int]) -> Iterator[list[int]]:
    for start in range(0, len(ids), CHUNK):
        yield ids[start : start + CHUNK]


def _work(
    ids: Sequence[int],
    *,
    stop: Callable[[], bool],
    tell: Callable[[Refetched], object] = lambda _outcome: None,
) -> Tally:
    tally: Tally = Counter()
    days: Counter[tuple[str, Refetched]] = Counter()
    left = _due_among(ids)
    while left and not tally[Refetched.NOT_NOW] and not stop():
        identity = left.pop(0)
        outcome = _worked_on(identity)
        if outcome is not None:
            tally[outcome] += 1
            days[identity.application, outcome] += 1
            tell(outcome)
    if left:
        due_rows.let_go([identity.pk for identity in left])
    _count_today(days)
    return tally


def _count_today(outcomes: Mapping[tuple[str, Refetched], int]) -> None:
    """For the overview: once for all of a chunk, because everybody counts in one row a day."""
    for (alias, outcome), count in outcomes.items():
        if outcome in COUNTED:
            tallies.add(COUNTED[outcome], application=conf.application(alias), count=count)


def _due_among(ids: Sequence[int]) -> list[LinkedIdentity]:
    now = timezone.now()
    rows = LinkedIdentity.objects.filter(pk__in=ids, refetch_due_at__lte=now)
    ordered = rows.defer("credential").order_by("refetch_due_at", "pk")
    return [identity for identity in ordered if _is_ours(identity)]


def _is_ours(identity: LinkedIdentity) -> bool:
    """Whether the site still has that application, in that environment."""
    return (
        identity.application in conf.aliases()
        and conf.application(identity.application).environment == identity.environment
    )


def _worked_on(identity: LinkedIdentity) -> Refetched | None:
    """Re-fetch a row as it was read just now. None if it is not ours to work on."""
    if not due_rows.start(identity):
        return None
    try:
        return claims.refetch(identity)
    except (OperationalError, InterfaceError):
        # Nothing can be written now; the lease runs out by itself.
        raise
    except Exception as error:  # noqa: BLE001  one identity must not stop the others
        # The name alone: the message may quote what was to be stored.
        logger.error("re-fetching identity #%s: %s", identity.pk, type(error).__name__)
        claims.note_failure(identity, code=UNEXPECTED)
        return Refetched.FAILED


def _after(seconds: float) -> Callable[[], bool]:
    end = time.monotonic() + seconds
    return lambda: time.monotonic() >= end


def _fading() -> list[LinkedIdentity]:
    """The identities of the grants that run out first, a bounded number.

    Those of an application that is gone or away are left out first, or they could fill it.
    """
    ours = Q(pk__in=[])
    for application in _applications():
        ours |= Q(
            identity__application=application.alias,
            identity__environment=application.environment,
        )
    grants = tokens.fading().filter(ours).select_related("identity").order_by("refresh_expires_at")
    found: Iterable[TokenGrant] = grants[:MOST_GRANTS]
    return [grant.identity for grant in found]


def _kept_alive(identity: LinkedIdentity) -> bool:
    application = conf.application(identity.application)
    return tokens.keep_alive(identity, client=ServiceClient(application, priority=Priority.UPKEEP))


def _kids_in_use(rows: models.QuerySet[LinkedIdentity]) -> Iterator[str]:
    """Each ``kid`` of a stored credential, by skipping through the index from one to the next."""
    kid = ""
    for _ in range(MOST_KIDS):
        following = rows.filter(credential_kid__gt=kid).order_by("credential_kid")
        found = following.values_list("credential_kid", flat=True).first()
        if found is None:
            return
        kid = found
        yield kid


def _mark(rows: models.QuerySet[LinkedIdentity]) -> int:
    """Make due what has not failed since: a failure has its own pause."""
    now = timezone.now()
    waiting = rows.filter(refetch_due_at__gt=now, refetch_failures=0)
    ids = list(waiting.values_list("pk", flat=True)[:MOST_MARKED])
    return LinkedIdentity.objects.filter(pk__in=ids, refetch_due_at__gt=now).update(
        refetch_due_at=now
    )
