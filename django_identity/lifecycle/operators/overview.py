"""The figures, and what needs attention. Figures are kept for a while."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from time import monotonic
from typing import Any, TypeVar

from django.core.cache import cache
from django.db.models import Case, Count, Exists, OuterRef, QuerySet, Value, When
from django.db.models.functions import TruncDate
from django.utils import timezone

from django_identity import conf
from django_identity.lifecycle import due, runs, withdrawal
from django_identity.models import (
    ErasureReceipt,
    EventOutcome,
    LinkedIdentity,
    UpkeepRun,
    WebhookEvent,
)

T = TypeVar("T")
LISTED = 10
DAYS = 7
LEAST_KEPT_SECONDS = 60
# So counting takes a hundredth of the database's time, however many rows there are.
KEPT_TIMES = 100
CACHE_KEY = "django_identity.overview.5"
# The upper end of each span of a credential's remaining life, in hours. Longer lives are "24h".
LIFE_SPANS = (("ran_out", 0), ("1h", 1), ("6h", 6), ("12h", 12))


@dataclass(frozen=True, slots=True)
class Figures:
    """The numbers of identities by (consent, KYC level), by the span of the credential's remaining
    life, and by the reason of a failing re-fetch; people linked and events received by day (UTC).
    """

    taken_at: datetime
    by_consent: Counter[tuple[str, str]] = field(default_factory=Counter)
    by_life: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    linked: Mapping[date, int] = field(default_factory=dict)
    received: Mapping[date, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Overview:
    """The figures, the newest run of upkeep, and the first rows that need attention."""

    figures: Figures
    run: UpkeepRun
    #: Whether a re-fetch is due for over 15 minutes.
    is_late: bool
    #: Whether people have re-fetches before them, and upkeep has not begun for 15 minutes.
    is_stopped: bool
    #: Whether an event waits for over 15 minutes to be applied, or for its handlers.
    has_late_events: bool
    erasures: QuerySet[ErasureReceipt]
    failed_events: QuerySet[WebhookEvent]

    @property
    def is_healthy(self) -> bool:
        problems = (
            self.is_late,
            self.is_stopped,
            self.has_late_events,
            self.erasures,
            self.figures.failures,
            self.failed_events,
        )
        return not any(problems)


def current() -> Overview:
    """What needs attention now, and the figures, which ``kept`` may have."""
    key = f"{CACHE_KEY}.{conf.application().environment}"
    late = runs.late()
    pending = ErasureReceipt.objects.filter(erased_at=None)
    events = WebhookEvent.objects.all()
    failed = events.filter(outcome=EventOutcome.FAILED)
    run = runs.newest()
    return Overview(
        figures=kept(key, _count),
        run=run,
        is_stopped=not runs.has_begun_lately(run) and _is_needed(),
        has_late_events=_have_waited(events, since=late),
        is_late=due.rows().filter(refetch_due_at__lte=late).exists(),
        erasures=pending.order_by("requested_at")[:LISTED],
        failed_events=failed.defer("payload").order_by("-received_at")[:LISTED],
    )


def _is_needed() -> bool:
    """Whether upkeep has something before it."""
    identities = LinkedIdentity.objects.served()
    return identities.exclude(refetch_due_at=None).exists()


def _have_waited(events: QuerySet[WebhookEvent], *, since: datetime) -> bool:
    """An event that cannot be applied is due again after a pause, however often it has failed."""
    unhandled = events.filter(next_attempt_at__lte=since)
    unapplied = events.filter(outcome="", received_at__lte=since)
    return unhandled.exists() or unapplied.exists()


def kept(key: str, count: Callable[[], T]) -> T:
    """What ``count`` returns, or returned lately: a hundred times as long as it took, or a minute.

    ``key``: the cache's. It changes with what is counted.
    """
    known: T | None = cache.get(key)
    if known is not None:
        return known
    began = monotonic()
    result = count()
    seconds = round(KEPT_TIMES * (monotonic() - began))
    cache.set(key, result, timeout=max(LEAST_KEPT_SECONDS, seconds))
    return result


def with_erasures(identities: QuerySet[LinkedIdentity]) -> QuerySet[LinkedIdentity]:
    """``identities`` with ``has_pending_erasure``: of the identity, or of the whole account."""
    pending = ErasureReceipt.objects.filter(erased_at=None)
    of_row = withdrawal.asks_to_erase(OuterRef("pk"), user_id=OuterRef("user_id"))
    return identities.annotate(has_pending_erasure=Exists(pending.filter(of_row)))


def _count() -> Figures:
    """Count. The table of identities is read once, because nothing else is cheaper."""
    now = timezone.now()
    identities = LinkedIdentity.objects.served()
    events = WebhookEvent.objects.all()
    figures = Figures(
        taken_at=now,
        linked=_per_day(identities, "created_at", now),
        received=_per_day(events, "received_at", now),
    )
    groups = identities.annotate(
        life=_life_at(now),
        error=Case(When(refetch_failures__gt=0, then="last_error")),
    )
    rows = groups.values_list("consent", "kyc_level", "life", "error").order_by()
    for consent, level, span, code, count in rows.annotate(count=Count("pk")):
        figures.by_consent[consent, level] += count
        figures.by_life[span] += count
        if code is not None:
            figures.failures[code] += count
    return figures


def _life_at(now: datetime) -> Case:
    """The span of the credential's remaining life."""
    spans = [When(credential_expires_at=None, then=Value("none"))]
    for span, hours in LIFE_SPANS:
        end = now + timedelta(hours=hours)
        spans.append(When(credential_expires_at__lte=end, then=Value(span)))
    return Case(*spans, default=Value("24h"))


def _per_day(rows: QuerySet[Any], column: str, now: datetime) -> dict[date, int]:
    """How many rows are of each of the last days (UTC), oldest first."""
    today = now.astimezone(UTC).date()
    days = [today - timedelta(days=passed) for passed in reversed(range(DAYS))]
    begin = datetime.combine(days[0], time.min, tzinfo=UTC)
    recent = rows.filter(**{f"{column}__gte": begin})
    by_day = recent.values_list(TruncDate(column, tzinfo=UTC)).order_by()
    counts = dict(by_day.annotate(count=Count("pk")))
    return {day: counts.get(day, 0) for day in days}
