"""On a real PostgreSQL: it goes away and comes back, and no token is lost; the manners of workers.

A clean stop is quick, and nothing urgent waits behind a backlog.
"""

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress

import psycopg
import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.contrib.auth import login
from django.contrib.sessions.backends.db import SessionStore
from django.db import (
    DatabaseError,
    InterfaceError,
    OperationalError,
    close_old_connections,
    connection,
)
from django.test import RequestFactory
from django.utils import timezone

from django_identity import background, conf
from django_identity.backends import BACKEND_PATH
from django_identity.lifecycle.ground import sealing
from django_identity.lifecycle.minute import upkeep
from django_identity.lifecycle.said import due
from django_identity.lifecycle.said.tokens import access_token_for
from django_identity.models import (
    ErasureReceipt,
    LinkedIdentity,
    StoredClaim,
    TokenGrant,
)
from tests.databases import on_postgresql
from tests.deliveries import SECRET, event_body, post
from tests.factories import make_claim, make_identity, make_user
from tests.integration.backlog import make_backlog
from tests.integration.counting_service import CountingService, setting
from tests.integration.workers import PATIENCE, Workers
from tests.lifecycle.grants import expired, stored
from tests.sandbox.receiver import until
from tests.snippets import module_of

pytestmark = [pytest.mark.race, pytest.mark.django_db(transaction=True), on_postgresql]

Cut = Callable[[float], threading.Timer]
AWAY_SECONDS = 15.0
PEOPLE = 8
END_ALL = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s"


@pytest.fixture
def cut() -> Iterator[Cut]:
    """End all connections to the database, and refuse new ones for so many seconds."""
    name = connection.settings_dict["NAME"]
    parameters = {**connection.get_connection_params(), "dbname": "postgres"}
    with psycopg.connect(**parameters, autocommit=True) as server:

        def allow(allowed: bool) -> None:
            server.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS {allowed}')

        def go_away(seconds: float) -> threading.Timer:
            allow(False)
            server.execute(END_ALL, [name])
            coming_back = threading.Timer(seconds, allow, [True])
            coming_back.start()
            return coming_back

        yield go_away
        connection.close()
        allow(True)


@pytest.mark.parametrize(
    "seconds",
    [1.0, pytest.param(AWAY_SECONDS, marks=pytest.mark.server)],
)
def test_storing_waits_for_the_database(service, cut, seconds):
    """It goes away after the token was sent; the answer is stored when it is back."""
    identity: LinkedIdentity = make_identity(make_user())
    expired(identity)
    service.meanwhile["token"] = lambda: cut(seconds)
    began = time.monotonic()
    assert access_token_for(identity).reveal() == "at-1"
    assert time.monotonic() - began >= seconds
    assert stored(identity) == "rt-1"
    assert service.refresh_tokens == ["rt-0"]
    grant = TokenGrant.objects.get()
    assert grant.generation == 2
    assert grant.lease_until is None
    assert grant.needs_reauthorization is False


@pytest.mark.server
def test_a_message_of_refreshes_loses_nothing(counting_service, cut):
    """Away for 15 seconds while a worker is at it: what was got is stored, the rest due.

    Every refresh token is presented once, no row is failed, and the next message does the rest.
    """
    counting_service.delay = 0.2
    make_backlog(PEOPLE)
    cutter = threading.Thread(target=cut_amid_refreshes, args=(counting_service, cut))
    cutter.start()
    with suppress(DatabaseError, InterfaceError):
        upkeep.refetch_for_a_minute()
    cutter.join()
    connection.close()
    assert not LinkedIdentity.objects.exclude(last_error="").exists()
    # Nobody works now, so the leases of those who were cut off may end.
    now = timezone.now()
    LinkedIdentity.objects.filter(credential_issued_at=None).update(refetch_due_at=now)
    TokenGrant.objects.update(lease_until=None, retry_at=None)
    upkeep.refetch_for_a_minute()
    presented = Counter(
        call.about for call in counting_service.seen if call.endpoint == "token"
    )
    assert presented == {f"rt-0-waiting-{number}": 1 for number in range(PEOPLE)}
    assert not TokenGrant.objects.filter(needs_reauthorization=True).exists()
    assert not LinkedIdentity.objects.filter(
        refetch_due_at__lte=timezone.now(),
    ).exists()
    for grant in TokenGrant.objects.select_related("identity"):
        kept = sealing.unseal(grant.identity, grant, "refresh_token").reveal()
        assert kept == f"rt-1-{grant.identity.subject}"
        assert grant.generation == 2


