"""Re-fetch claims in this process, due or not; or let upkeep's re-fetches pause."""

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.utils import timezone
from tqdm import tqdm

from django_identity.lifecycle.ground import runs
from django_identity.lifecycle.minute import upkeep
from django_identity.lifecycle.said import due
from django_identity.management.command import IdentityCommand, asked_to_stop

A_DAY = timedelta(days=1)
MOST_HOURS = 366 * 24
LEFT_OUT = (
    "there is no such linked identity, it is revoked, linked by a code alone, or of the other"
    " environment"
)


class Command(IdentityCommand):
    help = (
        "Re-fetch the claims of linked identities: of all due ones, or of those with these ids. "
        "May run beside workers. Ctrl-C stops it."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "ids",
            nargs="*",
            type=int,
            help="Linked identities, due or not.",
        )
        parser.add_argument("--due", action="store_true", help="All due identities.")
        parser.add_argument(
            "--limit",
            type=positive,
            help="The largest number of identities.",
        )
        parser.add_argument(
            "--pause",
            nargs="?",
            const=A_DAY,
            type=hours,
            metavar="HOURS",
            help="Re-fetch nothing, on no machine, for so many hours, by default 24. 0 ends the "
            "pause. Events and sign-ins go on.",
        )

    def handle(
        self,
        *,
        ids: list[int],
        pause: timedelta | None,
        **options: Any,
    ) -> None:
        chosen = [bool(ids), options["due"], pause is not None]
        if chosen.count(True) != 1:
            raise CommandError(
                "Name linked identities by their ids, or give --due, or --pause.",
            )
        if pause is not None:
            self._pause(pause)
        else:
            self._refetch(ids, options["limit"])

    def _pause(self, pause: timedelta) -> None:
        until = timezone.now() + pause
        if pause:
            runs.pause(until=until)
            # A longer pause stays.
            until = max(until, runs.newest().paused_until)
            self.stdout.write(f"Re-fetches pause until {until:%Y-%m-%d %H:%M} UTC.")
        else:
            runs.resume()
            self.stdout.write("No pause.")

    def _refetch(self, ids: list[int], limit: int | None) -> None:
        most = len(ids)
        if not ids:
            most = due.count()
        if limit is not None:
            most = min(most, limit)
        left_out: list[int] = []
        outcomes: Iterator[upkeep.Refetched] = upkeep.refetch_due(most=most)
        if ids:
            outcomes = _refetch_named(ids[:most], left_out)
        tally: Counter[upkeep.Refetched] = Counter()
        with asked_to_stop() as stop:
            for outcome in tqdm(outcomes, total=most, disable=None):
                tally[outcome] += 1
                if stop():
                    break
            named = ", ".join(map(str, left_out))
            if left_out:
                self.stdout.write(f"left out: {named}")
            self.conclude(tally, was_stopped=stop())
        if left_out:
            raise CommandError(f"Not re-fetched: {named}: {LEFT_OUT}.")


def _refetch_named(ids: list[int], left_out: list[int]) -> Iterator[upkeep.Refetched]:
    """Re-fetch these identities, due or not. ``left_out`` gets those that cannot be."""
    for pk in ids:
        outcome = next(upkeep.refetch_these([pk]), None)
        if outcome is None:
            left_out.append(pk)
        else:
            yield outcome


def hours(text: str) -> timedelta:
    """So many hours, at most a year."""
    number = float(text)
    if not 0 <= number <= MOST_HOURS:
        raise ValueError(text)
    return timedelta(hours=number)


def positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number
