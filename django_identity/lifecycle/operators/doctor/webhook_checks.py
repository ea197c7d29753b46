"""Whether events arrive: secrets, refused deliveries, and a webhook that nobody calls."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta

from django.utils import timezone

from django_identity import conf
from django_identity.lifecycle.events import tallies
from django_identity.lifecycle.operators.doctor.findings import Finding, Level
from django_identity.models import TallyName, WebhookEvent

DAYS = 30
SILENT_DAYS = 7
REFUSED = {
    TallyName.BAD_SIGNATURE: (
        "with a wrong signature",
        "Compare WEBHOOK_SECRETS with the developer portal. A proxy must not change the body.",
    ),
    TallyName.BAD_EVENT: (
        "that were signed and no event",
        "The log lines identity.event.refused name the member. Tell the service.",
    ),
    TallyName.EVENT_CONFLICT: (
        "that repeated an event id with another body",
        "Tell the service: an event id must name one event.",
    ),
}


def check_webhooks() -> Iterator[Finding]:
    for site in conf.applications():
        if not site.webhook_secrets:
            level = Level.PROBLEM if site.environment == "live" else Level.WARNING
            said = f"{site.alias}: no WEBHOOK_SECRETS, so no event is accepted"
            remedy = "Without events a revocation is noticed by the next re-fetch only. Set it."
            yield Finding("webhook", level, said, remedy)
            continue
        yield from _check_silence(site)
        yield from _check_secrets(site)
        yield from _check_refusals(site)


def _check_refusals(site: conf.Application) -> Iterator[Finding]:
    for name, (what, remedy) in REFUSED.items():
        count, since, latest = _sum_days(site, name)
        if latest is not None:
            is_recent = latest >= timezone.now().date() - timedelta(days=1)
            # Anybody can send a wrong signature, so it is no problem while signed events arrive.
            is_anybody = name == TallyName.BAD_SIGNATURE and _accepted_since(site, latest)
            level = Level.PROBLEM if is_recent and not is_anybody else Level.WARNING
            said = f"{site.alias}: {count} refused {what} since {since}, the last on {latest}"
            yield Finding("webhook", level, said, remedy)


def _accepted_since(site: conf.Application, day: date) -> bool:
    began = datetime.combine(day, time.min, tzinfo=UTC)
    accepted = WebhookEvent.objects.filter(application=site.alias, received_at__gte=began)
    return accepted.exists()


def _check_silence(site: conf.Application) -> Iterator[Finding]:
    """A sign-in causes an event, so sign-ins without events mean that none arrive."""
    since = timezone.now() - timedelta(days=SILENT_DAYS)
    sign_ins, _, _ = _sum_days(site, TallyName.SIGNED_IN, days=SILENT_DAYS)
    heard = WebhookEvent.objects.filter(application=site.alias, received_at__gte=since).exists()
    if sign_ins and not heard:
        said = f"{site.alias}: no event in {SILENT_DAYS} days, and {sign_ins} sign-in(s)"
        remedy = "Register the webhook's address in the developer portal. Can the service reach it?"
        yield Finding("webhook", Level.PROBLEM, said, remedy)


def _check_secrets(site: conf.Application) -> Iterator[Finding]:
    """Of several secrets: which ones sign events, so that the others may go."""
    if len(site.webhook_secrets) < 2:
        return
    for number, secret in enumerate(site.webhook_secrets, start=1):
        used = [_sum_days(site, name) for name in tallies.secret_names(secret)]
        days = [latest for _, _, latest in used if latest is not None]
        said = f"{site.alias}: secret {number} of {len(site.webhook_secrets)}"
        if days:
            yield Finding("webhook", Level.FINE, f"{said} was last used on {max(days)}")
        else:
            said = f"{said} signed nothing in {DAYS} days"
            yield Finding("webhook", Level.WARNING, said, "If others did, it may go.")


def _sum_days(
    site: conf.Application, name: str, *, days: int = DAYS
) -> tuple[int, date | None, date | None]:
    """The sum of the counts, and the first and the last day that had any."""
    each = tallies.per_day(name, application=site.alias, environment=site.environment, days=days)
    found = [day for day in each if day.count]
    first, last = (found[0].day, found[-1].day) if found else (None, None)
    return sum(day.count for day in found), first, last
