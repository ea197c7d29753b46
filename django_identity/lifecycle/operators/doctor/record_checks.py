"""What the stored rows tell. The number of queries does not depend on the number of rows."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, Max, Min, QuerySet
from django.utils import timezone

from django_identity import conf
from django_identity.error_table import hint_of
from django_identity.lifecycle.operators.doctor.finding import Finding, Level
from django_identity.models import (
    AuthorizationRequest,
    Consent,
    ErasureReceipt,
    EventOutcome,
    LinkedIdentity,
    TokenGrant,
    WebhookEvent,
)
from django_identity.models.querysets import under

OVERDUE = timedelta(minutes=15)
SILENT_DAYS = 7
MANY_FAILURES = 5
MOST_COUNTED = 100_000
IS_UPKEEP_RUNNING = "Run a worker with beat, or identity_upkeep every minute."
# The failures of a sign-in that the site's settings cause.
OF_SETTINGS = ("client_rejected", "credential_rejected", "environment_mismatch", "subject_unknown")

Counted = tuple[str, Level, QuerySet[Any], str, str]


def check_records() -> Iterator[Finding]:
    """Each group of rows that needs somebody, with its number."""
    yield from _webhooks()
    for check, level, rows, said, remedy in _counted(timezone.now()):
        if count := rows.count():
            yield Finding(check, level, f"{count} {said}", remedy)
    failing = LinkedIdentity.objects.filter(refetch_failures__gt=0)
    for code, count in _grouped(failing, "last_error")[:5]:
        said = f"{count} failing: {code or 'no reason kept'}"
        yield Finding("refetches", Level.WARNING, said, hint_of(code))
    failed = AuthorizationRequest.objects.filter(outcome__in=OF_SETTINGS)
    for alias, code, count in _grouped(failed, "application", "outcome"):
        said = f"{alias}: {count} failed lately: {code}"
        yield Finding("sign_ins", Level.PROBLEM, said, hint_of(code))
    stray = LinkedIdentity.objects.exclude(under(conf.applications()))
    for alias, environment, count in _grouped(stray, "application", "environment"):
        said = f"{count} identities of {alias}/{environment}, which the settings do not have"
        remedy = "Put it back, or erase them (identity_erase --application --environment)."
        yield Finding("applications", Level.WARNING, said, remedy)


def _grouped(rows: QuerySet[Any], *columns: str) -> list[tuple[Any, ...]]:
    """Values of these columns and how many rows have them, the most frequent first."""
    counted = rows.values_list(*columns).annotate(count=Count("pk"))
    return list(counted.order_by("-count", *columns))


def _counted(now: datetime) -> Iterator[Counted]:
    problem, warning, late = Level.PROBLEM, Level.WARNING, now - OVERDUE
    due = LinkedIdentity.objects.filter(under(conf.applications()), refetch_due_at__lte=late)
    yield "due_rows", problem, due, "row(s) due for over 15 minutes", IS_UPKEEP_RUNNING
    many = LinkedIdentity.objects.filter(refetch_failures__gte=MANY_FAILURES)
    said = f"failed {MANY_FAILURES} times in a row or more"
    yield "refetches", problem, many, said, "See their pages in the admin."
    dead = TokenGrant.objects.filter(needs_reauthorization=True, identity__consent=Consent.GRANTED)
    said = "grant(s) wait for their person to sign in again"
    yield "grants", warning, dead, said, "The log lines identity.grant.lost have the reasons."
    # Without its content an event cannot be replayed, so nobody can do anything about it.
    failed = WebhookEvent.objects.filter(outcome=EventOutcome.FAILED).exclude(event_id="")
    yield "events", problem, failed, "event(s) failed", "Mend the handler; identity_replay."
    waiting = WebhookEvent.objects.filter(next_attempt_at__lte=late)
    said = "event(s) wait for their handlers for over 15 minutes"
    yield "handlers", problem, waiting, said, IS_UPKEEP_RUNNING
    audited = ErasureReceipt.objects.filter(audit__isnull=False).exclude(audit__hits={})
    left = audited.filter(erased_at__gte=now - timedelta(days=30))
    remedy = "The receipt in the admin names model and field: extend the policy's erase_user."
    yield "audits", warning, left, "erasure(s) left something of the person", remedy
    pending = ErasureReceipt.objects.filter(erased_at=None, requested_at__lt=late)
    remedy = "The receipt in the admin has the error, and a button that tries again."
    yield "erasures", problem, pending, "not done", remedy


def _webhooks() -> Iterator[Finding]:
    """No event, though a sign-in causes one. The system checks tell of a missing secret."""
    since = timezone.now() - timedelta(days=SILENT_DAYS)
    for site in conf.applications():
        heard = WebhookEvent.objects.filter(application=site.alias, received_at__gte=since)
        people = LinkedIdentity.objects.under(site).filter(signed_in_at__gte=since)
        if people.exists() and not heard.exists():
            said = f"{site.alias}: people signed in, and no event came in {SILENT_DAYS} days"
            remedy = (
                "Register the webhook's address in the developer portal. If log lines"
                " identity.event.refused tell of a wrong signature, compare WEBHOOK_SECRETS with it"
            )
            yield Finding("webhook", Level.PROBLEM, said, remedy)


def figures() -> dict[str, float]:
    """The figures to alert on. Counts end at 100,000. Ages are seconds."""
    now = timezone.now()
    ours = LinkedIdentity.objects.filter(under(conf.applications()))
    waiting = WebhookEvent.objects.filter(next_attempt_at__lte=now)
    pending = ErasureReceipt.objects.filter(erased_at=None)
    return {
        "failing": ours.filter(refetch_failures__gt=0)[:MOST_COUNTED].count(),
        "due": ours.filter(refetch_due_at__lte=now)[:MOST_COUNTED].count(),
        "oldest_due": _age(ours, Min("refetch_due_at"), now),
        "waiting_events": waiting[:MOST_COUNTED].count(),
        "oldest_waiting_event": _age(waiting, Min("next_attempt_at"), now),
        "pending_erasures": pending[:MOST_COUNTED].count(),
        "oldest_erasure": _age(pending, Min("requested_at"), now),
        "no_event_for": _age(WebhookEvent.objects.all(), Max("received_at"), now),
    }


def _age(rows: QuerySet[Any], time: Min | Max, now: datetime) -> float:
    """The seconds since the oldest or newest time; 0 if it is not in the past, or there is none."""
    at = rows.aggregate(at=time)["at"]
    return max(0.0, (now - at).total_seconds()) if at else 0.0
