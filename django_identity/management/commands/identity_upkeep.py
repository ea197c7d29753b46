"""Do all upkeep that is due. One line in cron replaces the worker and beat."""

from typing import Any

from django.core.management.base import CommandError

from django_identity.lifecycle import upkeep
from django_identity.management.command import INTERRUPTED, IdentityCommand, asked_to_stop


class Command(IdentityCommand):
    help = (
        "Re-fetch due claims, retry erasures and event handlers, keep unused grants alive, and "
        "purge old data. Run it each minute by cron on a site without a worker. Safe beside "
        "workers. Ctrl-C stops it."
    )

    def handle(self, **_options: Any) -> None:
        with asked_to_stop() as stop:
            done = upkeep.run_all(stop=stop)
            was_stopped = stop()
        self._report(done)
        if was_stopped:
            raise CommandError("Stopped. What was not done stays due.", returncode=INTERRUPTED)
        tally, ended = done.refetched, upkeep.Refetched
        if upkeep.takes_no_calls() or tally[ended.NOT_NOW]:
            raise CommandError("The service takes no calls at the moment. The rest stays due.")
        if tally[ended.POSTPONED] and not tally[ended.STORED]:
            raise CommandError("Nothing could be re-fetched. It stays due; see the log.")

    def _report(self, done: upkeep.Upkept) -> None:
        for outcome, count in sorted(done.refetched.items()):
            self.stdout.write(f"re-fetches, {outcome.value}: {count}")
        if done.events:
            self.stdout.write(f"events whose handlers are done: {done.events}")
        if done.kept_alive:
            self.stdout.write(f"grants kept alive: {done.kept_alive}")
        if done.purged is not None:
            self.stdout.write("old data was purged")
