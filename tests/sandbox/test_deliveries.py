"""Deliveries: attempted until they are acknowledged or given up."""

import json
import socket
import threading
from datetime import datetime
from typing import Any

import pytest

from tests.sandbox.driver import Application, Person, Sandbox
from tests.sandbox.receiver import Receiver
from tests.sandbox.sending import send, settled

ATTEMPTS = 9


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
def test_any_2xx_acknowledges(hearing: Application, receiver: Receiver, status: int) -> None:
    """The delivery shows what was sent and what came back, and is over."""
    receiver.answers = [status]
    receiver.body = b"" if status == 204 else b'{"received": true}'
    send(hearing)
    delivery = settled(hearing)
    (attempt,) = delivery["attempts"]
    assert (delivery["state"], delivery["next_attempt_at"]) == ("delivered", None)
    assert (attempt["status"], attempt["problem"]) == (status, "")
    assert attempt["excerpt"] == receiver.body.decode()
    assert attempt["url"] == receiver.url
    assert delivery["body"].encode() == receiver.requests[0].body
    signature = attempt["headers"]["x-webhook-signature"]
    assert signature == receiver.requests[0].headers["x-webhook-signature"]


@pytest.mark.parametrize("status", [301, 307, 400, 401, 404, 410, 500, 503])
def test_any_other_status_is_attempted_again(
    sandbox: Sandbox, hearing: Application, receiver: Receiver, status: int
) -> None:
    """The same bytes come again once it is time, and no redirect is followed."""
    receiver.answers, receiver.location = [status], receiver.url
    send(hearing)
    assert settled(hearing)["state"] == "waiting"
    assert len(receiver.requests) == 1
    sandbox.control("POST", "clock", advance=2)
    assert settled(hearing, attempts=2)["state"] == "delivered"
    first, second = receiver.requests
    assert (first.body, first.headers["x-webhook-signature"]) == (
        second.body,
        second.headers["x-webhook-signature"],
    )


def test_first_retry_needs_no_moving_of_the_clock(hearing: Application, receiver: Receiver) -> None:
    """A second after a failure the next attempt comes by itself."""
    receiver.answers = [500]
    send(hearing)
    receiver.wait_for(2)
    assert 0.9 < receiver.requests[1].at - receiver.requests[0].at < 2


def test_attempts_end(sandbox: Sandbox, hearing: Application, receiver: Receiver) -> None:
    """An event that nobody takes is attempted nine times, at growing distances, then failed."""
    receiver.answers = [500] * 100
    send(hearing)
    pauses = []
    for attempts in range(1, ATTEMPTS):
        delivery = settled(hearing, attempts=attempts)
        assert delivery["state"] == "waiting"
        sent_at, next_at = delivery["attempts"][-1]["sent_at"], delivery["next_attempt_at"]
        pause = datetime.fromisoformat(next_at) - datetime.fromisoformat(sent_at)
        pauses.append(round(pause.total_seconds()))
        sandbox.control("POST", "clock", advance=7201)
    assert pauses == [1, 2, 5, 15, 60, 300, 1800, 7200]
    assert settled(hearing, attempts=ATTEMPTS)["state"] == "failed"
    sandbox.control("POST", "clock", advance=100_000)
    assert len(receiver.requests) == ATTEMPTS


def test_refused_connection_is_attempted_again(sandbox: Sandbox, application: Application) -> None:
    """A receiver that is down hears of it when it is back."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    application.receive_at(f"http://127.0.0.1:{port}/")
    send(application)
    (attempt,) = settled(application)["attempts"]
    assert attempt["status"] is None
    assert "refused" in attempt["problem"]
    with Receiver() as receiver:
        application.receive_at(receiver.url)
        sandbox.control("POST", "clock", advance=2)
        receiver.wait_for(1)
        assert settled(application, attempts=2)["state"] == "delivered"


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (b"", "ended before"),
        (b"SSH-2.0-OpenSSH_9.9\r\n", "ended before"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nhalf", "ended before"),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\nno gzip", "ended before"),
        (b"HTTP/1.1 2OO OK\r\n\r\n", "ended before"),
    ],
)
def test_broken_answer_acknowledges_nothing(
    application: Application, answer: bytes, problem: str
) -> None:
    """What is no whole answer is a failure that the delivery shows."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=answer_once, args=(listening, answer))
        thread.start()
        application.receive_at(f"http://127.0.0.1:{listening.getsockname()[1]}/")
        send(application)
        delivery = settled(application)
        thread.join()
    assert delivery["state"] == "waiting"
    assert delivery["attempts"][0]["status"] is None
    assert problem in delivery["attempts"][0]["problem"]


