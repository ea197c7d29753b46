"""The figures of one application, and what needs attention. Figures are kept for one minute."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, Generic, TypeVar

from django.core.cache import cache
from django.db.models import (
    Case,
    CharField,
    Count,
    Exists,
    Model,
    OuterRef,
    Q,
    QuerySet,
    Value,
    When,
)
from django.db.models.functions import TruncDate
from django.utils import timezone

from django_identity.models import (
    ErasureReceipt,
    EventOutcome,
    LinkedIdentity,
    TokenGrant,
    WebhookEvent,
)

LISTED = 10
MOST_REASONS = 8
DAYS = 30
GRANT_ENDS_SOON = timedelta(days=5)
KEPT_SECONDS = 60
CACHE_KEY = "django_identity.overview.4"
# The upper end of each span of a credential's remaining life, in hours. Longer lives are "24h".
LIFE_SPANS = (("ran_out", 0), ("1h", 1), ("6h", 6), ("12h", 12))

M = TypeVar("M", bound=Model)


@dataclass(frozen=True, slots=True)
class DayCount:
    """The count of one day (UTC)."""

    day: date
    count: int


@dataclass(frozen=True, slots=True)
class Listed(Generic[M]):
    """The first rows that need attention. ``is_more``: there are more rows."""

    rows: tuple[M, ...]
    is_more: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """One application in one environment.

    ``by_consent``: (consent, KYC level) -> identities; ``by_life``: the span of the credential's
    remaining life -> identities. ``linked``, ``received``: people linked, and events received, on
    each of the last 30 days.
    """

    taken_at: datetime
    by_consent: Mapping[tuple[str, str], int]
    by_life: Mapping[str, int]
    linked: tuple[DayCount, ...]
    received: tuple[DayCount, ...]

    @property
    def identities(self) -> int:
        return sum(self.by_consent.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Attention:
    """What needs an operator. ``failures``: the reasons of failing re-fetches, the commonest first.

    Grants that end soon need their person only, so they do not count against health.
    """

    erasures: Listed[ErasureReceipt]
    failures: tuple[tuple[str, int], ...]
    failed_events: Listed[WebhookEvent]
    ending_grants: Listed[TokenGrant]

    @property
    def is_healthy(self) -> bool:
        return not (self.erasures.rows or self.failures or self.failed_events.rows)


def figures_of(application: str, environment: str) -> Figures:
    """The figures, at most a minute old."""
    key = f"{CACHE_KEY}.{application}.{environment}"
    found = cache.get(key)
    if not isinstance(found, Figures):
        found = _count(LinkedIdentity.objects.filter(_place(application, environment)), application)
        cache.set(key, found, timeout=KEPT_SECONDS)
    return found


def attention_of(application: str, environment: str) -> Attention:
    """What needs attention now."""
    now, here = timezone.now(), _place(application, environment)
    rows = LinkedIdentity.objects.filter(here, refetch_failures__gt=0).values_list("last_error")
    reasons = rows.annotate(count=Count("pk")).order_by("-count", "last_error")[:MOST_REASONS]
    pending = ErasureReceipt.objects.filter(application=application, erased_at=None)
    failed = WebhookEvent.objects.filter(application=application, outcome=EventOutcome.FAILED)
    ending = TokenGrant.objects.filter(
        identity__application=application,
        identity__environment=environment,
        refresh_expires_at__lt=now + GRANT_ENDS_SOON,
    )
    secret = ("access_token", "refresh_token")
    return Attention(
        erasures=_first(pending.order_by("requested_at")),
        failures=tuple(reasons),
        failed_events=_first(failed.defer("payload").order_by("-received_at")),
        ending_grants=_first(
            ending.select_related("identity__user").defer(*secret).order_by("refresh_expires_at")
        ),
    )


def with_erasures(identities: QuerySet[LinkedIdentity]) -> QuerySet[LinkedIdentity]:
    """``identities`` with ``has_pending_erasure``: of the identity, or of the whole account."""
    pending = ErasureReceipt.objects.filter(erased_at=None)
    of_row = Q(identity_id=OuterRef("pk")) | Q(user_id=OuterRef("user_id"))
    return identities.annotate(has_pending_erasure=Exists(pending.filter(of_row)))


def _place(application: str, environment: str) -> Q:
    return Q(application=application, environment=environment)


def _count(identities: QuerySet[LinkedIdentity], application: str) -> Figures:
    now = timezone.now()
    by_consent: Counter[tuple[str, str]] = Counter()
    by_life: Counter[str] = Counter()
    grouped = identities.annotate(life=_life(now)).values_list("consent", "kyc_level", "life")
    for consent, level, life, count in grouped.annotate(count=Count("pk")).order_by():
        by_consent[consent, level] += count
        by_life[life] += count
    events = WebhookEvent.objects.filter(application=application)
    return Figures(
        taken_at=now,
        by_consent=by_consent,
        by_life=by_life,
        linked=_per_day(identities, "created_at", now),
        received=_per_day(events, "received_at", now),
    )


def _per_day(rows: QuerySet[Any], column: str, now: datetime) -> tuple[DayCount, ...]:
    """How many rows are of each of the last 30 days, oldest first."""
    recent = rows.filter(**{f"{column}__gte": now - timedelta(days=DAYS)})
    by_day = recent.annotate(day=TruncDate(column, tzinfo=UTC)).values_list("day")
    counts = dict(by_day.annotate(count=Count("pk")).order_by())
    today = now.astimezone(UTC).date()
    days = (today - timedelta(days=passed) for passed in reversed(range(DAYS)))
    return tuple(DayCount(day, counts.get(day, 0)) for day in days)


def _life(now: datetime) -> Case:
    ends = "credential_expires_at"
    spans = [
        When(**{f"{ends}__lte": now + timedelta(hours=hours)}, then=Value(span))
        for span, hours in LIFE_SPANS
    ]
    none = When(**{f"{ends}__isnull": True}, then=Value("none"))
    return Case(none, *spans, default=Value("24h"), output_field=CharField())


def _first(rows: QuerySet[M]) -> Listed[M]:
    found = tuple(rows[: LISTED + 1])
    return Listed(found[:LISTED], len(found) > LISTED)
