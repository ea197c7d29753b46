"""What happens in the sandbox, as one list: requests, events and attempts to deliver them."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Self

from django.urls import reverse
from django.utils.translation import gettext as _

from django_identity.sandbox.events import problems
from django_identity.sandbox.instruments import request_log
from django_identity.sandbox.instruments.request_log import ReceivedRequest
from django_identity.sandbox.models import Delivery, DeliveryAttempt

SHOWN = 50
_FIRST_FAILURE = 400


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the list."""

    kind: str
    at: datetime
    title: str
    detail: str
    outcome: str = ""
    failed: bool = False
    address: str = ""


@dataclass(frozen=True, slots=True)
class Place:
    """How far the list was read."""

    requests: int = 0
    deliveries: int = 0
    attempts: int = 0

    def __str__(self) -> str:
        return f"{self.requests}-{self.deliveries}-{self.attempts}"

    @classmethod
    def read(cls, text: str) -> Self:
        """Return the place that ``text`` names; the beginning, if it names none."""
        numbers = text.split("-")
        usable = len(numbers) == 3 and all(each.isdecimal() and each.isascii() for each in numbers)
        return cls(*(min(int(each), 2**62) for each in numbers)) if usable else cls()


def after(place: Place, *, is_local: bool) -> tuple[list[Entry], Place]:
    """Return what happened after ``place``, the oldest first, and where the list ends now.

    Args:
        place: how far the caller has read; the last ``SHOWN`` entries are returned at most.
        is_local: whether the caller may see what private addresses answered.
    """
    requests, request_count = request_log.after(place.requests)
    made = list(
        Delivery.objects.filter(pk__gt=place.deliveries)
        .select_related("client")
        .order_by("-pk")[:SHOWN]
    )
    attempts = list(
        DeliveryAttempt.objects.filter(pk__gt=place.attempts)
        .select_related("delivery__client")
        .order_by("-pk")[:SHOWN]
    )
    end = Place(
        request_count,
        max([place.deliveries, *(each.pk for each in made)]),
        max([place.attempts, *(each.pk for each in attempts)]),
    )
    entries = [
        *map(_request, requests[-SHOWN:]),
        *map(_event, made),
        *_deliveries(attempts, is_local=is_local),
    ]
    return sorted(entries, key=lambda each: each.at)[-SHOWN:], end


def _request(received: ReceivedRequest) -> Entry:
    status = str(received.status or _("no answer"))
    return Entry(
        kind="request",
        at=datetime.fromisoformat(received.time),
        title=f"{received.method} {received.path}",
        detail=" · ".join(filter(None, [received.endpoint, f"{received.milliseconds:g} ms"])),
        outcome=f"{status} ({received.fault})" if received.fault else status,
        failed=(received.status or 500) >= _FIRST_FAILURE,
    )


def _event(delivery: Delivery) -> Entry:
    return Entry(
        kind="event",
        at=delivery.created_at,
        title=delivery.event_type,
        detail=_("about %(user)s, for %(client)s")
        % {"user": delivery.user_id or _("nobody"), "client": delivery.client},
        address=reverse("portal_delivery", args=[delivery.pk]),
    )


def _deliveries(attempts: list[DeliveryAttempt], *, is_local: bool) -> Iterator[Entry]:
    for attempt in attempts:
        if attempt.is_private and not is_local:
            attempt.withhold()
        yield Entry(
            kind="delivery",
            at=attempt.sent_at,
            title=f"{attempt.delivery.event_type} → {attempt.url or _('nowhere')}",
            detail=" · ".join(
                filter(None, [problems.translated(attempt.problem), f"{attempt.milliseconds:g} ms"])
            ),
            outcome=str(attempt.status or _("no answer")),
            failed=not attempt.acknowledged,
            address=reverse("portal_delivery", args=[attempt.delivery.pk]),
        )
