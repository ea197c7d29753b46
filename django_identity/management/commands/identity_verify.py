"""Verify one credential as the site would, and print what it proves."""

import json
import sys
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.views.decorators.debug import sensitive_variables

from django_identity import conf
from django_identity.credentials import KeySet, RejectionReason, VerifiedCredential
from django_identity.credentials.form import MAX_CHARACTERS
from django_identity.exceptions import CredentialRejected
from django_identity.lifecycle import operators
from django_identity.management.command import IdentityCommand, moment
from django_identity.service import ServiceClient
from django_identity.service.answers import ClaimsVerdict

STANDARD_INPUT = "-"


class Command(IdentityCommand):
    help = (
        "Verify a credential with the settings of an application and print what it proves. "
        "Exits with 1 and the reason if it is rejected. Never prints the credential."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "file",
            nargs="?",
            default=STANDARD_INPUT,
            help="The file with the credential, by default standard input.",
        )
        parser.add_argument("--application", default=conf.DEFAULT_ALIAS, help="Its alias.")
        parser.add_argument(
            "--jwks", metavar="FILE", help="Use this key set, without asking the service."
        )
        parser.add_argument(
            "--ask-service", action="store_true", help="Ask the service for its verdict too."
        )
        parser.add_argument("--subject", help="The required subject.")
        parser.add_argument("--now", type=moment, help="Verify as of this ISO 8601 time (UTC).")

    @sensitive_variables()
    def handle(self, **options: Any) -> None:
        application, jwks = conf.application(options["application"]), options["jwks"]
        credential = _read(options["file"]).decode("utf-8", "replace").strip()
        rejected = None
        try:
            proven = operators.check(
                application,
                credential,
                subject=options["subject"],
                now=options["now"],
                keys=None if jwks is None else KeySet.from_text(_read(jwks)),
            )
            self._show(proven)
        except CredentialRejected as error:
            rejected = error.reason
        if options["ask_service"]:
            self._compare(rejected, ServiceClient(application).verify_claims(credential))
        if rejected is not None:
            raise CommandError(f"rejected: {rejected}: {rejected.explanation}")

    def _show(self, proven: VerifiedCredential) -> None:
        """Write what is proven. The issuer's texts are ASCII, so no control character gets out."""
        facts: dict[str, object] = {
            "subject": proven.subject,
            "environment": proven.environment,
            "key": proven.kid,
            "issued": proven.issued_at and proven.issued_at.isoformat(),
            "expires": proven.expires_at.isoformat(),
        }
        claims = proven.claims_as_json()
        facts |= {f"claim {json.dumps(name)}": value for name, value in claims.items()}
        self.stdout.write("verified:")
        for label, value in facts.items():
            self.stdout.write(f"  {label}: {json.dumps(value)}")

    def _compare(self, reason: RejectionReason | None, said: ClaimsVerdict) -> None:
        """Write both verdicts, one below the other, and end with the service's if it is a no."""
        by_service = "valid" if said.valid else f"not valid: {said.reason or 'no reason given'}"
        by_site = "valid" if reason is None else f"not valid: {reason}"
        self.stdout.write(f"\n  this site    {by_site}\n  the service  {by_service}")
        if reason is None and not said.valid:
            raise CommandError(f"the service says {by_service}")


def _read(name: str) -> bytes:
    """Read the file up to a limit that no credential and no key set reaches."""
    enough = 2 * MAX_CHARACTERS
    try:
        if name == STANDARD_INPUT:
            return sys.stdin.buffer.read(enough)
        with Path(name).open("rb") as file:
            return file.read(enough)
    except OSError as error:
        raise CommandError(f"{name} cannot be read: {error.strerror}") from None
