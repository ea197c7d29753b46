"""List what every address of the site asks for, and what has changed in it."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from django_identity.gates import site_map
from django_identity.gates.changes import (
    Change,
    NotAMap,
    Verdict,
    changes,
    map_as_json,
    map_from_json,
)
from django_identity.gates.demands import describe
from django_identity.gates.reading import Guard
from django_identity.gates.site_map import FOLDED, UNKNOWN, Address
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
            "--json", action="store_true", help="Write JSON, for --diff."
        )
        parser.add_argument(
            "--diff",
            type=Path,
            metavar="OLD.json",
            help="Compare with this file. Exits with 1 if an address asks for less, or could not "
            "be compared. An address that asks for more is only listed.",
        )
        parser.add_argument(
            "--unread",
            action="append",
            default=[],
            metavar="ADDRESS",
            help="With --diff: an address that may stay unread, as the list shows it.",
        )

    def handle(self, *, diff: Path | None, **options: Any) -> None:
        found = site_map.with_answers(list(site_map.addresses()))
        if diff is not None:
            self._compare(diff, found, unread=options["unread"])
        elif options["json"]:
            self.stdout.write(json.dumps(map_as_json(found), indent=1))
        else:
            folds = not options["all"]
            for line in _lines(found, only_open=options["open"], folds=folds):
                self.stdout.write(line)
            self._write_never_seen()

    def _compare(self, path: Path, found: list[Address], *, unread: list[str]) -> None:
        failing = 0
        for change in changes(_stored(path), found):
            is_unread = change.verdict is Verdict.NOT_READ
            is_expected = is_unread and change.address.url in unread
            if change.verdict is not Verdict.STRICTER and not is_expected:
                failing += 1
            self.stdout.write(_change_line(change))
        unknown = sum(address.answered_by == UNKNOWN for address in found)
        if unknown:
            self.stdout.write(
                f"not seen: whether an earlier pattern answers at {unknown} address(es)"
            )
        self._write_never_seen()
        if failing:
            raise CommandError(
                f"{failing} address(es) ask for less, or could not be compared."
            )

    def _write_never_seen(self) -> None:
        for blind_spot in site_map.never_seen():
            self.stdout.write(f"not seen: {blind_spot}")


def _stored(path: Path) -> list[Address]:
    try:
        return map_from_json(json.loads(path.read_text("utf-8")))
    except (OSError, ValueError, RecursionError) as error:
        why = str(error) if isinstance(error, NotAMap) else type(error).__name__
        raise CommandError(
            f"{path} cannot be compared with: {why}. Write it anew with --json, and look at it."
        ) from None


def _lines(found: Iterable[Address], *, only_open: bool, folds: bool) -> Iterator[str]:
    """A line for each address. The pages of the admin and of this package stand last."""
    last: list[str] = []
    folded: dict[str, int] = {}
    for address in found:
        is_gated = bool(address.reading.guards)
        if only_open and not address.reading.open_methods:
            continue
        if not address.include:
            yield _line(address)
        elif folds and not is_gated and not address.error:
            owner = FOLDED[address.include]
            folded[owner] = folded.get(owner, 0) + 1
        else:
            last.append(_line(address))
    yield from last
    for owner, count in folded.items():
        yield f"{owner}: {count} open address(es); --all lists them"


def _line(address: Address) -> str:
    reading = address.reading
    asked = [_guard_in_words(guard) for guard in reading.guards]
    if asked:
        asked += [f"{method.upper()} open" for method in reading.open_methods]
    parts = [address.url, address.view, address.error or ", ".join(asked) or "open"]
    if address.answered_by == UNKNOWN:
        parts.append("[not seen: whether an earlier pattern answers]")
    elif address.answered_by:
        parts.append(f"[answered by {address.answered_by}]")
    return "  ".join(parts)


def _guard_in_words(guard: Guard) -> str:
    method = f"{guard.method.upper()} " if guard.method else ""
    return f"{method}{describe(guard.passed_by)} ({guard.closed})"


def _change_line(change: Change) -> str:
    return f"{change.verdict:<8}  {change.address.url}  {change.address.view}  {change.detail}"
