"""Find problems that an operator can fix, with ``diagnose``.

Each check is a function that yields findings. No check changes anything. The number of queries does
not depend on the number of rows.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any

from django.conf import settings
from django.core.checks import Tags, run_checks
from django.db import DatabaseError
from django.db.models import Count, Min, Q, QuerySet
from django.utils import timezone

from django_identity import background, conf
from django_identity.conf import Application
from django_identity.credentials import key_report
from django_identity.exceptions import ServiceError
from django_identity.lifecycle.upkeep import due_rows, key_sets, sealing
from django_identity.models import (
    AuthorizationRequest,
    Consent,
    ErasureReceipt,
    EventOutcome,
    LinkedIdentity,
    TokenGrant,
    WebhookEvent,
)
from django_identity.service import ServiceClient

OVERDUE = timedelta(minutes=15)
ERASURE_GRACE = timedelta(minutes=10)
MANY_FAILURES = 5
MOST_REASONS = 5
PLACE = ("application", "environment")
OF_ONE_PROCESS = ("locmem.LocMemCache", "dummy.DummyCache")


class Level(StrEnum):
    """The severity of a finding. An operator must fix a problem."""

    FINE = "ok"
    WARNING = "warning"
    PROBLEM = "PROBLEM"


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check. ``check`` is its stable name, ``message`` is for people."""

    check: str
    level: Level
    message: str


def is_ready() -> bool:
    """Whether the settings are usable and the database has the package's tables. One query."""
    if any(problem.fatal for problem in conf.problems()):
        return False
    try:
        LinkedIdentity.objects.exists()
    except DatabaseError:
        return False
    return True


def diagnose() -> Iterator[Finding]:
    """Yield all findings, causes before their effects.

    Fatal mistakes in the settings end the diagnosis, because the other checks need the settings.
    """
    yield from _about_settings()
    if any(problem.fatal for problem in conf.problems()):
        return
    yield from _about_key_sets()
    yield from _about_the_broker()
    yield from _about_the_cache()
    for look in RECORD_CHECKS:
        try:
            yield from look()
        except DatabaseError as error:
            yield Finding("database", Level.PROBLEM, f"it does not answer ({type(error).__name__})")
            return


# Checks of the environment


def _about_settings() -> Iterator[Finding]:
    found = [
        message for message in run_checks(tags=[Tags.security]) if _is_ours(str(message.id or ""))
    ]
    for message in found:
        level = Level.PROBLEM if message.is_serious() else Level.WARNING
        yield Finding("settings", level, f"{message.id}: {message.msg}")
    if not found:
        yield Finding("settings", Level.FINE, f"{len(conf.aliases())} application(s) set up")


def _is_ours(check_id: str) -> bool:
    return check_id.startswith("django_identity.")


def _about_key_sets() -> Iterator[Finding]:
    by_origin = {site.api_origin: site for site in conf.applications()}
    for origin, site in by_origin.items():
        yield from _about_key_set(origin, site)


def _about_key_set(origin: str, site: Application) -> Iterator[Finding]:
    age = key_sets.age_of(site)
    held = "none is held" if age is None else f"the held set is {age:.0f} s old"
    try:
        found = key_report.report(ServiceClient(site).key_set().text)
    except ServiceError as error:
        yield Finding("key_set", Level.PROBLEM, f"{origin}: {error.code} ({error}); {held}")
        return
    yield Finding("key_set", Level.FINE, f"{origin}: {len(found.keys)} key(s); {held}")
    for key in found.keys:
        use = "" if key.is_usable else ", not usable"
        name = json.dumps(key.kid)
        yield Finding("key", Level.FINE, f"{name} thumbprint {key.thumbprint or 'none'}{use}")
    for warning in found.warnings:
        level = Level.WARNING if any(key.is_usable for key in found.keys) else Level.PROBLEM
        yield Finding("key", level, f"{origin}: {warning}")


