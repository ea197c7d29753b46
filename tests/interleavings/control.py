"""What the package sees instead of a database server, a network, a clock and chance.

A process is switched before every transaction, before every statement outside one, and before every
call of the service.
"""

import json
import random
import re
import sqlite3
import traceback
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from typing import Any
from unittest import mock

from django.db import connection
from greenlet import getcurrent

from django_identity import conf
from django_identity.conf import Application
from django_identity.lifecycle.arriving import linking
from django_identity.lifecycle.arriving.request import LinkRequest
from django_identity.lifecycle.said import events
from django_identity.models import LinkedIdentity, SubjectLock, WebhookEvent, digest
from django_identity.models.querysets import LinkedIdentityQuerySet
from django_identity.secrets import Secret
from django_identity.service.http import Answer, Call
from tests.interleavings.explorer import Explorer, compared, learn, pause
from tests.interleavings.world import ISSUER

#: No switch stands before these statements: they are about rows that only their own process reads,
#: so no order of it and other steps makes a difference. (An erasure deletes such rows, and purge
#: deletes those that have expired; their owner goes on in the same way.) In these scenarios no row
#: is older than half a year, so the looks for old rows find none.
UNSWITCHED = re.compile(
    "upkeep._delete|.*django_identity_(authorizationrequest|connectredemption)",
)
#: Each time it is another text that says the same.
SIGNED = re.compile('"credential": "[^"]*"')


@contextmanager
def controlled(explorer: Explorer) -> Iterator[None]:
    """Give the package the explorer's world, chance and switches."""

    def execute(work: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if not connection.in_atomic_block:
            statement = f"{_place()}: {sql}"
            if not UNSWITCHED.match(statement):
                pause(statement[:72])
        done = work(sql, params, many, context)
        if not sql.startswith("SELECT"):
            learn(context["cursor"].rowcount)
        return done

    def row(cursor: sqlite3.Cursor, values: tuple[Any, ...]) -> tuple[Any, ...]:
        learn(compared(cursor, values))
        return values

    def exchange(application: Application, call: Call) -> Answer:
        if call.endpoint not in explorer.world.quiet:
            pause(f"the service: {call.endpoint}")
        status, body = explorer.world.answer(call)
        text = json.dumps(body)
        learn(f"{status} {SIGNED.sub('', text)}")
        return Answer(status, {}, text.encode())

    def now() -> datetime:
        learn(explorer.world.now)
        return explorer.world.now

    def sleep(_seconds: float) -> None:
        pause("looks again, a minute later")
        explorer.world.advance(minutes=1)

    chance = random.Random("before")

    def random_bytes(size: int) -> bytes:
        own = getattr(getcurrent(), "chance", chance)
        return own.randbytes(size)

    # A transaction does not see what another one has not committed, and a look that finds nobody
    # locks nothing. So the look is a step of its own, and what follows rests on it, unless the
    # subject is held: then it looks again.

    def apply(stored: WebhookEvent) -> Any:
        linked = LinkedIdentity.objects.filter(subject_digest=stored.subject_digest)
        with looked(found_nobody=not linked.exists()):
            return real_apply(stored)

    def link(request: LinkRequest) -> Any:
        subject = digest(conf.application().environment, request.subject)
        told = WebhookEvent.objects.filter(subject_digest=subject)
        with looked(heard_nothing=not told.exists()):
            return real_link(request)

    def locked(self: Any, subject_digest: str) -> Any:
        look = getattr(getcurrent(), "look", {})
        if look.get("found_nobody"):
            return None
        found = real_locked(self, subject_digest)
        if found is not None:
            look.clear()
        return found

    def hold(subject_digest: str) -> None:
        getattr(getcurrent(), "look", {}).clear()
        real_hold(subject_digest)

    def heard_since(subject_digest: str, began_at: datetime) -> list[WebhookEvent]:
        if getattr(getcurrent(), "look", {}).get("heard_nothing"):
            return []
        return real_heard_since(subject_digest, began_at)

    real_apply, real_link = events.apply, linking._link
    real_locked, real_hold = LinkedIdentityQuerySet.locked, SubjectLock.hold
    real_heard_since = events.heard_since

    connection.ensure_connection()
    connection.connection.row_factory = row
    replaced = {
        "django.utils.timezone.now": now,
        "time.monotonic": lambda: now().timestamp(),
        "time.sleep": sleep,
        "os.urandom": random_bytes,
        "random._urandom": random_bytes,
        "random.shuffle": lambda rows: None,
        "random.uniform": lambda low, high: high,
        "django_identity.service.client.exchange": exchange,
        "django_identity.lifecycle.said.key_sets.current": lambda application: (
            ISSUER.keys
        ),
        "django_identity.lifecycle.said.events.apply": apply,
        "django_identity.lifecycle.said.events.heard_since": heard_since,
        "django_identity.lifecycle.arriving.linking._link": link,
        "django_identity.models.SubjectLock.hold": hold,
        "django_identity.models.querysets.LinkedIdentityQuerySet.locked": locked,
        # Encryption draws bytes and reads a clock of its own.
        "django_identity.vault.seal": lambda secret, **how: secret.reveal(),
        "django_identity.vault.unseal": lambda sealed, **how: Secret(sealed),
    }
    with ExitStack() as stack:
        stack.enter_context(connection.execute_wrapper(execute))
        for path, value in replaced.items():
            stack.enter_context(mock.patch(path, value))
        yield


@contextmanager
def looked(**look: Any) -> Iterator[None]:
    """What the running process has seen before its transaction."""
    process: Any = getcurrent()
    process.look = look
    try:
        yield
    finally:
        process.look = {}


def _place() -> str:
    """The function of the package that runs, such as ``linking._grant``."""
    for frame, _line in traceback.walk_stack(None):
        room, _, module = frame.f_globals["__name__"].rpartition(".")
        if "django_identity" in room and module not in ("database", "querysets"):
            return f"{module}.{frame.f_code.co_name}"
    return "the site"
