"""A real PostgreSQL that goes away in the middle of refreshes and comes back: no token is lost."""

import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field

import pytest
from django.db import DatabaseError, InterfaceError, connection, connections
from django.test import override_settings
from django.utils import timezone

from django_identity.lifecycle import upkeep
from django_identity.lifecycle.tokens import access_token_for
from django_identity.models import LinkedIdentity, TokenGrant
from tests.databases import on_postgresql
from tests.factories import make_grant, make_identity, make_user, unsealed
from tests.fake_service import FakeService
from tests.integration.stand_in import StandIn, setting
from tests.lifecycle.held import expired, stored

pytestmark = [pytest.mark.django_db(transaction=True), on_postgresql]

AWAY_SECONDS, PATIENCE = 15.0, 240.0
AWAY = [pytest.param(1.0), pytest.param(4.0), pytest.param(AWAY_SECONDS, marks=pytest.mark.server)]
PEOPLE = 8


@dataclass
class Way:
    """The way to the database server, which can be cut: connections break, new ones end at once."""

    host: str
    server_port: int
    cuts: int = 0
    _restored_at: float = 0.0
    _open: list[socket.socket] = field(default_factory=list)

    def __post_init__(self) -> None:
        # It listens all the time: somebody else could take a port that is given up for a while.
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self, seconds: float) -> None:
        self.cuts += 1
        self._restored_at = time.monotonic() + seconds
        self._break()

    def close(self) -> None:
        self._close(self._listener)
        self._break()

    def _break(self) -> None:
        while self._open:
            self._close(self._open.pop())

    @staticmethod
    def _close(one: socket.socket) -> None:
        """A thread that waits for the socket hears of it at once."""
        with suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
        one.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            if time.monotonic() < self._restored_at:
                self._close(near)
                continue
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
    made.close()


@pytest.mark.parametrize("seconds", AWAY)
def test_storing_waits_for_the_database(service: FakeService, way: Way, seconds: float) -> None:
    """It goes away after the token was sent; the answer is stored when it is back."""
    identity: LinkedIdentity = make_identity(make_user())
    expired(identity)
    service.meanwhile["token"] = lambda: way.cut(seconds)
    began = time.monotonic()
    assert access_token_for(identity).reveal() == "at-1"
    assert time.monotonic() - began >= seconds
    assert (stored(identity), service.refresh_tokens, way.cuts) == ("rt-1", ["rt-0"], 1)
    grant = TokenGrant.objects.get()
    assert (grant.generation, grant.lease_until, grant.needs_reauthorization) == (2, None, False)


@pytest.mark.server
def test_a_message_of_refreshes_loses_nothing(way: Way) -> None:
    """Away for 15 seconds while a worker is at it: what was got is stored, the rest due.

    Every refresh token is presented once, no row is failed, and the next message does the rest.
    """
    service = StandIn(delay=0.2)
    try:
        with override_settings(DJANGO_IDENTITY={"default": setting(service.origin)}):
            for number in range(PEOPLE):
                due(number)
            cutter = threading.Thread(target=cut_amid_refreshes, args=(service, way))
            cutter.start()
            with suppress(DatabaseError, InterfaceError):
                upkeep.refetch_for_a_minute("default")
            cutter.join()
            when_it_is_back(way)
            assert not LinkedIdentity.objects.exclude(last_error="").exists()
            # Nobody works now, so the leases of those who were cut off may end.
            LinkedIdentity.objects.filter(credential_issued_at=None).update(
                refetch_due_at=timezone.now()
            )
            TokenGrant.objects.update(lease_until=None, retry_at=None)
            upkeep.refetch_for_a_minute("default")
    finally:
        service.close()
    presented = Counter(call.about for call in service.seen if call.endpoint == "token")
    assert presented == {f"rt-0-subject-{number}": 1 for number in range(PEOPLE)}
    assert not TokenGrant.objects.filter(needs_reauthorization=True).exists()
    assert not LinkedIdentity.objects.filter(refetch_due_at__lte=timezone.now()).exists()
    for grant in TokenGrant.objects.select_related("identity"):
        kept = unsealed(grant.identity, "refresh_token", grant.refresh_token)
        assert (kept, grant.generation) == (f"rt-1-{grant.identity.subject}", 2)


def due(number: int) -> LinkedIdentity:
    """Somebody whose claims are due, and whose access token is too old."""
    subject = f"subject-{number}"
    identity: LinkedIdentity = make_identity(
        make_user(f"user-{number}"),
        subject=subject,
        scopes=["claims:read"],
        refetch_due_at=timezone.now(),
    )
    make_grant(
        identity,
        access_token=f"at-0-{subject}",
        refresh_token=f"rt-0-{subject}",
        access_expires_at=timezone.now(),
    )
    return identity


def cut_amid_refreshes(service: StandIn, way: Way) -> None:
    """Cut it while the service has refresh tokens in its hands."""
    give_up_at = time.monotonic() + PATIENCE
    while len(service.seen) < 2 and time.monotonic() < give_up_at:
        time.sleep(0.005)
    way.cut(AWAY_SECONDS)


def when_it_is_back(way: Way) -> None:
    connection.close()
    give_up_at = time.monotonic() + PATIENCE
    while time.monotonic() < give_up_at:
        try:
            connection.ensure_connection()
        except DatabaseError:
            time.sleep(0.2)
        else:
            return
