"""Report problems that an operator can fix."""

import json
from argparse import BooleanOptionalAction
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import Error

from django_identity import conf
from django_identity.exceptions import ConfigurationError
from django_identity.gates import site_map
from django_identity.lifecycle.operators.doctor import Finding, Level, diagnose, figures


class Command(BaseCommand):
    help = (
        "Find problems with the settings, the service, the broker, the cache, the database and "
        "the stored data, each with its cause and remedy. Exits with 1 if an operator must act."
    )
    # The command reports the checks' errors and must not stop at them.
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--json", action="store_true", help="Print one JSON object."
        )
        parser.add_argument(
            "--probe",
            action=BooleanOptionalAction,
            help="Ask the service with credentials of nobody, read the newest person's credential, "
            "and deliver an unsigned event to the site's own webhook: it tells whether addresses, "
            "client and issuer are right. By default only the service is asked, unless "
            "the site is live.",
        )

    def handle(self, **options: Any) -> None:
        findings = [*diagnose(probe=options["probe"]), *_unused_scopes()]
        problems = sum(finding.level is Level.PROBLEM for finding in findings)
        if options["json"]:
            report = {
                "problems": problems,
                "figures": _figures(),
                "findings": [asdict(finding) for finding in findings],
            }
            self.stdout.write(json.dumps(report))
        else:
            self._write(findings)
        if problems:
            raise CommandError(f"{problems} finding(s) need a person.")

    def _write(self, findings: list[Finding]) -> None:
        for finding in findings:
            self.stdout.write(f"{finding.level:<8} {finding.check}: {finding.message}")
            if finding.remedy:
                self.stdout.write(f"{'':8} -> {finding.remedy}")


def _unused_scopes() -> Iterator[Finding]:
    """The doctor lies below the gates, so it does not know their map."""
    if not conf.is_usable():
        return
    for scope in site_map.unused_scopes():
        message = f"no gate of the map asks for {scope} of LATER_SCOPES"
        remedy = (
            "Leave it out, unless a template or code of your own asks for it: identity_gates lists"
            " what the map does not see."
        )
        yield Finding("scopes", Level.WARNING, message, remedy)


def _figures() -> dict[str, float]:
    """Empty while the database does not answer or the settings are unusable: both are findings."""
    with suppress(Error, ConfigurationError):
        return figures()
    return {}
