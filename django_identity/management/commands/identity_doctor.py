"""Report problems that an operator can fix."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from django_identity.lifecycle.operators import Level, diagnose


class Command(BaseCommand):
    help = (
        "Find problems with the settings, the key set, the broker and the stored data. "
        "Exits with 1 if an operator must act."
    )
    # The command reports the checks' errors and must not stop at them.
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="Print one JSON object.")

    def handle(self, **options: Any) -> None:
        findings = list(diagnose())
        problems = sum(finding.level is Level.PROBLEM for finding in findings)
        if options["json"]:
            found = {"problems": problems, "findings": [asdict(finding) for finding in findings]}
            self.stdout.write(json.dumps(found))
        else:
            for finding in findings:
                self.stdout.write(f"{finding.level:<8} {finding.check}: {finding.message}")
        if problems:
            raise CommandError(f"{problems} finding(s) need a person.")
