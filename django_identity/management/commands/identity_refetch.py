"""Re-fetch claims in this process, due or not."""

from collections import Counter
from collections.abc import Callable
from contextlib import closing
from typing import Any

from django.core.management.base import CommandError, CommandParser

from django_identity.lifecycle import upkeep
from django_identity.management.command import INTERRUPTED, IdentityCommand, asked_to_stop


class Command(IdentityCommand):
    help = (
        "Re-fetch the claims of linked identities: of all due ones, or of those with these ids. "
        "May run beside workers. Ctrl-C stops it."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("ids", nargs="*", type=int, help="Linked identities, due or not.")
        parser.add_argument("--due", action="store_true", help="All due identities.")
        parser.add_argument("--limit", type=int, help="The largest number of identities.")

    def handle(
        self, *, ids: list[int], due: bool, limit: int | None = None, **_options: Any
    ) -> None:
        if bool(ids) == due:
            raise CommandError("Name linked identities by their ids, or give --due.")
        if limit is not None and limit < 1:
            raise CommandError("--limit is at least 1.")
        with asked_to_stop() as stop:
            tally = self._refetch(ids, limit=limit, stop=stop)
            was_stopped = stop()
        for outcome, count in sorted(tally.items()):
            self.stdout.write(f"{outcome.value}: {count}")
        if was_stopped:
            raise CommandError("Stopped. What was not done stays due.", returncode=INTERRUPTED)
        if tally[upkeep.Refetched.NOT_NOW] or (due and upkeep.takes_no_calls()):
            raise CommandError("The service takes no calls at the moment. The rest stays due.")
        if ids and not tally:
            raise CommandError("No linked identity with these ids can be re-fetched.")
        if not tally:
            self.stdout.write("Nothing to do.")
        elif not tally.keys() - upkeep.FAILURES:
            raise CommandError("Nothing could be re-fetched. It is tried again later; see the log.")

    def _refetch(
        self, ids: list[int], *, limit: int | None, stop: Callable[[], bool]
    ) -> Counter[upkeep.Refetched]:
        total = len(ids) if ids else upkeep.count_due()
        most = min(total, limit or total)
        outcomes = upkeep.refetch_these(ids[:most]) if ids else upkeep.refetch_all(most=most)
        tally: Counter[upkeep.Refetched] = Counter()
        with self.progress(total=most) as progress, closing(outcomes):
            for outcome in outcomes:
                tally[outcome] += 1
                progress.update()
                if stop():
                    break
        return tally
