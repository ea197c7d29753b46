"""Deliveries: stored with their cause, retried until acknowledged, sent again on request.

An event is stored in the transaction that causes it. ``sender`` sends it after the commit, and
retries after each pause of ``RETRIES``. The pauses use the sandbox's clock, so moving the clock
brings the next attempt forward.
"""

import threading
from copy import copy
from dataclasses import asdict, dataclass
from datetime import timedelta

from django.db import transaction

from django_identity.sandbox import clock
from django_identity.sandbox.models import Client, Delivery, DeliveryState

RETRIES = tuple(
    timedelta(seconds=pause) for pause in (1, 2, 5, 15, 60, 300, 1800, 7200)
)

woken = threading.Event()
wake = woken.set


@dataclass(frozen=True, slots=True)
class Attempt:
    """One request of a delivery. Without an answer ``status`` is None and ``problem`` says why."""

    sent_at: str
    url: str
    headers: dict[str, str]
    status: int | None
    excerpt: str
    problem: str
    milliseconds: float

    @property
    def is_acknowledged(self) -> bool:
        """Whether the receiver acknowledged the event: any 2xx."""
        return self.status is not None and 200 <= self.status < 300


@transaction.atomic
def queue(
    client: Client,
    event_id: str,
    event_type: str,
    user_id: str,
    body: str,
) -> Delivery:
    """Store an event for ``client``. It is sent when the current transaction commits.

    Returns the delivery to the registered address. Each copy is a delivery of its own, because one
    site may be silent while another one answers.
    """
    now = clock.now()
    registered = Delivery(
        client=client,
        event_id=event_id,
        event_type=event_type,
        user_id=user_id,
        body=body,
        created_at=now,
        changed_at=now,
        next_attempt_at=now,
    )

    if client.webhook_held:
        registered.state = DeliveryState.HELD
        registered.next_attempt_at = None
    registered.save()

    for address in client.webhook_copies.splitlines():
        copied = copy(registered)
        copied.pk = None
        copied.copy_to = address
        copied.save()
    transaction.on_commit(wake)
    return registered


def next_waiting() -> Delivery | None:
    """Return the delivery whose turn is next, whether or not it has come yet."""
    waiting = Delivery.objects.filter(state=DeliveryState.WAITING).select_related(
        "client",
    )
    return waiting.order_by("next_attempt_at", "pk").first()


@transaction.atomic
def conclude(delivery: Delivery, attempt: Attempt) -> None:
    """Record an attempt, and when the next one follows, if any."""
    now = clock.now()
    row = Delivery.objects.filter(pk=delivery.pk)
    row.update(attempts=[*delivery.attempts, asdict(attempt)], changed_at=now)

    # A delivery that was ordered again meanwhile has another time, and stays waiting.
    same = row.filter(next_attempt_at=delivery.next_attempt_at)
    tries = delivery.tries + 1
    if attempt.is_acknowledged:
        same.update(tries=tries, state=DeliveryState.DELIVERED, next_attempt_at=None)
    elif tries > len(RETRIES):
        same.update(tries=tries, state=DeliveryState.FAILED, next_attempt_at=None)
    else:
        same.update(tries=tries, next_attempt_at=now + RETRIES[delivery.tries])


@transaction.atomic
def send_again(delivery: Delivery) -> None:
    """Send ``delivery`` now, whatever its state. The attempts start again."""
    Delivery.objects.filter(pk=delivery.pk).update(
        state=DeliveryState.WAITING,
        tries=0,
        next_attempt_at=clock.now(),
    )
    transaction.on_commit(wake)


def hold(client: Client) -> None:
    """Hold new events from now on, until they are released."""
    Client.objects.filter(pk=client.pk).update(webhook_held=True)


@transaction.atomic
def release(client: Client, *, backwards: bool) -> int:
    """Send the held events, the last one first if ``backwards``, and hold no more.

    Returns:
        The number of deliveries.
    """
    Client.objects.filter(pk=client.pk).update(webhook_held=False)
    leaving = list(Delivery.objects.filter(client=client, state=DeliveryState.HELD))
    if backwards:
        leaving.reverse()
    first = clock.now() - timedelta(microseconds=len(leaving))
    for place, delivery in enumerate(leaving):
        delivery.state = DeliveryState.WAITING
        delivery.next_attempt_at = first + timedelta(microseconds=place)
    Delivery.objects.bulk_update(leaving, ["state", "next_attempt_at"], batch_size=100)
    transaction.on_commit(wake)
    return len(leaving)
