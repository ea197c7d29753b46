"""Do the work of the sweep and its tasks. For cron, on a site without a worker."""

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
        is_away = due and upkeep.takes_no_calls()
        self._report(tally, was_held_off=is_away)
        if was_stopped:
            raise CommandError("Stopped. What was not done stays due.", returncode=INTERRUPTED)
        if is_away or tally[upkeep.Refetched.NOT_NOW]:
            raise CommandError("The service takes no calls at the moment. The rest stays due.")
        if ids and not tally:
            raise CommandError("No linked identity with these ids can be re-fetched.")
        if tally[upkeep.Refetched.POSTPONED] and not tally[upkeep.Refetched.STORED]:
            raise CommandError("Nothing could be re-fetched. It stays due; see the log.")

    def _refetch(
        self, ids: list[int], *, limit: int | None, stop: Callable[[], bool]
    ) -> upkeep.Tally:
        named = ids[:limit]
        total = len(named) if ids else upkeep.count_due()
        outcomes = upkeep.refetch_these(named) if ids else upkeep.refetch_due(most=limit)
        tally: upkeep.Tally = Counter()
        with self.progress(total=min(total, limit or total)) as progress, closing(outcomes):
            for outcome in outcomes:
                tally[outcome] += 1
                progress.update()
                if stop():
                    break
        return tally

    def _report(self, tally: upkeep.Tally, *, was_held_off: bool) -> None:
        for outcome in upkeep.Refetched:
            if tally[outcome]:
                self.stdout.write(f"{outcome.value}: {tally[outcome]}")
        if not tally and not was_held_off:
            self.stdout.write("Nothing to do.")
