"""What the stored rows tell. The number of queries does not depend on the number of rows.

Nor does its time, but for the rows that fail.
"""

from collections import Counter
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, Exists, Max, Min, OuterRef, QuerySet
from django.utils import timezone

from django_identity import conf
from django_identity.error_table import hint_of
from django_identity.event_types import KINDS
from django_identity.exceptions import SealedValueUnreadable
from django_identity.lifecycle import runs
from django_identity.lifecycle.operators.doctor.finding import (
    Diagnosis,
    Level,
    counted,
    problem,
    warning,
)
from django_identity.lifecycle.operators.doctor.grant_checks import lost_lately
from django_identity.models import (
    AuthorizationRequest,
    Environment,
    ErasureReceipt,
    EventOutcome,
    LinkedIdentity,
    WebhookEvent,
)
from django_identity.models.querysets import MOST_COUNTED, number_of

SILENT_DAYS = 7
NAMELESS_DAYS = 1
MANY_FAILURES = 5
MOST_REASONS = 5
# Of all events it would take as long as there are events.
MOST_EVENTS = 10_000
LISTED_FOR = timedelta(days=30)
# The failures of a sign-in that the site's settings cause.
OF_SETTINGS = (
    "client_rejected",
    "configuration",
    "credential_rejected",
    "environment_mismatch",
    "sealed_value_unreadable",
    "subject_unknown",
    "unexpected_redirect",
)
REGISTER_IT = (
    "Register the webhook's address in the developer portal. A POST without a signature must"
    " answer 401 there, and no redirect. If log lines identity.event.refused tell of a wrong"
    " signature, compare WEBHOOK_SECRETS with it."
)
NAME_THE_MEMBER = (
    "Add the member that has the person's id to EVENT_SUBJECT_PATHS: the log's WARNINGs name the"
    " members. What people revoked or asked to delete is still here: the service got 422."
)
STRAY = (
    "They open nothing: a copy of another site's database has them. identity_erase --links-of"
    " deletes them, and no account."
)


def check_records() -> Diagnosis:
    """Each group of rows that needs somebody, with its number."""
    yield from _webhooks()
    yield from _failing()
    yield from _strays()
    yield from _sign_ins()
    yield from _events()
    yield from _receipts()


def _webhooks() -> Diagnosis:
    """No event, though a sign-in causes one. The system checks tell of a missing secret."""
    since = timezone.now() - timedelta(days=SILENT_DAYS)
    people = LinkedIdentity.objects.served().filter(signed_in_at__gte=since)
    events = WebhookEvent.objects.filter(received_at__gte=since)
    if people.exists() and not events.exists():
        message = f"people signed in, and no event came in {SILENT_DAYS} days"
        yield problem("webhook", message, REGISTER_IT)


def _failing() -> Diagnosis:
    """Failing re-fetches by their reason, the most frequent first. An index has both columns."""
    failing = LinkedIdentity.objects.filter(refetch_failures__gt=0)
    rows = list(failing.values_list("last_error", "refetch_failures")[:MOST_COUNTED])
    stuck = sum(failures >= MANY_FAILURES for _code, failures in rows)
    if stuck:
        message = f"{stuck} failed {MANY_FAILURES} times in a row or more"
        yield problem("refetches", message, "See their pages in the admin.")

    reasons = Counter(code for code, _failures in rows)
    # That is the site's own fault, from the first one on.
    unreadable = SealedValueUnreadable.code
    if count := reasons.pop(unreadable, 0):
        message = f"{count} failing: {unreadable}"
        yield problem("refetches", message, hint_of(unreadable))
    named = 0
    for code, count in reasons.most_common(MOST_REASONS):
        named += count
        message = f"{count} failing: {code or 'no reason kept'}"
        yield warning("refetches", message, hint_of(code))
    if others := reasons.total() - named:
        message = f"{others} failing for other reasons"
        yield warning(
            "refetches", message, "The overview in the admin has all of them."
        )


def _strays() -> Diagnosis:
    """Identities of the environment that the settings do not have."""
    ours = conf.application().environment
    for environment in Environment.values:
        if environment != ours:
            yield from counted(
                "environment",
                LinkedIdentity.objects.filter(environment=environment),
                f"identities of {environment}, which the settings do not have",
                STRAY,
            )


def _sign_ins() -> Diagnosis:
    """Failed sign-ins by their reason, the most frequent first."""
    failed = AuthorizationRequest.objects.filter(outcome__in=OF_SETTINGS)
    groups = failed.values_list("outcome").annotate(count=Count("pk"))
    for code, count in groups.order_by("-count", "outcome"):
        message = f"{count} failed lately: {code}"
        yield problem("sign_ins", message, hint_of(code))


