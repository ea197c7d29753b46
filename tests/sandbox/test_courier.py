"""One webhook request: what leaves, and what a malicious receiver can do to its sender."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress

import pytest

from django_identity.sandbox.events.courier import Courier, Outcome

SECONDS = 0.5
WHOLE = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone"


@contextmanager
def trickling(at_once: bytes, slowly: bytes, *, every: float = 0.05) -> Iterator[str]:
    """An address that answers one request, the second part byte by byte."""
    listening = socket.create_server(("127.0.0.1", 0))
    listening.settimeout(5)

    def trickle() -> None:
        with suppress(OSError), listening.accept()[0] as connection:
            connection.recv(65536)
            connection.sendall(at_once)
            for byte in slowly:
                connection.sendall(bytes([byte]))
                time.sleep(every)

    thread = threading.Thread(target=trickle)
    with listening:
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/"
        thread.join()


def send(url: str) -> Outcome:
    with closing(Courier()) as courier:
        return courier.send(url, b"{}", secret="whsec_x", seconds=SECONDS, privately=True)


@pytest.mark.parametrize(
    "at_once",
    [
        b"HTTP/1.1 200 ",
        b"HTTP/1.1 200 OK\r\nX: ",
        b"HTTP/1.1 200 OK\r\nContent-Length: 60\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\n",
    ],
    ids=["status line", "header", "body", "body of no known length"],
)
def test_trickle_is_given_up_in_time(at_once: bytes) -> None:
    """A receiver that keeps sending a little cannot hold the sender beyond the time-out."""
    with trickling(at_once, b"a" * 60) as url:
        started = time.monotonic()
        outcome = send(url)
        assert time.monotonic() - started < SECONDS + 0.5
    assert (outcome.status, outcome.acknowledged) == (None, False)
    assert outcome.problem == "No answer within 0.5 seconds."


def test_slow_answer_that_is_whole_in_time_counts() -> None:
    """Slowness alone is no fault."""
    with trickling(b"", WHOLE, every=0.001) as url:
        outcome = send(url)
    assert (outcome.status, outcome.excerpt, outcome.problem) == (200, "done", "")


def test_no_more_is_read_than_is_kept() -> None:
    """The beginning of an endless answer is enough, and the status counts."""
    letters = "\N{LATIN SMALL LETTER E WITH ACUTE}".encode() * 3_000
    with trickling(b"HTTP/1.1 200 OK\r\n\r\n" + letters, b"a" * 60) as url:
        outcome = send(url)
    assert (outcome.status, outcome.problem) == (200, "")
    assert outcome.excerpt.encode() == letters[:2_000]


def test_no_connection_is_reused() -> None:
    """A receiver that would keep its connection gets a new one with each event."""
    kept: list[socket.socket] = []

    def answer_each_once() -> None:
        while len(kept) < 2:
            kept.append(listening.accept()[0])
            kept[-1].recv(65536)
            kept[-1].sendall(WHOLE)

    with socket.create_server(("127.0.0.1", 0)) as listening, closing(Courier()) as courier:
        threading.Thread(target=answer_each_once, daemon=True).start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/"
        for _ in range(2):
            outcome = courier.send(url, b"{}", secret="whsec_x", seconds=SECONDS, privately=True)
            assert outcome.acknowledged
    for connection in kept:
        connection.close()


def test_no_proxy_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the environment says about proxies is for other programs."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.delenv("NO_PROXY", raising=False)
    with trickling(WHOLE, b"") as url:
        assert send(url).acknowledged


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirect_is_explained(status: int) -> None:
    """It is not followed, and the outcome says so beside the status."""
    head = f"HTTP/1.1 {status} Elsewhere\r\nLocation: http://127.0.0.1:1/\r\n"
    with trickling(head.encode() + b"Content-Length: 0\r\n\r\n", b"") as url:
        outcome = send(url)
    assert (outcome.status, outcome.acknowledged) == (status, False)
    assert "not followed" in outcome.problem
