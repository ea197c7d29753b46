"""What the package's commands share: errors, progress, a clean stop, times, the portal's token."""

from __future__ import annotations

import os
import re
import signal
import threading
from argparse import ArgumentTypeError
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from getpass import getpass
from types import SimpleNamespace
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from tqdm import tqdm

from django_identity.exceptions import IdentityError
from django_identity.secrets import Secret
from django_identity.service.moments import NotAMoment, parse_moment

INTERRUPTED = 130
PORTAL_TOKEN = "IDENTITY_PORTAL_TOKEN"  # noqa: S105  the name of the variable
# RFC 6750 §2.1. The limit of the length is our own, because the token goes into a header.
TOKEN = re.compile(r"[A-Za-z0-9._~+/=-]{1,4096}")


class IdentityCommand(BaseCommand):
    """Turns an ``IdentityError`` into a message with its code and detail, without a traceback."""

    def execute(self, *args: Any, **options: Any) -> str | None:
        try:
            return super().execute(*args, **options)
        except IdentityError as error:
            raise CommandError(f"{error.code}: {error}") from None

    def progress(self, *, total: int) -> tqdm[Any]:
        """A progress bar on standard error, only in a terminal."""
        write = partial(self.stderr.write, style_func=str, ending="")
        file: Any = SimpleNamespace(write=write, flush=self.stderr.flush)
        return tqdm(total=total, file=file, disable=not self.stderr.isatty(), mininterval=0)


def moment(text: str) -> datetime:
    """The type of an argument: a time in ISO 8601, in UTC without an offset."""
    try:
        return parse_moment(text)
    except NotAMoment:
        raise ArgumentTypeError("not a time in ISO 8601, such as 2026-11-20T12:00:00Z") from None


def portal_token() -> Secret:
    """The developer portal's session token, from the environment or typed in.

    It is never an argument, because every user of the machine can see the arguments of a process.
    """
    token = (os.environ.get(PORTAL_TOKEN) or getpass("Developer portal session token: ")).strip()
    if not TOKEN.fullmatch(token):
        raise CommandError(f"That is no session token. Set {PORTAL_TOKEN}, or type it.")
    return Secret(token)


@contextmanager
def asked_to_stop() -> Iterator[Callable[[], bool]]:
    """Yield a function that returns whether Ctrl-C was pressed or SIGTERM was sent.

    The current piece of work can then be finished first. A second signal interrupts at once.
    """
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked.is_set
        return

    def ask(number: int, _frame: object) -> None:
        asked.set()
        signal.signal(number, before[signal.Signals(number)])

    wanted = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, ask) for number in wanted}
    try:
        yield asked.is_set
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
