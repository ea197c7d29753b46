"""What the package's commands share: errors, results, a clean stop.

A new command is a file of ``commands/`` with a ``Command(IdentityCommand)``. It calls
``lifecycle``, ``instruments`` or the drill, writes what was done to ``stdout``, and has a section
in ``docs/commands.md``. An error is ``code: sentence`` and exit code 1, a stop by Ctrl-C is 130.
The doctor alone is a plain ``BaseCommand``: an error of settings or database is what it reports.
"""

import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import Error

from django_identity.boundary import boundary
from django_identity.exceptions import IdentityError
from django_identity.lifecycle.minute import upkeep
from django_identity.lifecycle.said import due

INTERRUPTED = 130
STOPPED = (
    f"Stopped. What was not begun stays due; up to {due.ROWS_AT_ONCE - 1} identities that were "
    "taken already are due again in five minutes."
)
PAUSED = "Re-fetches pause: identity_doctor says until when. The rest stays due."
NOT_NOW = (
    "The service takes no calls at the moment, or rejects this site; the log says which. The rest "
    "stays due."
)
UNREADABLE = (
    "Some stored tokens are opened by no key. Put the former key back into ENCRYPTION_KEYS, behind "
    "the current one. Nobody has lost anything; the rest stays due."
)
UNANSWERED = "Nobody is there to answer. Give --yes."


class IdentityCommand(BaseCommand):
    """Turns expected errors into one sentence and hides their traceback."""

    def execute(self, *args: Any, **options: Any) -> str | None:
        try:
            return boundary(self._execute)(*args, **options)
        except IdentityError as error:
            raise CommandError(f"{error.code}: {error}") from None

    def _execute(self, *args: Any, **options: Any) -> str | None:
        try:
            return super().execute(*args, **options)
        except EOFError:
            raise CommandError(UNANSWERED) from None
        except Error as error:
            # Its own text may quote a row.
            name = type(error).__name__
            raise CommandError(
                f"The database cannot be used ({name}). identity_doctor says why.",
            ) from None

    def conclude(self, tally: Counter[upkeep.Refetched], *, was_stopped: bool) -> None:
        """Write how re-fetches ended. Fail if a person has to look, so that cron's mail says so."""
        for outcome, count in sorted(tally.items()):
            self.stdout.write(f"re-fetches, {outcome.value}: {count}")
        if was_stopped:
            raise CommandError(STOPPED, returncode=INTERRUPTED)
        if tally[upkeep.Refetched.UNREADABLE]:
            raise CommandError(UNREADABLE)
        if upkeep.is_held_up():
            raise CommandError(PAUSED)
        if tally[upkeep.Refetched.NOT_NOW]:
            raise CommandError(NOT_NOW)
        if tally and not tally.keys() - upkeep.FAILURES:
            raise CommandError(
                "Nothing could be re-fetched. It is tried again later; see the log.",
            )


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
