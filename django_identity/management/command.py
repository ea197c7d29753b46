"""What the package's commands share: errors, results, a clean stop, the portal's token."""

import os
import re
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from getpass import getpass
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from django_identity.exceptions import IdentityError
from django_identity.lifecycle import upkeep
from django_identity.secrets import Secret

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

    def conclude(self, tally: Counter[upkeep.Refetched], *, was_stopped: bool) -> None:
        """Write how re-fetches ended. Fail if a person has to look, so that cron's mail says so."""
        for outcome, count in sorted(tally.items()):
            self.stdout.write(f"re-fetches, {outcome.value}: {count}")
        if was_stopped:
            raise CommandError("Stopped. What was not done stays due.", returncode=INTERRUPTED)
        if tally[upkeep.Refetched.NOT_NOW] or upkeep.takes_no_calls():
            raise CommandError("The service takes no calls at the moment. The rest stays due.")
        if tally and not tally.keys() - upkeep.FAILURES:
            raise CommandError("Nothing could be re-fetched. It is tried again later; see the log.")


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
    # Python takes signals in the main thread alone; a scheduler may run commands in another one.
    if threading.current_thread() is not threading.main_thread():
        yield asked.is_set
        return

    def ask(number: int, _frame: object) -> None:
        asked.set()
        signal.signal(number, before[number])

    wanted = (signal.SIGINT, signal.SIGTERM)
    before: dict[int, Any] = {number: signal.signal(number, ask) for number in wanted}
    try:
        yield asked.is_set
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
