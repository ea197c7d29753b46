"""In which order deliveries leave, and how many at a time; held, shuffled, doubled."""

import time
from itertools import pairwise

import pytest

from tests.sandbox.driver import Application, Person, Sandbox
from tests.sandbox.receiver import Receiver
from tests.sandbox.sending import send, settled


def test_slow_receiver_delays_nobody_else(
    sandbox: Sandbox, hearing: Application, receiver: Receiver
) -> None:
    """Other applications hear at once while one is being waited for."""
    receiver.seconds = 0.5
    send(hearing)
    receiver.wait_for(1)
    other = Application(sandbox)
    with Receiver() as second:
        other.receive_at(second.url)
        send(other)
        second.wait_for(1)
        assert second.requests[0].at - receiver.requests[0].at < 0.4
    receiver.seconds = 0


def test_events_of_one_application_come_in_order(
    hearing: Application, receiver: Receiver, person: Person
) -> None:
    """Unless told otherwise, one at a time and in the order of their causes."""
    person.consent_to(hearing)
    for _ in range(10):
        person.cause("claims/age_over_18/revoke")
        person.cause("claims/age_over_18/issue")
    assert receiver.wait_for(21)
    assert receiver.types == ["consent.granted", *["claim.revoked", "claim.issued"] * 10]


def test_one_at_a_time(hearing: Application, receiver: Receiver) -> None:
    """The next event of an application leaves when the one before was answered."""
    receiver.seconds = 0.3
    for _ in range(3):
        send(hearing)
    receiver.wait_for(3)
    moments = [each.at for each in receiver.requests]
    assert all(after - before >= 0.3 for before, after in pairwise(moments))


def test_retry_holds_up_no_later_event(hearing: Application, receiver: Receiver) -> None:
    """What happens after a failed attempt is told at once; the retry comes in its own time."""
    receiver.answers = [500]
    first = send(hearing)
    settled(hearing)
    second = send(hearing)
    came = [each["event_id"] for each in receiver.wait_for(3)]
    assert came == [first["event_id"], second["event_id"], first["event_id"]]
    assert receiver.requests[1].at - receiver.requests[0].at < 0.8


def test_several_at_a_time_if_told(
    sandbox: Sandbox, hearing: Application, receiver: Receiver
) -> None:
    """With the switch up, events arrive side by side, each once."""
    sandbox.control("POST", "switches", parallel_deliveries=4)
    receiver.seconds = 1.0
    started = time.monotonic()
    ids = {send(hearing)["event_id"] for _ in range(4)}
    assert {each["event_id"] for each in receiver.wait_for(4)} == ids
    assert receiver.requests[3].at - started < 3.0


def test_nothing_leaves_while_the_switch_says_none(
    sandbox: Sandbox, hearing: Application, receiver: Receiver
) -> None:
    """With no event at a time, everything waits; turned up again, everything leaves at once."""
    sandbox.control("POST", "switches", parallel_deliveries=0)
    send(hearing)
    assert hearing.deliveries()[0]["attempts"] == []
    sandbox.control("POST", "switches", parallel_deliveries=1)
    assert settled(hearing)["state"] == "delivered"


@pytest.mark.parametrize("order", ["made", "reversed", "shuffled"])
def test_held_deliveries_leave_in_the_order_asked_for(
    sandbox: Sandbox, hearing: Application, receiver: Receiver, order: str
) -> None:
    """Nothing arrives while held; then everything, as often as asked for, in that order."""
    sandbox.control("POST", "deliveries/hold", client_id=hearing.client_id)
    ids = [send(hearing)["event_id"] for _ in range(6)]
    assert {each["state"] for each in hearing.deliveries()} == {"held"}
    assert receiver.requests == []
    released = sandbox.control(
        "POST",
        "deliveries/release",
        client_id=hearing.client_id,
        order=order,
        copies=2,
        seed=7,
    )
    assert released["released"] == 12
    came = [each["event_id"] for each in receiver.wait_for(12)]
    assert sorted(came) == sorted(ids * 2)
    firsts = list(dict.fromkeys(came))
    assert (firsts == ids) is (order == "made")
    assert (firsts == ids[::-1]) is (order == "reversed")
    assert send(hearing)["state"] == "waiting"
