"""Do all upkeep that is due. One line in cron replaces the worker and beat."""

from typing import Any

from django.core.management.base import CommandError

from django_identity.lifecycle import upkeep
from django_identity.management.command import INTERRUPTED, IdentityCommand, asked_to_stop


class Command(IdentityCommand):
    help = (
        "Retry erasures and event handlers, purge old data, and re-fetch due claims. Run it each "
        "minute by cron on a site without a worker. Safe beside workers. Ctrl-C stops it."
    )

    def handle(self, **_options: Any) -> None:
        with asked_to_stop() as stop:
            events, tally = upkeep.run(stop=stop)
            was_stopped = stop()
        for outcome, count in sorted(tally.items()):
            self.stdout.write(f"re-fetches, {outcome.value}: {count}")
        if events:
            self.stdout.write(f"events whose handlers are done: {events}")
        if was_stopped:
            raise CommandError("Stopped. What was not done stays due.", returncode=INTERRUPTED)
        if upkeep.takes_no_calls() or tally[upkeep.Refetched.NOT_NOW]:
            raise CommandError("The service takes no calls at the moment. The rest stays due.")
