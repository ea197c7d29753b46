"""What happens in the sandbox: requests, events and attempts to deliver them."""

from dataclasses import dataclass, replace
from datetime import datetime

from django.urls import reverse

from django_identity.sandbox import request_log
from django_identity.sandbox.events.deliveries import Attempt
from django_identity.sandbox.models import Client, Delivery, User
from django_identity.sandbox.request_log import ReceivedRequest

SHOWN = 50
_LOOKED_AT = 500
#: What the specification names. All else is a page of the sandbox.
_OF_SITES = ("/api/", "/oauth2/", "/.well-known/")


@dataclass(slots=True, kw_only=True)
class Entry:
    """One line of the list; ``is_good``: 2xx. ``address``: the console's page about it."""

    kind: str
    at: datetime
    title: str
    user_id: str
    client_id: str
    detail: str = ""
    outcome: str = ""
    is_good: bool = True
    is_failed: bool = False
    address: str = ""
    person: User | None = None
    site: Client | None = None


def entries(*, with_good: bool, with_pages: bool) -> list[Entry]:
    """Return the last lines, the newest first.

    Args:
        with_good: those with 2xx too.
        with_pages: requests of people's pages too, which are not what a site asks for.
    """
    lines = []
    for received in request_log.newest(_LOOKED_AT):
        if with_pages or received.path.startswith(_OF_SITES):
            lines.append(_request(received))
    # Of those that went well as many as are shown suffice.
    most = SHOWN if with_good else _LOOKED_AT
    deliveries = Delivery.objects.order_by("-changed_at").select_related("client")
    for delivery in deliveries[:most]:
        lines += _delivery(delivery)
    lines.sort(key=lambda entry: entry.at, reverse=True)
    shown = [entry for entry in lines if with_good or not entry.is_good][:SHOWN]

    people = User.objects.in_bulk(
        {entry.user_id for entry in shown}, field_name="subject"
    )
    sites = Client.objects.in_bulk(
        {entry.client_id for entry in shown}, field_name="client_id"
    )
    for entry in shown:
        entry.person = people.get(entry.user_id)
        entry.site = sites.get(entry.client_id)
    return shown


def _request(received: ReceivedRequest) -> Entry:
    outcome = "no answer"
    is_good = False
    is_failed = True
    if received.status is not None:
        outcome = str(received.status)
        is_good = received.status < 300
        is_failed = received.status >= 400

    if received.fault:
        outcome += f" ({received.fault})"
        is_good = False
        is_failed = True

    return Entry(
        kind="request",
        at=datetime.fromisoformat(received.time),
        title=f"{received.method} {received.path}",
        user_id=received.user_id,
        client_id=received.client_id,
        detail=f"{received.milliseconds:g} ms",
        outcome=outcome,
        is_good=is_good,
        is_failed=is_failed,
    )


def _delivery(delivery: Delivery) -> list[Entry]:
    """Return a line for the event, and one for each attempt to deliver it."""
    event = Entry(
        kind="event",
        at=delivery.created_at,
        title=delivery.event_type,
        user_id=delivery.user_id,
        client_id=delivery.client.client_id,
        address=reverse("console_delivery", args=[delivery.pk]),
    )
    lines = [event]
    for stored in delivery.attempts:
        attempt = Attempt(**stored)
        line = replace(
            event,
            kind="delivery",
            at=datetime.fromisoformat(attempt.sent_at),
            title=f"{event.title} → {attempt.url or 'nowhere'}",
            detail=f"{attempt.problem} {attempt.milliseconds:g} ms".strip(),
            outcome=str(attempt.status or "no answer"),
            is_good=attempt.is_acknowledged,
            is_failed=not attempt.is_acknowledged,
        )
        lines.append(line)
    return lines
