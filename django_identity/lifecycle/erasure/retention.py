"""Retention: how long stored events and started sign-ins stay, and what is left of them after."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone

from django_identity import conf
from django_identity.lifecycle.events.rows import EMPTIED
from django_identity.models import AuthorizationRequest, ConnectRedemption, Retained, WebhookEvent

BATCH = 1000
# A callback that is opened again within that time still goes to where it went before.
REQUEST_LIFETIME = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Purged:
    """How many payloads, whole events, and started sign-ins and redemptions went."""

    payloads: int
    events: int
    requests: int


def count_purgeable() -> int:
    """About how many rows a purge would concern now."""
    now = timezone.now()
    old = now - timedelta(days=min(site.event_payload_days for site in conf.applications()))
    return (
        WebhookEvent.objects.filter(kept=Retained.EVERYTHING, received_at__lt=old).count()
        + AuthorizationRequest.objects.filter(expires_at__lt=now - REQUEST_LIFETIME).count()
    )


def purge(*, size: int = BATCH, progress: Callable[[int], object] = lambda rows: None) -> Purged:
    """Take away what is older than the settings say, in batches of ``size`` rows each.

    Of a stored event the payload goes first, and later all but the digest of its id, by which a
    repeat is known for ever. ``progress`` hears of each batch. May be stopped at any point.
    """
    now = timezone.now()
    payloads = events = 0
    for application in conf.applications():
        of_alias = WebhookEvent.objects.filter(application=application.alias)
        rows_before = now - timedelta(days=application.event_days)
        payloads_before = now - timedelta(days=application.event_payload_days)
        for rows in _batches(_older(of_alias, Retained.EVERYTHING, payloads_before), size):
            emptied = rows.update(payload=None, kept=Retained.NO_PAYLOAD)
            payloads += emptied
            progress(emptied)
        for rows in _batches(_older(of_alias, Retained.NO_PAYLOAD, rows_before), size):
            emptied = rows.update(
                **EMPTIED,
                event_type="",
                handled_by=[],
                next_attempt_at=None,
                kept=Retained.DIGEST_ONLY,
            )
            events += emptied
            progress(emptied)
    requests = _purged_requests(now - REQUEST_LIFETIME, size)
    return Purged(payloads=payloads, events=events, requests=requests)


def _older(
    events: QuerySet[WebhookEvent], kept: Retained, moment: datetime
) -> Callable[[], QuerySet[WebhookEvent]]:
    """The events of which ``kept`` is left and that came in before ``moment``."""
    return lambda: events.filter(kept=kept, received_at__lt=moment).order_by("received_at")


def _batches(rows: Callable[[], QuerySet[Any]], size: int) -> Iterator[QuerySet[Any]]:
    """``rows()`` as long as there are any, by their keys; whoever takes a batch must change it."""
    while keys := list(rows().values_list("pk", flat=True)[:size]):
        yield rows().model._default_manager.filter(pk__in=keys)


def _purged_requests(before: datetime, size: int) -> int:
    """Started sign-ins and redemptions that ran out before that, of every application."""
    purged = 0
    for model in (AuthorizationRequest, ConnectRedemption):
        over = model._default_manager.filter(expires_at__lt=before).order_by("expires_at")
        for rows in _batches(over.all, size):
            purged += rows.delete()[0]
    return purged