def _about_the_broker() -> Iterator[Finding]:
    if not background.has_broker():
        said = "none is configured: cron has to run identity_refetch --due every minute"
        yield Finding("broker", Level.WARNING, said)
    else:
        yield Finding("broker", Level.FINE, "configured")


def _about_the_cache() -> Iterator[Finding]:
    backend = settings.CACHES["default"]["BACKEND"]
    if backend.endswith(OF_ONE_PROCESS):
        said = "each process has its own cache, so processes do not share RATE_LIMIT"
        yield Finding("cache", Level.WARNING, said)
    else:
        yield Finding("cache", Level.FINE, "shared")


# Checks of the database rows


def _about_sealed_values() -> Iterator[Finding]:
    for column in sealing.COLUMNS:
        if count := sealing.without_a_key(column).count():
            # A person can simply start a sign-in again.
            lasts = column.model is not AuthorizationRequest
            level = Level.PROBLEM if lasts else Level.WARNING
            said = f"{column.label}: {count} value(s) that no key of ENCRYPTION_KEYS opens"
            yield Finding("sealed_values", level, said)


def _about_removed_applications() -> Iterator[Finding]:
    """Identities of applications that are not in the settings, and so are not kept up to date."""
    ours = Q(pk__in=())
    for site in conf.applications():
        ours |= Q(application=site.alias, environment=site.environment)
    stray = LinkedIdentity.objects.exclude(ours).values_list("application", "environment")
    for alias, environment, count in stray.annotate(count=Count("pk")).order_by(*PLACE):
        message = (
            f"{count} identities of {alias}/{environment}, which the settings do not have: put it"
            " back, or erase them (identity_erase --application --environment)"
        )
        yield Finding("applications", Level.WARNING, message)


def _about_erasures() -> Iterator[Finding]:
    pending = ErasureReceipt.objects.filter(
        erased_at=None, requested_at__lt=timezone.now() - ERASURE_GRACE
    ).aggregate(count=Count("pk"), oldest=Min("requested_at"))
    if pending["count"]:
        said = f"{pending['count']} not done, the oldest asked for on {pending['oldest']:%Y-%m-%d}"
        yield Finding("erasures", Level.PROBLEM, said)


def _about_refetches() -> Iterator[Finding]:
    failing = LinkedIdentity.objects.filter(refetch_failures__gt=0)
    by_reason = failing.values("last_error").annotate(count=Count("pk"))
    for row in by_reason.order_by("-count")[:MOST_REASONS]:
        said = f"{row['count']} failing: {row['last_error'] or 'no reason kept'}"
        yield Finding("refetches", Level.WARNING, said)
    if count := failing.filter(refetch_failures__gte=MANY_FAILURES).count():
        said = f"{count} failed {MANY_FAILURES} times in a row or more"
        yield Finding("refetches", Level.PROBLEM, said)


def _about_due_rows() -> Iterator[Finding]:
    late = timezone.now() - OVERDUE
    for site in conf.applications():
        yield from _counted(
            "due_rows",
            Level.PROBLEM,
            due_rows.due(site, now=late),
            "row(s) due for over 15 minutes: is a worker with beat, or identity_refetch, running?",
        )


def _about_events() -> Iterator[Finding]:
    failed = WebhookEvent.objects.filter(outcome=EventOutcome.FAILED)
    yield from _counted("events", Level.PROBLEM, failed, "event(s) failed; see identity_replay")


def _about_grants() -> Iterator[Finding]:
    dead = TokenGrant.objects.filter(needs_reauthorization=True, identity__consent=Consent.GRANTED)
    yield from _counted(
        "grants", Level.WARNING, dead, "grant(s) wait for their person to sign in again"
    )


def _counted(check: str, level: Level, rows: QuerySet[Any], said: str) -> Iterator[Finding]:
    if count := rows.count():
        yield Finding(check, level, f"{count} {said}")


RECORD_CHECKS: tuple[Callable[[], Iterator[Finding]], ...] = (
    _about_sealed_values,
    _about_due_rows,
    _about_refetches,
    _about_grants,
    _about_events,
    _about_erasures,
    _about_removed_applications,
)
