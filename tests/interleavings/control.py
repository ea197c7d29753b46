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
from django.utils import timezone
from greenlet import GreenletExit, getcurrent

from django_identity import vault
from django_identity.conf import Application
from django_identity.lifecycle import key_sets, refetch
from django_identity.secrets import Secret
from django_identity.service import client
from django_identity.service.http import Answer, Call
from tests.interleavings.processes import Run
from tests.interleavings.states import compared
from tests.interleavings.world import ISSUER

#: Only the process that wrote such a row reads it, so no order of it and other steps makes a
#: difference: these statements belong to the step before. (An erasure deletes these rows, and purge
#: deletes those that have expired; their owner goes on in the same way.)
OWN_ROWS = re.compile(r"django_identity_(authorizationrequest|connectredemption)")
#: The look for rows that are older than half a year: in these scenarios there are none.
LOOKS_FOR_OLD_ROWS = "upkeep._delete"
#: They end a transaction or stand inside one.
INSIDE = ("SAVEPOINT", "RELEASE", "ROLLBACK", "COMMIT", "PRAGMA")


@contextmanager
def controlled(run: Run) -> Iterator[None]:
    """Give the package the run's clock, service, chance and switches."""

    def execute(
        work: Callable[..., Any], sql: str, params: Any, many: bool, context: dict[str, Any]
    ) -> Any:
        if run.running is None and getcurrent().parent is not None:
            raise GreenletExit  # A process that died tries to clean up.
        is_alone = not context["connection"].in_atomic_block
        if is_alone and not sql.startswith(INSIDE) and not OWN_ROWS.search(sql):
            place = _place()
            if place != LOOKS_FOR_OLD_ROWS:
                verb = "" if sql.startswith("BEGIN") else f": {sql.split()[0]}"
                run.pause(f"{place}{verb}", params)
        done = work(sql, params, many, context)
        if not sql.startswith("SELECT"):
            run.note(context["cursor"].rowcount)
        return done

    def row(cursor: sqlite3.Cursor, values: tuple[Any, ...]) -> tuple[Any, ...]:
        if run.running is not None:
            run.note(compared(cursor, values))
        return values

    def exchange(application: Application, call: Call) -> Answer:
        if call.endpoint not in run.quiet_calls:
            run.pause(f"the service: {call.endpoint}")
        status, body = run.service.answer(application, call)
        without_salt = {**body, "data": {**body.get("data", {}), "credential": ""}}
        run.note(f"{status} {without_salt}")
        return Answer(status, {}, json.dumps(body).encode())

    def sleep(_seconds: float) -> None:
        if run.running is not None:
            run.running.wait()

    def random_bytes(size: int) -> bytes:
        """Different each time, and the same on every path of one process."""
        name = run.running.name if run.running else ""
        run.drawn[name] += 1
        return blake2b(f"{name} {run.drawn[name]}".encode(), digest_size=64).digest()[:size]

    connection.ensure_connection()
    connection.connection.row_factory = row
    replaced: tuple[tuple[Any, str, Any], ...] = (
        (timezone, "now", lambda: run.clock.now()),
        (client, "exchange", exchange),
        (key_sets, "current", lambda application: ISSUER.keys),
        # Encryption draws bytes and reads a clock of its own.
        (vault, "seal", lambda secret, *, keys, context: f"{context}\n{secret.reveal()}"),
        (vault, "unseal", lambda sealed, *, keys, context: Secret(sealed.partition("\n")[2])),
        (refetch, "DUE_SPREAD", 0),
    )
    by_name = {
        "time.sleep": sleep,
        "time.monotonic": lambda: float(run.clock.seconds),
        "os.urandom": random_bytes,
        "random._urandom": random_bytes,
        "random.shuffle": lambda rows: None,
        "random.uniform": lambda low, high: high,
    }
    with ExitStack() as stack:
        stack.enter_context(connection.execute_wrapper(execute))
        for target, name, value in replaced:
            stack.enter_context(mock.patch.object(target, name, value))
        for path, value in by_name.items():
            stack.enter_context(mock.patch(path, value))
        yield


def _place() -> str:
    """The function of the package that runs, such as ``linking._grant``."""
    frame = sys._getframe(2)
    while frame is not None:
        room, _, module = frame.f_globals["__name__"].rpartition(".")
        if room.startswith("django_identity") and module not in ("database", "querysets"):
            return f"{module}.{frame.f_code.co_name}"
        frame = frame.f_back
    return "the site"
