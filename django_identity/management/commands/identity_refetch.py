"""Re-fetch claims in this process, due or not."""

from collections import Counter
from typing import Any

from django.core.management.base import CommandError, CommandParser
from tqdm import tqdm

from django_identity.lifecycle import upkeep
from django_identity.management.command import IdentityCommand, asked_to_stop


class Command(IdentityCommand):
    help = (
        "Re-fetch the claims of linked identities: of all due ones, or of those with these ids. "
        "May run beside workers. Ctrl-C stops it."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("ids", nargs="*", type=int, help="Linked identities, due or not.")
        parser.add_argument("--due", action="store_true", help="All due identities.")
        parser.add_argument("--limit", type=int, help="The largest number of identities.")

    def handle(self, *, ids: list[int], due: bool, limit: int | None, **_options: Any) -> None:
        if bool(ids) == due:
            raise CommandError("Name linked identities by their ids, or give --due.")
        most = len(ids) if ids else upkeep.count_due()
        most = most if limit is None else min(most, limit)
        outcomes = upkeep.refetch_these(ids[:most]) if ids else upkeep.refetch_all(most=most)
        tally: Counter[upkeep.Refetched] = Counter()
        with asked_to_stop() as stop:
            for outcome in tqdm(outcomes, total=most, disable=None):
                tally[outcome] += 1
                if stop():
                    break
            self.conclude(tally, was_stopped=stop())
        if ids and not tally:
            raise CommandError("No linked identity with these ids can be re-fetched.")
