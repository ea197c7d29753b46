"""Run the site's handlers of stored events again."""

from typing import Any

from django.core.management.base import CommandError, CommandParser

from django_identity.lifecycle import upkeep
from django_identity.management.command import IdentityCommand, moment


class Command(IdentityCommand):
    help = (
        "Run handlers of stored events that have not succeeded: of events with these ids, of "
        "failed events, or of events received since a time. The package's own effects are not "
        "repeated."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("event_ids", nargs="*", help="Event ids of the service.")
        parser.add_argument("--failed", action="store_true", help="Events that failed for good.")
        parser.add_argument("--since", type=moment, help="Events received since this time (UTC).")
        parser.add_argument("--again", action="store_true", help="Run succeeded handlers too.")

    def handle(self, **options: Any) -> None:
        event_ids, failed, since = (options[name] for name in ("event_ids", "failed", "since"))
        if not (event_ids or failed or since):
            raise CommandError("Name events, or say --failed or --since.")
        chosen = upkeep.choose_events(event_ids, failed=failed, since=since)
        unknown = upkeep.unknown_events(event_ids)
        replayed, left = upkeep.replay(chosen, again=options["again"]), []
        with self.progress(total=len(replayed.due)) as progress:
            for key in replayed.due:
                if not upkeep.run_handlers(key):
                    left.append(key)
                progress.update()
        # A worker may have been faster with some of them.
        by_worker, raised = upkeep.results_of(left)
        done = len(replayed.due) - len(left) + by_worker
        self.stdout.write(f"{len(replayed.due)} event(s) replayed, {done} done")
        if under_way := replayed.under_way + len(left) - by_worker - raised:
            self.stdout.write(f"{under_way} skipped: a worker is running their handlers")
        self._complain(replayed, unknown, failed=raised)

    def _complain(self, replayed: upkeep.Replayed, unknown: list[str], *, failed: int) -> None:
        """Exit with 1 if an operator has to look."""
        emptied = replayed.emptied
        troubles = {
            f"{failed} not done: a handler raised an error, see the log": failed,
            f"{emptied} refused: purge or an erasure deleted the content": emptied,
            f"not stored: {', '.join(unknown)}": unknown,
        }
        if any(troubles.values()):
            raise CommandError("; ".join(text for text, found in troubles.items() if found))
