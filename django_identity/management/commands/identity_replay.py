"""Make the site's handlers of stored events due again."""

from datetime import datetime
from typing import Any

from django.core.management.base import CommandError, CommandParser

from django_identity.lifecycle.minute import follow_up
from django_identity.management.command import IdentityCommand
from django_identity.service.moments import parse_moment


class Command(IdentityCommand):
    help = (
        "Make handlers of stored events due that have not succeeded: of events with these ids, of "
        "failed events, or of events received since a time. The package's own effects are not "
        "repeated."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("event_ids", nargs="*", help="Event ids of the service.")
        parser.add_argument(
            "--failed",
            action="store_true",
            help="Events that failed for good.",
        )
        parser.add_argument(
            "--since",
            type=moment,
            help="Events received since this day or time (ISO 8601, UTC).",
        )
        parser.add_argument(
            "--again",
            action="store_true",
            help="Succeeded handlers too.",
        )

    def handle(
        self,
        *,
        event_ids: list[str],
        failed: bool,
        since: datetime | None,
        again: bool,
        **_options: Any,
    ) -> None:
        if not (event_ids or failed or since):
            raise CommandError("Name events, or say --failed or --since.")
        chosen = follow_up.choose_events(event_ids, failed=failed, since=since)
        # One id may be of several events.
        unknown = set(event_ids)
        if unknown:
            unknown -= set(chosen.values_list("event_id", flat=True))
        wanted = chosen.count() + len(unknown)
        due = follow_up.replay(chosen, again=again)
        self.stdout.write(
            f"{due} event(s) are due. A worker or identity_upkeep runs the handlers.",
        )
        left = wanted - due
        if left:
            reasons = "not stored, emptied, or in a worker's hands"
            raise CommandError(f"{left} event(s) left out: {reasons}")


def moment(text: str) -> datetime:
    """A time, or the first moment of a day."""
    return parse_moment(text, takes_days=True)
