"""Two charts: people by their state now, and what came and went in each of the last days."""

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from django.db.models import Count, QuerySet
from django.db.models.functions import TruncDate
from django.utils import timezone

from django_identity.event_types import EventType
from django_identity.models import Consent, LinkedIdentity, WebhookEvent

DAYS = 30


@dataclass(frozen=True, slots=True)
class Day:
    """How many were linked then and are still, and how many revocations came (UTC)."""

    day: date
    linked: int
    revoked: int


def people() -> Counter[tuple[str, str]]:
    """(consent, level) -> how many people, the most frequent first. One index has both columns."""
    states = LinkedIdentity.objects.served().values_list("consent", "kyc_level")
    counted = states.annotate(count=Count("pk")).order_by("-count")
    return Counter({(consent, level): count for consent, level, count in counted})


def days() -> list[Day]:
    """The last days, oldest first. Revocations as far as events are kept."""
    linked = LinkedIdentity.objects.served().filter(consent=Consent.GRANTED)
    revoked = WebhookEvent.objects.filter(event_type=EventType.CONSENT_REVOKED)
    came = _per_day(linked, "created_at")
    went = _per_day(revoked, "received_at")
    return [Day(day, came.get(day, 0), went.get(day, 0)) for day in _days()]


def _days() -> list[date]:
    today = timezone.now().astimezone(UTC).date()
    return [today - timedelta(days=passed) for passed in reversed(range(DAYS))]


def _per_day(rows: QuerySet[Any], column: str) -> dict[date, int]:
    begin = datetime.combine(_days()[0], time.min, tzinfo=UTC)
    recent = rows.filter(**{f"{column}__gte": begin})
    by_day = recent.values_list(TruncDate(column, tzinfo=UTC)).order_by()
    return dict(by_day.annotate(count=Count("pk")))
