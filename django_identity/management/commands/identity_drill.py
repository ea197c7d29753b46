"""Prove the promises of this site, in databases of its own and against a sandbox."""

import json
import platform
import signal
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import django
from django.core.management.base import CommandError, CommandParser
from django.utils import timezone

from django_identity.instruments import gate_map
from django_identity.management.command import INTERRUPTED, IdentityCommand
from django_identity.requirements import NotARequirement
from django_identity.testing.drill import Refused, Report, drill
from django_identity.testing.drill.report import RIGHT
from django_identity.testing.sandbox import SandboxError

#: Of each kind of things that the drill cannot judge; the evidence has all.
SHOWN = 10
NEVER_SEEN = (
    "what the site's policy decides at another time",
    "other methods and queries than those that it asks with",
    "what {% cache %} keeps of a page without a gate",
    "files outside MEDIA",
)
LISTS = {
    "--address": (
        "A path of an address with parameters, as often as wanted. /wine/=age_over_18: a path of a"
        " view whose own code asks for that."
    ),
    "--exclude": "An address to leave out.",
    "--fixture": "Load it first.",
}


class Command(IdentityCommand):
    help = (
        "Let three people sign in, prove things, lose them and be erased, and say whether every"
        " gated address is open and closed as it has to be. Handlers and receivers of the site run,"
        " and call out if they do; all else is a test's. Exits with 1 if something is wrong."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        for name, purpose in LISTS.items():
            parser.add_argument(name, action="append", default=[], help=purpose)
        parser.add_argument(
            "--json",
            type=Path,
            metavar="FILE",
            help="Write the evidence.",
        )
        parser.add_argument(
            "--label",
            default="",
            help="Of the evidence, such as a commit.",
        )
        parser.add_argument("--fail-on-untried", action="store_true")

    def handle(self, **options: Any) -> None:
        self.stdout.write(self.help)
        # Whatever ends it, what it has started ends too.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            report = drill(
                examples=options["address"],
                excluded=options["exclude"],
                fixtures=options["fixture"],
            )
        except (Refused, SandboxError, NotARequirement) as refused:
            raise CommandError(str(refused)) from None
        except KeyboardInterrupt:
            raise CommandError("Stopped.", returncode=INTERRUPTED) from None
        # First what was seen: the file may be one that cannot be written.
        self._write(report)
        if options["json"]:
            _write_evidence(options["json"], report, label=options["label"])
        summary = f"{len(report.findings)} found, {len(report.untried)} not tried."
        if report.findings:
            raise CommandError(summary)
        if not any(visit["outcome"] == RIGHT for visit in report.visits):
            raise CommandError(f"No gate was tried. {summary}")
        if options["fail_on_untried"] and report.untried:
            raise CommandError(summary)
        self.stdout.write(summary)

    def _write(self, report: Report) -> None:
        self.stdout.writelines(f"{line}\n" for line in report.table())
        for sentence in report.findings:
            self.stdout.write(f"found: {sentence}")
        for place, why in report.unsure.items():
            self.stdout.write(f"unsure: {place}: {why}")
        for place, why in report.untried.items():
            self.stdout.write(f"not tried: {place}: {why}")
        for blind_spot in _not_seen(report):
            self.stdout.write(f"not seen: {blind_spot}")


def _not_seen(report: Report) -> list[str]:
    """What the drill met and cannot judge, with its number; and what nobody sees."""
    kinds: dict[str, list[str]] = {}
    for thing, kind in report.unseen.items():
        kinds.setdefault(kind, []).append(thing)
    met: list[str] = []
    for kind, things in kinds.items():
        number = len(things)
        shown = ", ".join(things[:SHOWN])
        if number > SHOWN:
            shown += ", …"
        met.append(f"{kind} ({number}): {shown}")
    return [*met, *NEVER_SEEN, *gate_map.never_seen()]


def _write_evidence(path: Path, report: Report, *, label: str) -> None:
    about = {
        "date": timezone.now().isoformat(),
        "label": label,
        "python": platform.python_version(),
        "django": django.__version__,
        "django_identity": version("django-identity"),
        "not_seen": _not_seen(report),
    }
    try:
        path.write_text(json.dumps({**about, **asdict(report)}, indent=1))
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {error.strerror}") from None
