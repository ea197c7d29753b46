"""A real PostgreSQL that goes away in the middle of a refresh and comes back: no token is lost."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field

import pytest
from django.db import connection, connections

from django_identity.lifecycle.upkeep.tokens import access_token_for
from django_identity.models import LinkedIdentity, TokenGrant
from tests.databases import on_postgresql
from tests.hostile import HostileService
from tests.lifecycle.held import expired, stored
from tests.records import make_identity, make_user

pytestmark = [pytest.mark.django_db(transaction=True), on_postgresql]

AWAY = [pytest.param(1.0), pytest.param(15.0, marks=pytest.mark.server)]


@dataclass
class Way:
    """The way to the database server, which can be cut: connections break, new ones are refused."""

    host: str
    server_port: int
    port: int = 0
    cuts: int = 0
    _open: list[socket.socket] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.restore()

    def restore(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", self.port))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def cut(self, seconds: float) -> None:
        self.cuts += 1
        self._close(self._listener)
        for connected in self._open:
            self._close(connected)
        self._open.clear()
        threading.Timer(seconds, self.restore).start()

    @staticmethod
    def _close(one: socket.socket) -> None:
        """A thread that waits for the socket hears of it at once."""
        with suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
        one.close()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                near, _ = listener.accept()
            except OSError:
                return
            far = socket.create_connection((self.host, self.server_port))
            self._open += [near, far]
            for source, target in ((near, far), (far, near)):
                threading.Thread(target=self._pass_on, args=(source, target), daemon=True).start()

    @staticmethod
    def _pass_on(source: socket.socket, target: socket.socket) -> None:
        try:
            while chunk := source.recv(65536):
                target.sendall(chunk)
        except OSError:
            pass
        finally:
            Way._close(target)


@pytest.fixture
def way(monkeypatch: pytest.MonkeyPatch) -> Iterator[Way]:
    """Between this test and the database."""
    settings = connections.settings["default"]
    made = Way(settings["HOST"] or "127.0.0.1", int(settings["PORT"] or 5432))
    with monkeypatch.context() as patch:
        patch.setitem(connection.settings_dict, "HOST", "127.0.0.1")
        patch.setitem(connection.settings_dict, "PORT", made.port)
        connection.close()
        yield made
    connection.close()


@pytest.mark.parametrize("seconds", AWAY)
def test_storing_waits_for_the_database(service: HostileService, way: Way, seconds: float) -> None:
    """It goes away after the token was sent; the answer is stored when it is back."""
    identity: LinkedIdentity = make_identity(make_user())
    expired(identity)
    service.meanwhile["token"] = lambda: way.cut(seconds)
    began = time.monotonic()
    assert access_token_for(identity) == "at-1"
    assert time.monotonic() - began >= seconds
    assert (stored(identity), service.refresh_tokens, way.cuts) == ("rt-1", ["rt-0"], 1)
    grant = TokenGrant.objects.get()
    assert (grant.generation, grant.lease_until, grant.needs_reauthorization) == (2, None, False)
