"""What the stored rows tell. The number of queries does not depend on the number of rows."""

from collections.abc import Iterator
from datetime import timedelta

from django.db.models import Count, Min, Q
from django.utils import timezone

from django_identity import conf
from django_identity.lifecycle.operators.doctor.findings import Finding, Level, report_count
from django_identity.lifecycle.upkeep import due_rows, last_done, sealing
from django_identity.models import (
    AuthorizationRequest,
    Consent,
    ErasureReceipt,
    EventOutcome,
    Job,
    LinkedIdentity,
    Retained,
    TokenGrant,
    WebhookEvent,
    failing,
    under,
)

OVERDUE = timedelta(minutes=15)
ERASURE_GRACE = timedelta(minutes=10)
MANY_FAILURES = 5
MOST_REASONS = 5
PLACE = ("application", "environment")
# A job that runs each minute may wait behind others; one that runs each hour, for a restart.
LATEST = {Job.SWEEP: OVERDUE, Job.PURGE: timedelta(days=2)}
DAY = timedelta(days=1)
IS_UPKEEP_RUNNING = "Run a worker with beat, or identity_upkeep every minute."
REMEDIES = {
    "client_rejected": "Correct CLIENT_ID and CLIENT_SECRET.",
    "credential_rejected": "API_ORIGIN must be the issuer, CLIENT_ID the audience.",
    "environment_mismatch": "ENVIRONMENT must be that of the client.",
    "keys_unavailable": "See key_set.",
    "subject_unknown": "Add profile:read to SCOPES.",
}


def check_sealed_values() -> Iterator[Finding]:
    for column in sealing.COLUMNS:
        if count := sealing.find_unreadable(column).count():
            # A person can simply start a sign-in again.
            lasts = column.model is not AuthorizationRequest
            level = Level.PROBLEM if lasts else Level.WARNING
            said = f"{column.label}: {count} value(s) that no key of ENCRYPTION_KEYS opens"
            remedy = "Put the former key back, behind the current one (SECRET_KEY_FALLBACKS)."
            yield Finding("sealed_values", level, said, remedy)


def check_jobs() -> Iterator[Finding]:
    """When upkeep last ran. A job that never ran is a problem once there are identities."""
    done, now = last_done(), timezone.now()
    for job, latest in LATEST.items():
        if job in done:
            late = now - done[job] > latest
            level = Level.PROBLEM if late else Level.FINE
            said = f"last {job} at {done[job]:%Y-%m-%d %H:%M} UTC"
            yield Finding("jobs", level, said, IS_UPKEEP_RUNNING if late else "")
        elif LinkedIdentity.objects.filter(created_at__lt=now - latest).exists():
            yield Finding("jobs", Level.PROBLEM, f"no {job} was ever done", IS_UPKEEP_RUNNING)


def check_due_rows() -> Iterator[Finding]:
    late = timezone.now() - OVERDUE
    for site in conf.applications():
        rows = due_rows.due(site, now=late)
        said = "row(s) due for over 15 minutes"
        yield from report_count("due_rows", Level.PROBLEM, rows, said, IS_UPKEEP_RUNNING)


def check_refetches() -> Iterator[Finding]:
    """Rows in a worker's hands do not count: their failure is counted in advance."""
    rows = LinkedIdentity.objects.filter(failing(timezone.now()))
    by_reason = rows.values("last_error").annotate(count=Count("pk"))
    for row in by_reason.order_by("-count")[:MOST_REASONS]:
        said = f"{row['count']} failing: {row['last_error'] or 'no reason kept'}"
        remedy = REMEDIES.get(row["last_error"], "")
        yield Finding("refetches", Level.WARNING, said, remedy)
    many = rows.filter(refetch_failures__gte=MANY_FAILURES)
    said = f"failed {MANY_FAILURES} times in a row or more"
    yield from report_count("refetches", Level.PROBLEM, many, said, "See their pages in the admin.")


def check_sign_ins() -> Iterator[Finding]:
    """Recent sign-ins that failed because of the site's settings."""
    codes = [code for code in REMEDIES if code != "keys_unavailable"]
    failed = AuthorizationRequest.objects.filter(outcome__in=codes)
    for row in failed.values("application", "outcome").annotate(count=Count("pk")).order_by():
        said = f"{row['application']}: {row['count']} failed lately: {row['outcome']}"
        yield Finding("sign_ins", Level.PROBLEM, said, REMEDIES[row["outcome"]])


def check_grants() -> Iterator[Finding]:
    dead = TokenGrant.objects.filter(needs_reauthorization=True, identity__consent=Consent.GRANTED)
    today = Count("pk", filter=Q(updated_at__gte=timezone.now() - DAY))
    found = dead.aggregate(count=Count("pk"), today=today)
    if found["count"]:
        said = (
            f"{found['count']} grant(s) wait for their person to sign in again,"
            f" {found['today']} of them lost in the last 24 hours"
        )
        remedy = "The log lines identity.grant.lost have the reasons."
        yield Finding("grants", Level.WARNING, said, remedy)


def check_events() -> Iterator[Finding]:
    now = timezone.now()
    failed = WebhookEvent.objects.filter(outcome=EventOutcome.FAILED)
    emptied = ~Q(kept=Retained.EVERYTHING) | Q(event_id="")
    said, remedy = "event(s) failed", "Mend the handler; identity_replay."
    yield from report_count("events", Level.PROBLEM, failed.exclude(emptied), said, remedy)
    said, remedy = f"{said}, and their content is deleted", "They cannot be replayed."
    yield from report_count("events", Level.WARNING, failed.filter(emptied), said, remedy)
    late = WebhookEvent.objects.filter(next_attempt_at__lte=now - OVERDUE)
    said = "event(s) wait for their handlers for over 15 minutes"
    yield from report_count("handlers", Level.PROBLEM, late, said, IS_UPKEEP_RUNNING)
    old = Q(pk__in=())
    for site in conf.applications():
        before = now - timedelta(days=site.event_payload_days) - DAY
        old |= Q(application=site.alias, received_at__lt=before)
    # One that waits for its handlers keeps what they need.
    whole = WebhookEvent.objects.filter(old, kept=Retained.EVERYTHING, next_attempt_at=None)
    said = "event(s) keep their payload for longer than EVENT_PAYLOAD_DAYS"
    yield from report_count("payloads", Level.PROBLEM, whole, said, "Run identity_purge each day.")


def check_erasures() -> Iterator[Finding]:
    pending = ErasureReceipt.objects.filter(
        erased_at=None, requested_at__lt=timezone.now() - ERASURE_GRACE
    ).aggregate(count=Count("pk"), oldest=Min("requested_at"))
    if pending["count"]:
        said = f"{pending['count']} not done, the oldest asked for on {pending['oldest']:%Y-%m-%d}"
        remedy = "The receipt in the admin has the error. identity_erase tries again."
        yield Finding("erasures", Level.PROBLEM, said, remedy)


def check_removed_applications() -> Iterator[Finding]:
    """Identities of applications that are not in the settings, and so are not kept up to date."""
    rows = LinkedIdentity.objects.exclude(under(conf.applications()))
    stray = rows.values_list("application", "environment")
    for alias, environment, count in stray.annotate(count=Count("pk")).order_by(*PLACE):
        said = f"{count} identities of {alias}/{environment}, which the settings do not have"
        remedy = "Put it back, or erase them (identity_erase --application --environment)."
        yield Finding("applications", Level.WARNING, said, remedy)
