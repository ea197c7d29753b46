"""Control of events: deliveries, and events out of nothing."""

from datetime import datetime
from typing import Any

from django_identity.sandbox.control.body import Body, InvalidRequest, find
from django_identity.sandbox.events import deliveries
from django_identity.sandbox.events.deliveries import ReleaseOrder
from django_identity.sandbox.events.event import Event, new_event_id, timestamp
from django_identity.sandbox.instruments import clock
from django_identity.sandbox.models import Client, Delivery, DeliveryAttempt, attempts_for

MOST_COPIES = 10


def send_event(body: Body) -> dict[str, Any]:
    """POST events: send an event that nothing caused, with any type, id, time and data."""
    client = _client(body)
    if not client.webhook_url:
        raise InvalidRequest("The application has no webhook address.")
    user_id, about = body.text("user_id"), body.members.get("data", {})
    if not isinstance(about, dict):
        raise InvalidRequest("data must be an object.")
    event = Event(
        event_type=body.text("event_type"),
        event_id=body.text("event_id") or new_event_id(),
        timestamp=body.text("timestamp") or timestamp(clock.now()),
        data={**({"user_id": user_id} if user_id else {}), **about},
    )
    try:
        return _shown(deliveries.queue(event, client, user_id=user_id), body)
    except UnicodeEncodeError as error:
        raise InvalidRequest("Half a surrogate pair cannot be sent as UTF-8.") from error


def list_deliveries(body: Body) -> list[dict[str, Any]]:
    """GET deliveries: all of them with their attempts, in the order they were made."""
    made = Delivery.objects.select_related("client").prefetch_related("attempts")
    return [_shown(each, body) for each in made]


def forget_deliveries(body: Body) -> list[dict[str, Any]]:
    """DELETE deliveries: forget all, the waiting and the held ones too."""
    Delivery.objects.all().delete()
    return []


def show_delivery(body: Body, delivery_id: int) -> dict[str, Any]:
    """GET deliveries/<id>: one of them."""
    return _shown(_delivery(delivery_id), body)


def send_delivery_again(body: Body, delivery_id: int) -> dict[str, Any]:
    """POST deliveries/<id>/send: what the button "Send again" does."""
    deliveries.send_again(_delivery(delivery_id))
    return _shown(_delivery(delivery_id), body)


def hold_deliveries(body: Body) -> dict[str, Any]:
    """POST deliveries/hold: keep back what happens for an application from now on."""
    deliveries.hold(_client(body))
    return {"held": True}


def release_deliveries(body: Body) -> dict[str, Any]:
    """POST deliveries/release: send what was held, in an order and a number of copies."""
    order, copies = body.text("order", ReleaseOrder.MADE), int(body.number("copies", 1))
    if order not in set(ReleaseOrder) or not 1 <= copies <= MOST_COPIES:
        raise InvalidRequest(
            f"order is one of {', '.join(ReleaseOrder)}; copies is 1 to {MOST_COPIES}."
        )
    leaving = deliveries.release(
        _client(body), order=ReleaseOrder(order), copies=copies, seed=int(body.number("seed"))
    )
    return {"held": False, "released": leaving}


def _client(body: Body) -> Client:
    return find(Client.objects.filter(client_id=body.text("client_id")), "client_id")


def _delivery(delivery_id: int) -> Delivery:
    return find(Delivery.objects.filter(pk=delivery_id), "delivery")


def _shown(delivery: Delivery, body: Body) -> dict[str, Any]:
    return {
        "id": delivery.pk,
        "client_id": delivery.client.client_id,
        "event_id": delivery.event_id,
        "event_type": delivery.event_type,
        "user_id": delivery.user_id,
        "body": delivery.body,
        "created_at": delivery.created_at.isoformat(),
        "state": delivery.state,
        "next_attempt_at": _moment(delivery.next_attempt_at),
        "attempts": [_attempt(each) for each in attempts_for(delivery, is_local=body.is_local)],
    }


def _attempt(attempt: DeliveryAttempt) -> dict[str, Any]:
    return {
        "sent_at": attempt.sent_at.isoformat(),
        "url": attempt.url,
        "headers": attempt.headers,
        "status": attempt.status,
        "excerpt": attempt.excerpt,
        "problem": attempt.problem,
        "milliseconds": attempt.milliseconds,
    }


def _moment(moment: datetime | None) -> str | None:
    return moment.isoformat() if moment else None
