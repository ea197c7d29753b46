"""Re-fetches on PostgreSQL: with one thread and with eight, in a large table, and over a day.

- ``one_thread``, ``eight_threads``: re-fetches a second, each a refresh and a read of a service
  that takes 20 ms; ``statements_each`` without those that begin and end transactions.
- ``per_due_row_million_vs_10k``: the time to take a due row out of a million identities and to
  re-fetch it, divided by the same out of ten thousand; as many are due. ``buffers_of_…``: the pages
  that PostgreSQL reads to find twenty of them, which no other load changes. To lock a row costs one
  or two more, of the row and of the map of what all transactions see.
- ``calls_a_day``: calls for each identity, with the clock moved ten days.
"""

import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from statistics import median

from django.contrib.auth.models import User
from django.db import connection, connections, transaction
from django.test import override_settings
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from benchmarks.harness import Figures, fill, fresh_database, statements_of
from django_identity.lifecycle.minute import upkeep
from django_identity.lifecycle.said import due
from django_identity.models import LinkedIdentity, TokenGrant
from django_identity.testing.clock import moved_clock
from tests.factories import make_grant, make_identity, make_user
from tests.integration.counting_service import CountingService, setting

IDENTITIES = 240
DELAY = 0.02
THREADS = 8
DUE = 2_000
STEADY = 40
DAYS = 10
SCOPES = ["profile:read", "kyc:read", "claims:read"]


def run() -> Figures:
    figures = threads()
    each = 1 / figures["one_thread_per_second"]
    return {**figures, **large_table(each), **a_day()}


def threads() -> Figures:
    with served() as origin, fresh_database(), application(origin):
        make_people(IDENTITIES, scopes=["claims:read"])
        refetch_all(1)  # the key set is warm
        statements = statements_of(partial(refetch_all, 1))
        one, eight = refetch_all(1), refetch_all(THREADS)
    return {
        "one_thread_per_second": one,
        "eight_threads_per_second": eight,
        "ratio_threads": eight / one,
        "statements_each": statements / IDENTITIES,
    }


def refetch_all(number: int) -> float:
    """Identities a second, of all, by so many threads."""
    now = timezone.now()
    LinkedIdentity.objects.update(refetch_due_at=now)
    TokenGrant.objects.update(access_expires_at=now)

    def work(_: int) -> Counter[upkeep.Refetched]:
        try:
            return upkeep.refetch_for_a_minute()
        finally:
            if number > 1:
                connections.close_all()

    started = time.perf_counter()
    if number == 1:
        done = work(0)
    else:
        with ThreadPoolExecutor(number) as pool:
            done = sum(pool.map(work, range(number)), Counter())
    assert done == {upkeep.Refetched.STORED: IDENTITIES}
    return IDENTITIES / (time.perf_counter() - started)


def large_table(each: float) -> Figures:
    """``each``: the seconds of a re-fetch."""
    (few, few_buffers), (many, many_buffers) = map(taking, (10_000, 1_000_000))
    return {
        "take_of_10k_us": few * 1e6,
        "take_of_a_million_us": many * 1e6,
        "buffers_of_10k": few_buffers,
        "buffers_of_a_million": many_buffers,
        "per_due_row_million_vs_10k": (each + many) / (each + few),
    }


def taking(rows: int) -> tuple[float, int]:
    """Seconds a row and pages for twenty, out of so many rows, wherever the due ones are."""
    due_now = (
        f"CASE WHEN n % {rows // DUE} = 0 THEN now() - random() * interval '1 hour' "
    )
    columns = {
        "user_id": "n",
        "subject": "'subject-' || n",
        "subject_digest": "md5(n::text) || md5((-n)::text)",
        "environment": "'test'",
        "consent": "'granted'",
        "linked_via": "'oauth'",
        "refetch_due_at": f"{due_now} ELSE now() + random() * interval '18 hours' END",
    }
    with fresh_database(), application("http://127.0.0.1:9"):
        fill(User, {"username": "'user-' || n"}, rows=rows)
        fill(LinkedIdentity, columns, rows=rows)
        with connection.cursor() as cursor:
            cursor.execute("VACUUM ANALYZE")
        buffers = pages_read()
        taken = []
        while True:
            started = time.perf_counter()
            found = due.take()
            if not found:
                return median(taken), buffers
            taken.append((time.perf_counter() - started) / len(found))


def pages_read() -> int:
    """By the statement of ``due.take`` that finds and locks rows."""
    rows = due.rows().order_by("refetch_due_at", "pk")
    with transaction.atomic(), CaptureQueriesContext(connection) as captured:
        list(rows.select_for_update(skip_locked=True)[:20])
        with connection.cursor() as cursor:
            cursor.execute(
                f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {captured[0]['sql']}",
            )
            [[plan]] = cursor.fetchone()
    [locking] = plan["Plan"]["Plans"]
    [finding] = locking["Plans"]
    return int(finding["Shared Hit Blocks"] + finding["Shared Read Blocks"])


def a_day() -> Figures:
    with fresh_database(), moved_clock() as clock:
        service = CountingService(clock=lambda: clock.now().timestamp())
        with application(service.origin):
            make_people(STEADY, scopes=SCOPES)
            for _ in range(DAYS * 24 * 6):
                clock.advance(minutes=10)
                ended = upkeep.refetch_for_a_minute()
                assert set(ended) <= {upkeep.Refetched.STORED}
        service.close()
    return {"calls_a_day": len(service.seen) / DAYS / STEADY}


def make_people(number: int, *, scopes: list[str]) -> None:
    now = timezone.now()
    for count in range(number):
        subject = f"subject-{count}"
        due_at = now + timedelta(hours=18) * count / number
        identity = make_identity(
            make_user(f"user-{count}"),
            subject=subject,
            scopes=scopes,
            refetch_due_at=due_at,
        )
        tokens = {"access_token": f"at-0-{subject}", "refresh_token": f"rt-0-{subject}"}
        make_grant(identity, access_expires_at=now, **tokens)


def application(origin: str) -> override_settings:
    return override_settings(DJANGO_IDENTITY=setting(origin))


@contextmanager
def served(delay: float = DELAY) -> Iterator[str]:
    """The origin of a stand-in that uses none of this process's time."""
    command = [sys.executable, "-m", "tests.integration.counting_service", str(delay)]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.communicate("")
