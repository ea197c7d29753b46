"""Report problems that an operator can fix."""

import json
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import Error

from django_identity.exceptions import ConfigurationError
from django_identity.instruments.signs import Finding, Severity, diagnose, figures


class Command(BaseCommand):
    help = (
        "Find problems with the settings, the service, the broker, the cache, the database and "
        "the stored data, each with its remedy. Exits with 1 if an operator must act."
    )
    # The command reports the checks' errors and must not stop at them.
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--json",
            action="store_true",
            help="Print one JSON object.",
        )

    def handle(self, **options: Any) -> None:
        findings = list(diagnose())
        problems = sum(finding.level is Severity.PROBLEM for finding in findings)
        if options["json"]:
            report = {
                "problems": problems,
                "figures": _figures(),
                "findings": [asdict(finding) for finding in findings],
            }
            self.stdout.write(json.dumps(report))
        else:
            for finding in findings:
                self._write(finding)
        if problems:
            raise CommandError(f"{problems} finding(s) need a person.")

    def _write(self, finding: Finding) -> None:
        styles = {
            Severity.FINE: self.style.SUCCESS,
            Severity.WARNING: self.style.WARNING,
            Severity.PROBLEM: self.style.ERROR,
        }
        level = styles[finding.level](f"{finding.level:<8}")
        self.stdout.write(f"{level} {finding.check}: {finding.message}")
        if finding.remedy:
            self.stdout.write(f"{'':8} -> {finding.remedy}")


def _figures() -> dict[str, float]:
    """Empty while the database does not answer or the settings are unusable: both are findings."""
    with suppress(Error, ConfigurationError):
        return figures()
    return {}