def _events() -> Diagnosis:
    """Events that failed, those that were not applied, and what one left without its identity."""
    events = WebhookEvent.objects.all()
    lately = timezone.now() - timedelta(days=NAMELESS_DAYS)
    yield from counted(
        "events",
        events.filter(subject_digest="", event_type__in=KINDS, received_at__gte=lately),
        "event(s) named nobody",
        NAME_THE_MEMBER,
    )
    yield from counted(
        "events",
        # Without its content an event cannot be replayed, so nobody can do anything about it.
        events.filter(outcome=EventOutcome.FAILED).exclude(event_id=""),
        "event(s) failed",
        "Mend the handler; identity_replay.",
    )
    # Acknowledged or not, nothing has become of them. After each failure they are due later.
    late = runs.late()
    yield from counted(
        "events",
        events.filter(outcome="", received_at__lt=late),
        "event(s) are stored and not applied: what they revoke is still open",
        "They are tried again. The log lines identity.event.failed have the error: mend that.",
    )
    newest = events.aggregate(pk=Max("pk"))["pk"] or 0
    linked = LinkedIdentity.objects.filter(subject_digest=OuterRef("subject_digest"))
    # What is not applied yet keeps its content until it is.
    applied = events.filter(pk__gt=newest - MOST_EVENTS).exclude(outcome="")
    with_content = applied.exclude(subject="")
    yield from counted(
        "events",
        with_content.filter(~Exists(linked)),
        "event(s) with content of somebody who is not linked",
        "SQL or a data migration deleted the identity. identity_erase SUBJECT empties them.",
    )


def _receipts() -> Diagnosis:
    """What lately done erasures left, and those that are not done."""
    now = timezone.now()
    receipts = ErasureReceipt.objects.all()
    done = receipts.filter(erased_at__gte=now - LISTED_FOR)
    audited = done.filter(audit__isnull=False)
    yield from counted(
        "audits",
        audited.exclude(audit__hits={}),
        "erasure(s) left something of the person",
        "The receipt in the admin names model and field: extend the policy's erase_user.",
        level=Level.WARNING,
    )
    yield from counted(
        "audits",
        audited.exclude(audit__unread={}),
        "erasure(s) after which not everything could be read",
        "The receipt in the admin names what was not read, and why: look there yourself.",
        level=Level.WARNING,
    )
    yield from counted(
        "erasures",
        done.filter(account_was_gone=True),
        "account(s) that the site deleted before: erase_user did not run",
        "Look for what erase_user would have erased in your own tables.",
        level=Level.WARNING,
    )
    yield from counted(
        "erasures",
        receipts.filter(erased_at=None, requested_at__lt=runs.late()),
        "not done",
        "The receipt in the admin has the error, and a button that tries again.",
    )


def figures() -> dict[str, float]:
    """The figures to alert on. Counts end at 100,000. Ages are seconds."""
    now = timezone.now()
    ours = LinkedIdentity.objects.served()
    waiting = WebhookEvent.objects.filter(next_attempt_at__lte=now)
    pending = ErasureReceipt.objects.filter(erased_at=None)
    return {
        "failing": number_of(ours.filter(refetch_failures__gt=0)),
        "due": number_of(ours.filter(refetch_due_at__lte=now)),
        "oldest_due": _age(ours, Min("refetch_due_at"), now),
        "lost_grants": number_of(lost_lately(now)),
        "waiting_events": number_of(waiting),
        "oldest_waiting_event": _age(waiting, Min("next_attempt_at"), now),
        "pending_erasures": number_of(pending),
        "oldest_erasure": _age(pending, Min("requested_at"), now),
        "no_event_for": _silence(now),
    }


def _silence(now: datetime) -> float:
    """The seconds since the newest event."""
    newest = WebhookEvent.objects.order_by("-received_at")
    received_at = newest.values_list("received_at", flat=True).first()
    return _seconds_since(received_at, now)


def _age(rows: QuerySet[Any], time: Min, now: datetime) -> float:
    """The seconds since the oldest time; 0 if it is not in the past, or there is none."""
    return _seconds_since(rows.aggregate(at=time)["at"], now)


def _seconds_since(at: datetime | None, now: datetime) -> float:
    if at is None:
        return 0.0
    return max(0.0, (now - at).total_seconds())
