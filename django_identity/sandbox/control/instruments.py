"""Control of what tests turn and read: clock, switches, faults, request log."""

from dataclasses import asdict
from typing import Any

from django.urls import get_resolver

from django_identity.sandbox.control.body import Body, InvalidRequest
from django_identity.sandbox.events import deliveries
from django_identity.sandbox.instruments import clock, faults, request_log, switches
from django_identity.sandbox.instruments.faults import Fault, FaultKind, FaultMoment


def health(body: Body) -> dict[str, Any]:
    """GET health: answer that the sandbox is ready."""
    return {"status": "ready"}


def show_clock(body: Body) -> dict[str, Any]:
    """GET clock: the sandbox's time and how far it is from real time."""
    return {"now": clock.now().isoformat(), "offset_seconds": clock.offset().total_seconds()}


def move_clock(body: Body) -> dict[str, Any]:
    """POST clock: ``advance`` by seconds, ``set`` to a moment, or ``reset`` to real time."""
    match dict(body.members):
        case {"advance": _}:
            clock.advance(body.number("advance"))
        case {"set": _}:
            clock.set_to(body.moment("set"))
        case {"reset": True}:
            clock.reset()
        case _:
            raise InvalidRequest("Send one of advance, set and reset.")
    deliveries.wake()
    return show_clock(body)


def show_switches(body: Body) -> dict[str, Any]:
    """GET switches: all of them."""
    return asdict(switches.current())


def change_switches(body: Body) -> dict[str, Any]:
    """POST switches: set those that are named."""
    try:
        switches.change(body.members)
    except switches.UnknownSwitch as error:
        raise InvalidRequest(str(error)) from error
    deliveries.wake()
    return show_switches(body)


def list_faults(body: Body) -> list[dict[str, Any]]:
    """GET faults: those still to come."""
    return faults.ordered()


def order_fault(body: Body) -> dict[str, Any]:
    """POST faults: order one."""
    kind, fault_moment = body.text("kind"), body.text("when", FaultMoment.BEFORE)
    if kind not in set(FaultKind) or fault_moment not in set(FaultMoment):
        raise InvalidRequest(f"kind is one of {', '.join(FaultKind)}; when is before or after.")
    endpoint = body.text("endpoint")
    if endpoint and endpoint not in get_resolver().reverse_dict:
        raise InvalidRequest("There is no endpoint of that name.")
    headers = body.members.get("headers", {})
    if not isinstance(headers, dict):
        raise InvalidRequest("headers must be an object.")
    fault = Fault(
        kind=FaultKind(kind),
        endpoint=endpoint,
        path=body.text("path"),
        method=body.text("method").upper(),
        times=None if body.members.get("times", 1) is None else int(body.number("times", 1)),
        moment=FaultMoment(fault_moment),
        seconds=body.number("seconds"),
        status=int(body.number("status", 500)),
        body=body.text("body"),
        headers={str(name): str(value) for name, value in headers.items()},
        retry_after=int(body.number("retry_after", 1)),
    )
    return asdict(faults.order(fault))


def cancel_faults(body: Body) -> list[dict[str, Any]]:
    """DELETE faults: forget all."""
    faults.cancel()
    return faults.ordered()


def cancel_fault(body: Body, fault_id: int) -> list[dict[str, Any]]:
    """DELETE faults/<id>: forget one."""
    faults.cancel(fault_id)
    return faults.ordered()


def list_requests(body: Body) -> list[dict[str, Any]]:
    """GET requests: what the service received."""
    return request_log.received()


def forget_requests(body: Body) -> list[dict[str, Any]]:
    """DELETE requests: empty the log."""
    request_log.forget()
    return request_log.received()
