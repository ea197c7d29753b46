"""List what every URL of the site asks for."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from django_identity import gate_map
from django_identity.gate_map import Entrance
from django_identity.management.command import IdentityCommand


class Command(IdentityCommand):
    help = (
        "List every URL with the claims, levels and sign-ins that it asks for. What a template "
        "hides by a tag or a filter is not seen."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--open", action="store_true", help="List the URLs without a gate.")
        parser.add_argument("--json", action="store_true", help="Write JSON, for --diff.")
        said = "List what asks for less than in this file, and exit with 1 if anything does."
        parser.add_argument("--diff", type=Path, metavar="OLD.json", help=said)

    def handle(self, *, diff: Path | None, **options: Any) -> None:
        listed = list(gate_map.entrances())
        if diff is not None:
            listed = _opened(diff, listed)
        elif options["open"]:
            listed = [each for each in listed if not each.requirements]
        if options["json"]:
            self.stdout.write(json.dumps([each.as_json() for each in listed], indent=1))
        else:
            for each in listed:
                self.stdout.write(_line(each))
        if diff is not None and listed:
            raise CommandError(f"{len(listed)} URL(s) ask for less than before.")


def _opened(path: Path, found: Iterable[Entrance]) -> list[Entrance]:
    try:
        held = json.loads(path.read_text("utf-8"))
        if not isinstance(held, list):
            raise TypeError
        return list(gate_map.opened(held, found))
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise CommandError(f"{path} is not what --json wrote ({type(error).__name__}).") from None


def _line(each: Entrance) -> str:
    asked = [f"{one.text} ({one.application}, {one.closed})" for one in each.requirements]
    return "  ".join([each.url, each.view, each.error or ", ".join(asked) or "open"])
