"""The order to send again: once more and at once, whatever came of a delivery before."""

import time

from tests.sandbox.driver import Application, Developer, Sandbox
from tests.sandbox.receiver import SECRET, Receiver, until
from tests.sandbox.sending import send, settled


def test_send_again(sandbox: Sandbox, hearing: Application, receiver: Receiver) -> None:
    """A delivered event comes again with the same bytes, signed with the secret of now."""
    delivery = send(hearing)
    settled(hearing)
    hearing.receive_at(receiver.url, secret="whsec_new")
    sandbox.control("POST", f"deliveries/{delivery['id']}/send")
    receiver.wait_for(2)
    first, second = receiver.requests
    assert first.body == second.body
    assert first.is_signed_with(SECRET)
    assert second.is_signed_with("whsec_new")
    assert settled(hearing, attempts=2)["state"] == "delivered"


def test_button_sends_at_once(sandbox: Sandbox, hearing: Application, receiver: Receiver) -> None:
    """Nobody waits for the next time that the sender looks by itself."""
    developer = Developer(sandbox)
    developer.sign_in()
    delivery = send(hearing)
    settled(hearing)
    page = developer.open(f"/portal/deliveries/{delivery['id']}")
    for times in range(2, 5):
        pressed = time.monotonic()
        developer.submit(page, f"/portal/deliveries/{delivery['id']}/send")
        receiver.wait_for(times)
        assert receiver.requests[-1].at - pressed < 0.5
        settled(hearing, attempts=times)


def test_failed_delivery_starts_anew(
    sandbox: Sandbox, hearing: Application, receiver: Receiver
) -> None:
    """One that was given up is attempted until acknowledged once more, not only once."""
    receiver.answers = [500] * 10
    delivery = send(hearing)
    for attempts in range(1, 9):
        settled(hearing, attempts=attempts)
        sandbox.control("POST", "clock", advance=7201)
    assert settled(hearing, attempts=9)["state"] == "failed"
    sandbox.control("POST", f"deliveries/{delivery['id']}/send")
    assert settled(hearing, attempts=10)["state"] == "waiting"
    sandbox.control("POST", "clock", advance=2)
    assert settled(hearing, attempts=11)["state"] == "delivered"


def test_pressed_while_it_is_being_sent(
    sandbox: Sandbox, hearing: Application, receiver: Receiver
) -> None:
    """The order holds, whatever comes of the attempt that is under way."""
    receiver.seconds = 0.5
    delivery = send(hearing)
    receiver.wait_for(1)
    sandbox.control("POST", f"deliveries/{delivery['id']}/send")
    receiver.wait_for(2)
    assert receiver.requests[0].body == receiver.requests[1].body
    until(lambda: hearing.deliveries()[0]["state"] == "delivered")
    assert len(settled(hearing, attempts=2)["attempts"]) == 2