def answer_once(listening: socket.socket, answer: bytes) -> None:
    connection, _address = listening.accept()
    with connection:
        connection.recv(65536)
        connection.sendall(answer)


def test_slow_answer_counts_as_none(
    sandbox: Sandbox, hearing: Application, receiver: Receiver
) -> None:
    """A receiver that takes longer than the time-out is attempted again."""
    sandbox.control("POST", "switches", webhook_timeout=1)
    receiver.seconds = 1.3
    send(hearing)
    attempt = settled(hearing)["attempts"][0]
    assert "within 1 seconds" in attempt["problem"]
    assert 900 < attempt["milliseconds"] < 1300


def test_address_taken_away(sandbox: Sandbox, hearing: Application, receiver: Receiver) -> None:
    """Without an address nothing is queued, and what waits says why it cannot leave."""
    receiver.answers = [500]
    send(hearing)
    settled(hearing)
    hearing.receive_at("")
    sandbox.control("POST", "clock", advance=2)
    assert "no webhook address" in settled(hearing, attempts=2)["attempts"][1]["problem"]
    person = Person(sandbox)
    person.consent_to(hearing)
    assert len(hearing.deliveries()) == 1


@pytest.mark.processes
def test_waiting_deliveries_survive_a_restart(tmp_path: Any, receiver: Receiver) -> None:
    """A sandbox with a kept database goes on where the one before ended."""
    path = str(tmp_path / "kept.sqlite3")
    receiver.answers = [500]
    with Sandbox("--database", path) as first:
        application = Application(first)
        application.receive_at(receiver.url)
        send(application)
        settled(application)
    with Sandbox("--database", path) as second:
        application.sandbox = second
        assert settled(application, attempts=2)["state"] == "delivered"


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("applications/00000000-0000-0000-0000-000000000000/webhook", {}, 404),
        ("applications/{app}/webhook", {"url": "ftp://shop.example/"}, 400),
        ("applications/{app}/webhook", {"url": "http://"}, 400),
        ("applications/{app}/webhook", {"url": "http://[::1"}, 400),
        ("applications/{app}/webhook", {"url": "http://a b/"}, 400),
        ("applications/{app}/webhook", {"url": "http://shop.example:99999/"}, 400),
        ("applications/{app}/webhook", {"mode": "other"}, 404),
        ("events", {"client_id": "nobody"}, 404),
        ("events", {"client_id": "{client}", "data": []}, 400),
        ("events", {"client_id": "{client}", "event_id": "\ud800"}, 400),
        ("events", {"client_id": "{client}", "data": {"x": "\ud800"}}, 400),
        ("deliveries/release", {"client_id": "{client}", "order": "random"}, 400),
        ("deliveries/release", {"client_id": "{client}", "copies": 0}, 400),
        ("deliveries/99999999/send", {}, 404),
    ],
)
def test_orders_that_make_no_sense(
    sandbox: Sandbox, hearing: Application, path: str, body: dict[str, Any], status: int
) -> None:
    """They are refused with a reason."""
    address = path.format(app=hearing.registration["app_id"])
    members = {
        name: value.format(client=hearing.client_id) if name == "client_id" else value
        for name, value in body.items()
    }
    answer = sandbox.client.post(f"/sandbox/{address}", content=json.dumps(members))
    assert answer.status_code == status
    assert answer.json()["error"]["message"]
