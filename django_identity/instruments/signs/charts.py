"""Two charts: people by their state now, and what came and went in each of the last days."""

from datetime import UTC, date, datetime, time, timedelta
from typing import Any, NamedTuple

from django.db.models import QuerySet
from django.utils import timezone

from django_identity.event_types import Effect, types_of
from django_identity.instruments.signs.table import of_environment
from django_identity.models import Consent, WebhookEvent
from django_identity.models.querysets import number_of

DAYS = 30
# An index has both columns.
STATES: tuple[dict[str, Any], ...] = (
    {"consent": Consent.GRANTED, "kyc_status": "verified"},
    {"consent": Consent.GRANTED, "kyc_status": "unverified"},
    {"consent": Consent.GRANTED, "kyc_status": ""},
    {"consent": Consent.GRANTED, "kyc_status": "rejected"},
    {"consent": Consent.REVOKED},
)


class Day(NamedTuple):
    """How many were linked then and are still, and how many revocations came (UTC)."""

    day: date
    linked: int
    revoked: int


def people() -> list[tuple[Consent, str, int]]:
    """Consent, status of the level, and how many people, as far as they are counted."""
    counts = []
    for state in STATES:
        number = number_of(of_environment().filter(**state))
        counts.append((state["consent"], state.get("kyc_status", ""), number))
    return counts


def days() -> list[Day]:
    """The last days, oldest first. Revocations as far as events are kept."""
    linked = of_environment().filter(consent=Consent.GRANTED)
    ends = types_of(Effect.REVOKE_CONSENT)
    revoked = WebhookEvent.objects.filter(event_type__in=ends)
    return [
        Day(day, _on(day, linked, "created_at"), _on(day, revoked, "received_at"))
        for day in _days()
    ]


def _days() -> list[date]:
    today = timezone.now().astimezone(UTC).date()
    return [today - timedelta(days=passed) for passed in reversed(range(DAYS))]


def _on(day: date, rows: QuerySet[Any], column: str) -> int:
    """By a statement for each day, which reads an index. (SQLite cuts times to days in Python.)"""
    begin = datetime.combine(day, time.min, tzinfo=UTC)
    end = begin + timedelta(days=1)
    within = {f"{column}__gte": begin, f"{column}__lt": end}
    return number_of(rows.filter(**within))
