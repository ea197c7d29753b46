"""What the package sees instead of a database server, a network, a clock and chance.

A process is switched before every transaction, before every statement outside one, and before every
call of the service.
"""

import json
import re
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from hashlib import blake2b
from typing import Any
from unittest import mock

from django.db import connection
from greenlet import GreenletExit, getcurrent

from django_identity.conf import Application
from django_identity.secrets import Secret
from django_identity.service.http import Answer, Call
from tests.interleavings.explorer import Run, compared
from tests.interleavings.world import ISSUER

#: No switch stands before these statements: they end a transaction or stand inside one, or are
#: about rows that only their own process reads, so no order of it and other steps makes a
#: difference. (An erasure deletes such rows, and purge deletes those that have expired; their owner
#: goes on in the same way.)
UNSWITCHED = re.compile(
    "SAVEPOINT|RELEASE|ROLLBACK|COMMIT|PRAGMA"
    "|.*django_identity_(authorizationrequest|connectredemption)"
)
#: Each time it is another text that says the same.
SIGNED = re.compile('"credential": "[^"]*"')
#: The look for rows that are older than half a year: in these scenarios there are none.
LOOKS_FOR_OLD_ROWS = "upkeep._delete"


@contextmanager
def controlled(run: Run) -> Iterator[None]:
    """Give the package the run's clock, service, chance and switches."""

    def execute(
        work: Callable[..., Any], sql: str, params: Any, many: bool, context: Any
    ) -> Any:
        if run.running is None and getcurrent().parent is not None:
            raise GreenletExit  # A process that died tries to clean up.
        is_alone = not context["connection"].in_atomic_block
        if is_alone and not UNSWITCHED.match(sql):
            place = _place()
            if place != LOOKS_FOR_OLD_ROWS:
                run.pause(f"{place}: {sql.split()[0]}")
        done = work(sql, params, many, context)
        if not sql.startswith("SELECT"):
            run.note(context["cursor"].rowcount)
        return done

    def row(cursor: sqlite3.Cursor, values: tuple[Any, ...]) -> tuple[Any, ...]:
        if run.running is not None:
            run.note(compared(cursor, values))
        return values

    def exchange(application: Application, call: Call) -> Answer:
        if call.endpoint not in run.quiet:
            run.pause(f"the service: {call.endpoint}")
        status, body = run.service.answer(application, call)
        text = json.dumps(body)
        run.note(f"{status} {SIGNED.sub('', text)}")
        return Answer(status, {}, text.encode())

    def sleep(_seconds: float) -> None:
        if run.running is not None:
            run.running.wait()

    def random_bytes(size: int) -> bytes:
        """Different each time, and the same on every path of one process."""
        name = run.running.name if run.running else ""
        run.drawn[name] += 1
        drawn = blake2b(f"{name} {run.drawn[name]}".encode(), digest_size=64)
        return drawn.digest()[:size]

    connection.ensure_connection()
    connection.connection.row_factory = row
    replaced = {
        "django.utils.timezone.now": run.now,
        "time.monotonic": lambda: run.now().timestamp(),
        "time.sleep": sleep,
        "os.urandom": random_bytes,
        "random._urandom": random_bytes,
        "random.shuffle": lambda rows: None,
        "random.uniform": lambda low, high: high,
        "django_identity.service.client.exchange": exchange,
        "django_identity.lifecycle.key_sets.current": lambda application: ISSUER.keys,
        # Encryption draws bytes and reads a clock of its own.
        "django_identity.vault.seal": lambda secret, **_how: secret.reveal(),
        "django_identity.vault.unseal": lambda sealed, **_how: Secret(sealed),
    }
    with ExitStack() as stack:
        stack.enter_context(connection.execute_wrapper(execute))
        for path, value in replaced.items():
            stack.enter_context(mock.patch(path, value))
        yield


def _place() -> str:
    """The function of the package that runs, such as ``linking._grant``."""
    frame = sys._getframe(2)
    while frame is not None:
        room, _, module = frame.f_globals["__name__"].rpartition(".")
        if room.startswith("django_identity") and module not in (
            "database",
            "querysets",
        ):
            return f"{module}.{frame.f_code.co_name}"
        frame = frame.f_back
    return "the site"
