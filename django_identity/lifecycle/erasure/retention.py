"""Retention: reduce old events, and delete old sign-ins and redemptions."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from django.db.models import Q, QuerySet
from django.utils import timezone

from django_identity import conf
from django_identity.lifecycle.erasure.disconnection import disconnect
from django_identity.lifecycle.events.rows import EMPTIED
from django_identity.models import (
    AuthorizationRequest,
    ConnectRedemption,
    Consent,
    EventOutcome,
    LinkedIdentity,
    Retained,
    WebhookEvent,
)
from django_identity.telemetry import LogEvent, log_error

BATCH = 1000
#: The columns of an event of which only the digest stays.
DIGEST_ONLY: Mapping[str, Any] = {
    **EMPTIED,
    "event_type": "",
    "handled_by": [],
    "next_attempt_at": None,
    "kept": Retained.DIGEST_ONLY,
}
#: The ``error`` of an event that no worker took until its content had to go.
NEVER_HANDLED = "never_handled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Purged:
    """The numbers of emptied payloads, reduced events, and deleted sign-ins and redemptions."""

    payloads: int
    events: int
    requests: int
    identities: int


def count_purgeable() -> int:
    """The approximate number of rows that a purge would change now."""
    now = timezone.now()
    old = now - timedelta(days=min(site.event_payload_days for site in conf.applications()))
    return (
        WebhookEvent.objects.filter(kept=Retained.EVERYTHING, received_at__lt=old).count()
        + AuthorizationRequest.objects.filter(expires_at__lt=now).count()
    )


def purge(*, size: int = BATCH, progress: Callable[[int], object] = lambda rows: None) -> Purged:
    """Purge data that is older than the settings allow, in batches of ``size`` rows.

    An event first loses its payload, and later everything except the digest of its id, which
    recognises a repeat. An event keeps its payload while its handlers wait, but no longer than
    ``EVENT_DAYS``. ``progress`` is called after each batch. It is safe to stop at any point.
    """
    now = timezone.now()
    payloads = events = identities = 0
    for application, of_alias in _applications():
        events_of = WebhookEvent.objects.filter(of_alias)
        rows_before = now - timedelta(days=application.event_days)
        payloads_before = now - timedelta(days=application.event_payload_days)
        whole = events_of.filter(kept=Retained.EVERYTHING).order_by("received_at")
        handled = whole.filter(next_attempt_at=None, received_at__lt=payloads_before)
        for rows in _batches(handled, size):
            emptied = rows.update(payload=None, kept=Retained.NO_PAYLOAD)
            payloads += emptied
            progress(emptied)
        reduced = events_of.filter(kept=Retained.NO_PAYLOAD, received_at__lt=rows_before)
        for rows in _batches(reduced.order_by("received_at"), size):
            emptied = rows.update(**DIGEST_ONLY)
            events += emptied
            progress(emptied)
        for rows in _batches(whole.filter(received_at__lt=rows_before), size):
            payloads += _give_up(rows)
        revoked_before = now - timedelta(days=application.revoked_days)
        revoked = LinkedIdentity.objects.filter(
            of_alias, consent=Consent.REVOKED, consent_changed_at__lt=revoked_before
        )
        for rows in _batches(revoked.order_by("pk"), size):
            # The person may have come back since the batch was read.
            identities += sum(disconnect(each, only=Q(consent=Consent.REVOKED)) for each in rows)
    requests = 0
    for model in (AuthorizationRequest, ConnectRedemption):
        over = model._default_manager.filter(expires_at__lt=now).order_by("expires_at")
        requests += sum(rows.delete()[0] for rows in _batches(over, size))
    return Purged(payloads=payloads, events=events, requests=requests, identities=identities)


def _give_up(rows: QuerySet[WebhookEvent]) -> int:
    """Empty events whose handlers still wait after ``EVENT_DAYS``, and say so: they have failed."""
    counts = Counter(rows.values_list("application", flat=True))
    emptied = rows.update(
        payload=None,
        kept=Retained.NO_PAYLOAD,
        outcome=EventOutcome.FAILED,
        error=NEVER_HANDLED,
        next_attempt_at=None,
    )
    for alias, count in counts.items():
        log_error(LogEvent.EVENTS_NOT_HANDLED, application=alias, count=count)
    return emptied


def _applications() -> Iterator[tuple[conf.Application, Q]]:
    """Each application with the condition for its rows.

    Rows of an application that the settings no longer have are kept as long as the shortest-lived
    of the others.
    """
    configured = conf.applications()
    for application in configured:
        yield application, Q(application=application.alias)
    shortest = replace(
        configured[0],
        event_days=min(site.event_days for site in configured),
        event_payload_days=min(site.event_payload_days for site in configured),
        revoked_days=min(site.revoked_days for site in configured),
    )
    yield shortest, ~Q(application__in=[application.alias for application in configured])


def _batches(rows: QuerySet[Any], size: int) -> Iterator[QuerySet[Any]]:
    """Yield ``rows`` in batches until none is left. The caller must change each batch."""
    while keys := list(rows.values_list("pk", flat=True)[:size]):
        yield rows.model._default_manager.filter(pk__in=keys)
