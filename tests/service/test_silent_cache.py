"""A real Redis that accepts connections and never answers: as harmless as none at all."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest
from django.core.cache import caches
from django.test import Client, override_settings

from django_identity.lifecycle.operators import overview_of
from django_identity.lifecycle.upkeep import refetch_due
from django_identity.models import LinkedIdentity
from django_identity.service import shared_state
from django_identity.service.budget import Priority
from django_identity.service.transport import deadline
from tests.faces.conftest import begin, come_back
from tests.hostile import HostileService, hostile_service
from tests.lifecycle.test_consent import is_signed_in
from tests.service.calls import configured, read

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(not shutil.which("redis-server"), reason="needs redis-server"),
]

# Less than the five seconds that redis-py waits by itself.
ONE_WAIT = 3.0


@dataclass(frozen=True)
class Redis:
    process: subprocess.Popen[bytes]
    port: int

    def stop(self) -> None:
        """It keeps its socket, and says nothing any more."""
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self.process.send_signal(signal.SIGCONT)


@contextmanager
def running() -> Iterator[Redis]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = ["redis-server", "--port", str(port), "--save", "", "--bind", "127.0.0.1"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        for _ in range(200):
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                time.sleep(0.02)
        yield Redis(process, port)
    finally:
        process.send_signal(signal.SIGCONT)
        process.kill()
        process.wait()


@pytest.fixture
def redis() -> Iterator[Redis]:
    with running() as server:
        address = f"redis://127.0.0.1:{server.port}"
        backend = "django.core.cache.backends.redis.RedisCache"
        with override_settings(CACHES={"default": {"BACKEND": backend, "LOCATION": address}}):
            yield server


@pytest.fixture
def service() -> Iterator[HostileService]:
    with hostile_service() as server, configured(server, TIMEOUT=2):
        yield server


def test_calls_are_made_and_it_is_waited_for_once(service: HostileService, redis: Redis) -> None:
    """A call of two seconds succeeds behind a cache that takes longer than that to fail."""
    read()
    redis.stop()
    began = time.monotonic()
    for _ in range(20):
        read(Priority.UPKEEP)
    assert time.monotonic() - began < ONE_WAIT
    assert service.calls("kyc") == 21


def test_the_wait_is_not_the_calls_own_time(service: HostileService, redis: Redis) -> None:
    """The deadline ends so much later."""
    read()
    redis.stop()
    with deadline.within(10):
        before = deadline.seconds_left()
        began = time.monotonic()
        assert shared_state.read("name") == 0.0
        waited = time.monotonic() - began
        assert waited > shared_state.PATIENCE
        assert deadline.seconds_left() == pytest.approx(before, abs=0.2)


def test_sign_ins_and_re_fetches_go_on(
    client: Client, service: HostileService, redis: Redis
) -> None:
    redis.stop()
    began = time.monotonic()
    come_back(client, begin(client))
    LinkedIdentity.objects.update(refetch_due_at=LinkedIdentity.objects.get().signed_in_at)
    assert len(list(refetch_due())) == 1
    assert time.monotonic() - began < ONE_WAIT
    assert is_signed_in(client)


def test_the_overview_is_counted_anew(redis: Redis) -> None:
    redis.stop()
    began = time.monotonic()
    for _ in range(3):
        assert overview_of(application="default", environment="test").identities == 0
    assert time.monotonic() - began < ONE_WAIT


def test_it_is_used_again_afterwards(
    service: HostileService, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_state, "SKIPPED", 0.2)
    redis.stop()
    assert shared_state.count("name", seconds=60) == 1
    redis.go_on()
    time.sleep(0.25)
    shared_state.count("another", seconds=60)
    assert shared_state.count("another", seconds=60) == 2


def test_a_cache_that_refuses_is_skipped_too(service: HostileService, redis: Redis) -> None:
    """After its first failure nobody waits for it, nor logs each access."""
    redis.process.kill()
    redis.process.wait()
    assert shared_state.read("name") == 0.0
    assert shared_state._silent_until > time.monotonic()


def test_the_sites_own_cache_keeps_its_time_outs(redis: Redis) -> None:
    """Only our counters have short ones, in the same database."""
    shared_state.write("name", 7, seconds=60)
    assert caches["default"].get("name") == 7
    assert "socket_timeout" not in caches["default"]._cache._pool_options


def test_threads_that_end_leave_no_connection_open(redis: Redis) -> None:
    """A worker starts some for each chunk; the next ones use the connections of the last ones."""

    def count() -> None:
        met.wait()
        shared_state.count("name", seconds=60)

    for _ in range(10):
        met = threading.Barrier(4, timeout=10)
        crew = [threading.Thread(target=count) for _ in range(4)]
        for member in crew:
            member.start()
        for member in crew:
            member.join()
    assert shared_state.read("name") == 40
    clients = caches["default"]._cache.get_client().info("clients")["connected_clients"]
    # Two pools at most, if the first threads made one each at the same moment; and this one.
    assert clients <= 2 * 4 + 1