def cut_amid_refreshes(service: CountingService, cut: Cut) -> None:
    """While the service has refresh tokens in its hands; returns when the database is back."""
    until(lambda: len(service.seen) >= 2)
    cut(AWAY_SECONDS).join()


def test_a_stream_ends_and_the_next_one_asks_again(cut):
    """As ``docs/beside.md`` writes one: without an answer, or the claim, it sends nothing more."""
    stream = module_of("stream")
    request = RequestFactory().get("/prices/")
    request.session = SessionStore()
    user = make_user()
    make_claim(make_identity(user))
    login(request, user, backend=BACKEND_PATH)

    async def read() -> None:
        lines = stream.lines_for(request)
        assert await anext(lines) == "data: 7.50\n\n"
        coming_back = await sync_to_async(cut)(4 * stream.SECONDS)
        with pytest.raises((OperationalError, InterfaceError)):
            await anext(lines)
        with pytest.raises(StopAsyncIteration):
            await anext(lines)
        await asyncio.to_thread(coming_back.join)
        await sync_to_async(close_old_connections)()
        lines = stream.lines_for(request)
        assert await anext(lines) == "data: 7.50\n\n"
        await StoredClaim.objects.aupdate(revoked_at=timezone.now())
        with pytest.raises(StopAsyncIteration):
            await anext(lines)

    async_to_sync(read)()


THREADS = ("--pool", "threads", "--concurrency", "8")
BACKLOG = 3000


def wait_until(holds: Callable[[], bool], workers: Workers) -> None:
    began = time.monotonic()
    while not holds():
        assert workers.are_alive(), workers.log_end()
        assert time.monotonic() - began < PATIENCE, workers.log_end()
        time.sleep(0.05)


@pytest.mark.server
@pytest.mark.parametrize("pool", [("--pool", "prefork", "--concurrency", "2"), THREADS])
def test_a_clean_stop_leaves_nothing_half_done(counting_service, workers, pool):
    """Long before the minute of a message is over; all other rows are due in five minutes."""
    counting_service.delay, workers.size, workers.pool = 1.0, 1, pool
    make_backlog(80)
    upkeep.run_with_workers()
    workers.start()
    wait_until(lambda: len(counting_service.seen) > 4, workers)
    workers.stop()
    finished = LinkedIdentity.objects.exclude(credential_issued_at=None).count()
    # Four messages, two seconds a row: who does not hear of the end finishes all of them.
    assert 0 < finished < 20
    soon = timezone.now() + due.TAKEN_FOR
    left = LinkedIdentity.objects.filter(refetch_due_at__lte=soon)
    assert left.count() == 80 - finished
    assert len(counting_service.seen) == 2 * finished


@pytest.mark.server
def test_an_erasure_does_not_wait_for_a_backlog(counting_service, workers, settings):
    """It waits for the rows of a minute at most, with one worker of eight threads."""
    settings.DJANGO_IDENTITY = setting(
        counting_service.origin,
        WEBHOOK_SECRETS=[SECRET],
    )
    counting_service.delay, workers.size, workers.pool = 0.02, 1, THREADS
    make_backlog(BACKLOG + 1)
    person = LinkedIdentity.objects.earliest("pk")
    LinkedIdentity.objects.filter(pk=person.pk).update(refetch_due_at=None)
    workers.start()
    background.publish(background.TaskName.UPKEEP, [()])
    wait_until(lambda: due.count() < BACKLOG, workers)
    body = event_body("data.deletion_requested", subject=person.subject)
    assert post(body).status_code == 200
    wait_until(ErasureReceipt.objects.exclude(erased_at=None).exists, workers)
    asked_for = conf.application().refetches_per_minute

    assert LinkedIdentity.objects.exclude(credential_issued_at=None).count() < asked_for
