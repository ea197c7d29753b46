"""Figures that are read from the database whenever metrics are collected."""

from collections.abc import Iterator, Mapping

from django.db import close_old_connections
from django.db.models import Min
from django.utils import timezone

from django_identity import conf
from django_identity.lifecycle.upkeep import due_rows
from django_identity.models import ErasureReceipt, LinkedIdentity
from django_identity.telemetry import Gauge

MOST_COUNTED = 100_000


def gauges() -> Iterator[tuple[Gauge, float, Mapping[str, str]]]:
    """Each gauge with its value and attributes. Counts end at 100,000.

    The collector's thread is nobody's request, so the connection is closed if it is too old.
    """
    close_old_connections()
    now = timezone.now()
    for site in conf.applications():
        here = {"application": site.alias, "environment": site.environment}
        due = due_rows.due(site, now=now)
        yield Gauge.DUE, due.order_by()[:MOST_COUNTED].count(), here
        oldest = due.aggregate(at=Min("refetch_due_at"))["at"]
        yield Gauge.LAG, (now - oldest).total_seconds() if oldest else 0.0, here
        failing = LinkedIdentity.objects.filter(**here, refetch_failures__gt=0)
        yield Gauge.FAILING, failing[:MOST_COUNTED].count(), here
    asked_at = ErasureReceipt.objects.pending().aggregate(at=Min("requested_at"))["at"]
    yield Gauge.OLDEST, (now - asked_at).total_seconds() if asked_at else 0.0, {}
    close_old_connections()
