"""Do all upkeep that is due. One line in cron replaces the worker and beat."""

from typing import Any

from django_identity.lifecycle.minute import upkeep
from django_identity.management.command import IdentityCommand, asked_to_stop


class Command(IdentityCommand):
    help = (
        "Retry erasures and event handlers, purge old data, and re-fetch due claims. Run it each "
        "minute by cron on a site without a worker. Safe beside workers. Ctrl-C stops it."
    )

    def handle(self, **_options: Any) -> None:
        with asked_to_stop() as stop:
            tended, tally = upkeep.run(stop=stop)
            if tended.erasures:
                self.stdout.write(f"erasures that are done: {tended.erasures}")
            if tended.events:
                self.stdout.write(f"events whose handlers are done: {tended.events}")
            self.conclude(tally, was_stopped=stop())
