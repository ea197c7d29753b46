"""List what every address of the site asks for, and compare the list with a stored one."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from django_identity.instruments import gate_map
from django_identity.instruments.gate_map import text
from django_identity.management.command import IdentityCommand


class Command(IdentityCommand):
    help = (
        "List every address of the site with the claims, levels, scopes and sign-ins that it asks "
        "for, and what cannot be seen."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--open",
            action="store_true",
            help="List the addresses without a gate, or with a method without one.",
        )
        parser.add_argument(
            "--all",
            action="store_true",
            help="List each open page of the admin and this package.",
        )
        parser.add_argument(
            "--check",
            type=Path,
            metavar="FILE",
            help="Compare with what this command wrote, with the same options. Exits with 1 if a "
            "line differs, and prints it.",
        )

    def handle(self, *, check: Path | None, **options: Any) -> None:
        found = gate_map.addresses()
        lines = [
            *text.lines(found, only_open=options["open"], folds=not options["all"]),
        ]
        if check is None:
            self.stdout.writelines(f"{line}\n" for line in lines)
            return
        changed = text.changed(_stored(check), lines)
        self.stdout.writelines(f"{line}\n" for line in changed)
        if changed:
            raise CommandError(
                f"{len(changed)} line(s) differ. Look at each, and write {check} anew.",
            )


def _stored(path: Path) -> list[str]:
    try:
        return path.read_text("utf-8").splitlines()
    except (OSError, ValueError) as error:
        name = type(error).__name__
        raise CommandError(f"{path} cannot be read ({name}).") from None
