"""Deliveries: stored with their cause, retried until acknowledged, sent again on request.

An event is stored in the transaction that causes it. ``sender`` sends it after the commit, and
retries after each pause of ``BACKOFF``. The pauses use the sandbox's clock, so moving the clock
brings the next attempt forward.
"""

import random
import threading
from collections import Counter
from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum

from django.db import transaction

from django_identity.sandbox.events import problems
from django_identity.sandbox.events.addresses import is_named_by_operator
from django_identity.sandbox.events.courier import Courier, Outcome
from django_identity.sandbox.events.event import Event
from django_identity.sandbox.instruments import clock, switches
from django_identity.sandbox.models import Client, Delivery, DeliveryAttempt, DeliveryState

BACKOFF = tuple(timedelta(seconds=each) for each in (1, 2, 5, 15, 60, 300, 1800, 7200))

due = threading.Condition()


class ReleaseOrder(StrEnum):
    """The order in which held deliveries are sent."""

    MADE = "made"
    REVERSED = "reversed"
    SHUFFLED = "shuffled"


def wake() -> None:
    """Make the sender look for due deliveries."""
    with due:
        due.notify()


@transaction.atomic
def queue(event: Event, client: Client, *, user_id: str) -> Delivery:
    """Store ``event`` for ``client``. It is sent when the current transaction commits.

    Raises:
        UnicodeEncodeError: it contains text that UTF-8 cannot encode.
    """
    now, held = clock.now(), client.webhook_held
    delivery = Delivery.objects.create(
        client=client,
        event_id=event.event_id,
        event_type=event.event_type,
        user_id=user_id,
        body=event.body(),
        created_at=now,
        state=DeliveryState.HELD if held else DeliveryState.WAITING,
        next_attempt_at=None if held else now,
    )
    transaction.on_commit(wake)
    return delivery


def take(in_flight: Mapping[int, int]) -> Delivery | None:
    """Return the oldest due delivery that may be sent now.

    Args:
        in_flight: the deliveries that are being sent, each with its client. They are left out, and
            so are clients that already have as many as the switch allows.
    """
    allowed = switches.current().parallel_deliveries
    if not allowed:
        return None
    busy = [client for client, count in Counter(in_flight.values()).items() if count >= allowed]
    return (
        Delivery.objects.filter(state=DeliveryState.WAITING, next_attempt_at__lte=clock.now())
        .exclude(pk__in=in_flight)
        .exclude(client__in=busy)
        .select_related("client")
        .order_by("next_attempt_at", "pk")
        .first()
    )


def seconds_until_next() -> float | None:
    """Return the seconds until the next waiting delivery is due, or None without one."""
    now = clock.now()
    later = Delivery.objects.filter(state=DeliveryState.WAITING, next_attempt_at__gt=now)
    moment = later.order_by("next_attempt_at").values_list("next_attempt_at", flat=True).first()
    return (moment - now).total_seconds() if moment else None


def attempt(delivery: Delivery, courier: Courier) -> None:
    """Send ``delivery`` once to its application's current address, and record the result."""
    client, sent_at = delivery.client, clock.now()
    is_named = is_named_by_operator(client.webhook_url)
    outcome = (
        courier.send(
            client.webhook_url,
            delivery.body.encode(),
            secret=client.webhook_secret,
            seconds=switches.current().webhook_timeout,
            privately=client.webhook_is_local or is_named,
        )
        if client.webhook_url
        else Outcome({}, None, "", problems.NO_ADDRESS, 0)
    )
    with transaction.atomic():
        if _conclude(delivery, outcome):
            DeliveryAttempt.objects.create(
                delivery=delivery,
                sent_at=sent_at,
                url=client.webhook_url,
                headers=dict(outcome.headers),
                status=outcome.status,
                excerpt=outcome.excerpt,
                problem=outcome.problem,
                milliseconds=outcome.milliseconds,
                is_private=outcome.is_private and not is_named,
            )


@transaction.atomic
def send_again(delivery: Delivery) -> None:
    """Send ``delivery`` now, whatever its state. The attempts start again."""
    Delivery.objects.filter(pk=delivery.pk).update(
        state=DeliveryState.WAITING, tries=0, next_attempt_at=clock.now()
    )
    transaction.on_commit(wake)


def hold(client: Client) -> None:
    """Hold new events from now on, until they are released."""
    Client.objects.filter(pk=client.pk).update(webhook_held=True)


@transaction.atomic
def release(client: Client, *, order: ReleaseOrder, copies: int, seed: int) -> int:
    """Send the held events, and hold no more.

    Args:
        client: the client of the deliveries.
        order: the order in which they are sent, including the copies.
        copies: how often each event is sent, as separate deliveries with the same body.
        seed: the seed for ``SHUFFLED``.

    Returns:
        The number of deliveries.
    """
    Client.objects.filter(pk=client.pk).update(webhook_held=False)
    held = list(Delivery.objects.filter(client=client, state=DeliveryState.HELD))
    leaving = held + [_copy(each) for each in held for _ in range(copies - 1)]
    match order:
        case ReleaseOrder.REVERSED:
            leaving.sort(key=lambda each: (each.created_at, each.pk), reverse=True)
        case ReleaseOrder.SHUFFLED:
            random.Random(seed).shuffle(leaving)  # noqa: S311 -- repeatable disorder, no secret
        case ReleaseOrder.MADE:
            leaving.sort(key=lambda each: (each.created_at, each.event_id))
    first = clock.now() - timedelta(microseconds=len(leaving))
    for place, delivery in enumerate(leaving):
        delivery.state = DeliveryState.WAITING
        delivery.next_attempt_at = first + timedelta(microseconds=place)
    Delivery.objects.bulk_update(leaving, ["state", "next_attempt_at"], batch_size=100)
    transaction.on_commit(wake)
    return len(leaving)


def _conclude(delivery: Delivery, outcome: Outcome) -> bool:
    """Record the state of the delivery after ``outcome``. Return whether it still exists."""
    waits = not outcome.acknowledged and delivery.tries < len(BACKOFF)
    state = DeliveryState.DELIVERED if outcome.acknowledged else DeliveryState.FAILED
    # A delivery that was ordered again meanwhile has another time, and stays waiting.
    taken = Delivery.objects.filter(pk=delivery.pk, next_attempt_at=delivery.next_attempt_at)
    taken.update(
        tries=delivery.tries + 1,
        state=DeliveryState.WAITING if waits else state,
        next_attempt_at=clock.now() + BACKOFF[delivery.tries] if waits else None,
    )
    return Delivery.objects.filter(pk=delivery.pk).exists()


def _copy(delivery: Delivery) -> Delivery:
    """Store a copy of the delivery with the same event."""
    return Delivery.objects.create(
        client=delivery.client,
        event_id=delivery.event_id,
        event_type=delivery.event_type,
        user_id=delivery.user_id,
        body=delivery.body,
        created_at=delivery.created_at,
        state=DeliveryState.HELD,
    )
