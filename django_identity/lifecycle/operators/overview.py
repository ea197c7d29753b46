"""The figures of one application, and the rows that need attention.

The work is bounded for tables of any size. Up to 100,000 identities are counted. Above that the
figures are estimates from 20,000 identities, in blocks that are spread evenly over the primary
keys. Event figures cover the newest 10,000 events. Figures are cached for one minute; the rows that
need attention are read at each visit.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Generic, TypeVar

from django.db import close_old_connections
from django.db.models import Case, CharField, Count, Max, Min, Model, Q, QuerySet, Value, When
from django.utils import timezone

from django_identity import conf
from django_identity.lifecycle.events import tallies
from django_identity.lifecycle.upkeep import due_rows
from django_identity.models import (
    ErasureReceipt,
    EventOutcome,
    LinkedIdentity,
    Retained,
    TallyName,
    TokenGrant,
    WebhookEvent,
    failing,
)
from django_identity.service import shared_state
from django_identity.telemetry import Gauge

NEWEST_EVENTS = 10_000
MOST_FAILING = 10_000
LISTED = 10
DAYS = 30
GRANT_ENDS_SOON = timedelta(days=5)
KEPT_SECONDS = 60
MOST_GAUGED = 100_000
CACHE_KEY = "django_identity.overview.1"
# The upper end of each span of a credential's remaining life, in hours. Longer lives are "24h".
LIFE_SPANS = (("ran_out", 0), ("1h", 1), ("6h", 6), ("12h", 12))

Key = tuple[str, str]
M = TypeVar("M", bound=Model)


@dataclass(frozen=True, slots=True)
class Sampling:
    """Above ``most_counted`` identities, count only ``blocks`` of ``block`` primary keys each."""

    most_counted: int = 100_000
    blocks: int = 100
    block: int = 200


SAMPLING = Sampling()


@dataclass(frozen=True, slots=True)
class Listed(Generic[M]):
    """The first rows that need attention. ``is_more``: there are more rows."""

    rows: tuple[M, ...]
    is_more: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Attention:
    """The rows that need attention, most urgent first in each list."""

    erasures: Listed[ErasureReceipt]
    failing: Listed[LinkedIdentity]
    failed_events: Listed[WebhookEvent]
    ending_grants: Listed[TokenGrant]


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationFigures:
    """One application in one environment.

    ``is_sampled``: the figures of identities are an estimate. ``by_consent``: (consent, KYC level)
    -> identities; ``by_life``: the span of the credential's remaining life -> identities.
    """

    taken_at: datetime
    is_sampled: bool
    identities: int
    by_consent: Mapping[tuple[str, str], int]
    by_life: Mapping[str, int]
    events: Mapping[str, int]
    events_since: datetime | None
    failures: Mapping[str, int]
    sign_ins: tuple[tallies.DayCount, ...]
    refetches: tuple[tallies.DayCount, ...]
    failed_refetches: tuple[tallies.DayCount, ...]
    event_conflicts: tuple[tallies.DayCount, ...]
    attention: Attention


@dataclass(slots=True)
class _Counted:
    """The counts for all applications, from one pass over the tables."""

    taken_at: datetime
    is_sampled: bool = False
    by_consent: dict[Key, Counter[tuple[str, str]]] = field(default_factory=dict)
    by_life: dict[Key, Counter[str]] = field(default_factory=dict)
    events: dict[str, Counter[str]] = field(default_factory=dict)
    events_since: datetime | None = None
    failures: dict[Key, Counter[str]] = field(default_factory=dict)


def overview_of(
    *, application: str, environment: str, sampling: Sampling = SAMPLING
) -> ApplicationFigures:
    """The overview of ``application`` in ``environment``."""
    counted = shared_state.remember(
        CACHE_KEY, lambda: _count(sampling), kind=_Counted, seconds=KEPT_SECONDS
    )
    place = (application, environment)
    by_consent = counted.by_consent.get(place, Counter())

    def daily(name: TallyName) -> tuple[tallies.DayCount, ...]:
        return tallies.per_day(name, application=application, environment=environment, days=DAYS)

    return ApplicationFigures(
        taken_at=counted.taken_at,
        is_sampled=counted.is_sampled,
        identities=by_consent.total(),
        by_consent=by_consent,
        by_life=counted.by_life.get(place, Counter()),
        events=counted.events.get(application, Counter()),
        events_since=counted.events_since,
        failures=counted.failures.get(place, Counter()),
        sign_ins=daily(TallyName.SIGNED_IN),
        refetches=daily(TallyName.REFETCHED),
        failed_refetches=daily(TallyName.REFETCH_FAILED),
        event_conflicts=daily(TallyName.EVENT_CONFLICT),
        attention=_attention(application, environment),
    )


def _count(sampling: Sampling) -> _Counted:
    found = _Counted(timezone.now())
    _count_identities(found, sampling)
    whole = WebhookEvent.objects.filter(kept=Retained.EVERYTHING).order_by("-received_at")
    newest = whole.values_list("application", "outcome", "received_at")[:NEWEST_EVENTS]
    for application, outcome, found.events_since in newest:
        found.events.setdefault(application, Counter())[outcome] += 1
    errors = LinkedIdentity.objects.filter(failing(found.taken_at)).values_list(
        "application", "environment", "last_error"
    )[:MOST_FAILING]
    for application, environment, error in errors:
        found.failures.setdefault((application, environment), Counter())[error] += 1
    return found


def _count_identities(found: _Counted, sampling: Sampling) -> None:
    looked_at, share = _choose_rows(sampling)
    found.is_sampled = share < 1
    grouped = (
        looked_at.annotate(life=_life(found.taken_at))
        .values_list("application", "environment", "consent", "kyc_level", "life")
        .annotate(count=Count("pk"))
        .order_by()
    )
    for application, environment, consent, level, life, count in grouped:
        place, scaled = (application, environment), round(count / share)
        found.by_consent.setdefault(place, Counter())[consent, level] += scaled
        found.by_life.setdefault(place, Counter())[life] += scaled


def _choose_rows(sampling: Sampling) -> tuple[QuerySet[LinkedIdentity], float]:
    """The identities to count, and their share of all identities (1.0 if all are counted)."""
    identities = LinkedIdentity.objects.all()
    ends = identities.aggregate(first=Min("pk"), last=Max("pk"))
    if ends["first"] is None:
        return identities, 1.0
    span, most = ends["last"] - ends["first"] + 1, sampling.most_counted
    if span <= most or identities.order_by()[: most + 1].count() <= most:
        return identities, 1.0
    # Blocks that are spread evenly. Their rows represent the rows between them.
    numbers = range(sampling.blocks)
    starts = (ends["first"] + number * span // sampling.blocks for number in numbers)
    blocks = (Q(pk__range=(start, start + sampling.block - 1)) for start in starts)
    share = sampling.blocks * sampling.block / span
    return identities.filter(Q(*blocks, _connector=Q.OR)), share


def _life(now: datetime) -> Case:
    ends = "credential_expires_at"
    spans: Iterable[When] = (
        When(**{f"{ends}__lte": now + timedelta(hours=hours)}, then=Value(span))
        for span, hours in LIFE_SPANS
    )
    none = When(**{f"{ends}__isnull": True}, then=Value("none"))
    return Case(none, *spans, default=Value("24h"), output_field=CharField())


def _attention(application: str, environment: str) -> Attention:
    now = timezone.now()
    here: dict[str, Any] = {"application": application, "environment": environment}
    identities = LinkedIdentity.objects.defer("credential").select_related("user")
    grants = TokenGrant.objects.defer("access_token", "refresh_token")
    return Attention(
        erasures=_first(
            ErasureReceipt.objects.filter(
                **here, erased_at=None, next_attempt_at__isnull=False
            ).order_by("requested_at")
        ),
        failing=_first(
            identities.filter(failing(now), **here).order_by("-refetch_failures", "-pk")
        ),
        failed_events=_first(
            WebhookEvent.objects.filter(application=application, outcome=EventOutcome.FAILED)
            .defer("payload")
            .order_by("-received_at")
        ),
        ending_grants=_first(
            grants.filter(
                identity__application=application,
                identity__environment=environment,
                refresh_expires_at__lt=now + GRANT_ENDS_SOON,
            )
            .select_related("identity__user")
            .defer("access_token", "refresh_token", "identity__credential")
            .order_by("refresh_expires_at")
        ),
    )


def _first(rows: QuerySet[M]) -> Listed[M]:
    found = tuple(rows[: LISTED + 1])
    return Listed(found[:LISTED], len(found) > LISTED)


def gauges() -> Iterator[tuple[Gauge, float, Mapping[str, str]]]:
    """Each gauge of the metrics with its value and attributes. Counts end at 100,000.

    The collector's thread is nobody's request, so the connection is closed if it is too old.
    """
    close_old_connections()
    now = timezone.now()
    for site in conf.applications():
        here = {"application": site.alias, "environment": site.environment}
        due = due_rows.due(site, now=now)
        yield Gauge.DUE, due.order_by()[:MOST_GAUGED].count(), here
        oldest = due.aggregate(at=Min("refetch_due_at"))["at"]
        yield Gauge.LAG, (now - oldest).total_seconds() if oldest else 0.0, here
        failed = LinkedIdentity.objects.filter(failing(now), **here)
        yield Gauge.FAILING, failed[:MOST_GAUGED].count(), here
    pending = ErasureReceipt.objects.filter(erased_at=None)
    asked_at = pending.aggregate(at=Min("requested_at"))["at"]
    yield Gauge.OLDEST, (now - asked_at).total_seconds() if asked_at else 0.0, {}
    close_old_connections()
