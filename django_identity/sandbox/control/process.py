"""Events, and what lives in the process: clock, keys, switches, faults and requests."""

from dataclasses import asdict
from datetime import datetime
from typing import Any

from django.core.exceptions import ObjectDoesNotExist
from django.urls import get_resolver

from django_identity.sandbox import clock, faults, keys, request_log, switches
from django_identity.sandbox.control.door import (
    ABSENT,
    JSON,
    NO_MEMBERS,
    Members,
    client_of,
    control,
)
from django_identity.sandbox.errors import Invalid
from django_identity.sandbox.events import deliveries
from django_identity.sandbox.events import event as events
from django_identity.sandbox.models import Delivery


@control("POST", "events")
def send_event(
    *,
    client_id: str,
    event_type: str,
    event_id: str = "",
    timestamp: str = "",
    user_id: str = "",
    data: Members = NO_MEMBERS,
) -> JSON:
    """Send an event that nothing caused, with any type, id, time and data."""
    client = client_of(client_id)
    if not client.webhook_url:
        raise Invalid("client_id: the application has no webhook address.")
    event_id = event_id or events.new_event_id()
    timestamp = timestamp or events.timestamp(clock.now())
    text = events.body(event_type, event_id, timestamp, user_id, data)
    return _delivery(deliveries.queue(client, event_id, event_type, user_id, text))


@control("GET", "deliveries")
def list_deliveries() -> JSON:
    """List all of them with their attempts, in the order they were made."""
    return [
        _delivery(delivery) for delivery in Delivery.objects.select_related("client")
    ]


@control("DELETE", "deliveries")
def forget_deliveries() -> JSON:
    """Forget all, the waiting and the held ones too."""
    Delivery.objects.all().delete()
    return []


@control("POST", "deliveries/<int:delivery_id>/send")
def send_delivery_again(delivery_id: int) -> JSON:
    """Do what the button "Send again" does."""
    delivery = Delivery.objects.get(pk=delivery_id)
    deliveries.send_again(delivery)
    delivery.refresh_from_db()
    return _delivery(delivery)


@control("POST", "deliveries/hold")
def hold_deliveries(*, client_id: str) -> JSON:
    """Keep back what happens for an application from now on."""
    deliveries.hold(client_of(client_id))
    return {"held": True}


@control("POST", "deliveries/release")
def release_deliveries(*, client_id: str, backwards: bool = False) -> JSON:
    """Send what was held, in the order of its causes or backwards."""
    released = deliveries.release(client_of(client_id), backwards=backwards)
    return {"held": False, "released": released}


def _delivery(delivery: Delivery) -> Members:
    return {
        "id": delivery.pk,
        "client_id": delivery.client.client_id,
        "event_id": delivery.event_id,
        "event_type": delivery.event_type,
        "user_id": delivery.user_id,
        "body": delivery.body,
        "state": delivery.state,
        "attempts": delivery.attempts,
        "created_at": delivery.created_at,
        "next_attempt_at": delivery.next_attempt_at,
    }


@control("GET", "health")
def health() -> JSON:
    """Answer that the sandbox is ready."""
    return {"status": "ready"}


@control("GET", "clock")
def show_clock() -> JSON:
    """Show the sandbox's time and how far it is from real time."""
    return {
        "now": clock.now(),
        "offset_seconds": clock.offset().total_seconds(),
    }


@control("POST", "clock")
def move_clock(
    *,
    advance: float = ABSENT,
    offset: float = ABSENT,
    set: datetime = ABSENT,
    reset: bool = False,
) -> JSON:
    """``advance`` by seconds, ``set`` to a moment, or ``reset`` to real time.

    ``offset``: seconds by which the clock is ahead of real time; a negative number: behind.
    """
    if [advance, offset, set].count(ABSENT) != 2 + reset:
        raise Invalid("Send one of advance, offset, set and reset.")
    if advance is not ABSENT:
        clock.advance(advance)
    elif offset is not ABSENT:
        clock.differ(offset)
    elif reset:
        clock.differ(0)
    else:
        clock.set_to(set)
    deliveries.wake()
    return show_clock()


@control("GET", "keys")
def show_keys() -> JSON:
    """Show the key that signs, and all that are published."""
    published = [key["kid"] for key in keys.published()["keys"]]
    return {"signing": keys.current().kid, "published": published}


@control("POST", "keys/rotate")
def rotate_keys() -> JSON:
    """Let a new key sign; the old one stays published."""
    keys.rotate()
    return show_keys()


@control("POST", "keys/withdraw")
def withdraw_key(*, kid: str) -> JSON:
    """Take a key out of publication at once."""
    if not keys.withdraw(kid):
        raise ObjectDoesNotExist("No such key is published.")
    return show_keys()


@control("GET", "switches")
def show_switches() -> JSON:
    """Show all of them."""
    return asdict(switches.current())


@control("POST", "switches", switches.Switches)
def change_switches(**values: Any) -> JSON:
    """Set those that are named."""
    return asdict(switches.change(values))


@control("GET", "faults")
def list_faults() -> JSON:
    """List those still to come."""
    return faults.ordered()


@control("POST", "faults", faults.Fault)
def order_fault(*, endpoint: str = "", **members: Any) -> JSON:
    """Order one."""
    if endpoint and endpoint not in get_resolver().reverse_dict:
        raise Invalid("endpoint: there is no endpoint of that name.")
    return asdict(faults.order(faults.Fault(endpoint=endpoint, **members)))


@control("DELETE", "faults")
def cancel_faults() -> JSON:
    """Forget all."""
    faults.cancel()
    return []


@control("GET", "requests")
def list_requests() -> JSON:
    """List what the service received."""
    return request_log.received()


@control("DELETE", "requests")
def forget_requests() -> JSON:
    """Empty the log."""
    request_log.forget()
    return []
