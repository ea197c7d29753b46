"""Verify one credential as the site would, and print what it proves."""

import json
import sys
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from django_identity import conf
from django_identity.credentials import KeySet
from django_identity.credentials.form import MAX_CHARACTERS
from django_identity.exceptions import CredentialRejected
from django_identity.instruments.verify import facts_of
from django_identity.management.command import IdentityCommand

STANDARD_INPUT = "-"


class Command(IdentityCommand):
    help = (
        "Verify a credential with the settings and print what it proves. "
        "Exits with 1 and the reason if it is rejected. Never prints the credential."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "file",
            nargs="?",
            default=STANDARD_INPUT,
            help="The file with the credential, by default standard input.",
        )
        parser.add_argument(
            "--jwks",
            metavar="FILE",
            help="Use this key set, without asking the service.",
        )
        parser.add_argument("--subject", help="The required subject.")

    def handle(
        self,
        *,
        file: str,
        jwks: str | None,
        subject: str | None,
        **_options: Any,
    ) -> None:
        credential = _read(file).decode("utf-8", "replace").strip()
        keys = None if jwks is None else KeySet.from_text(_read(jwks))
        registered = conf.application()
        try:
            facts = facts_of(credential, registered, subject=subject, keys=keys)
        except CredentialRejected as error:
            raise CommandError(f"rejected: {error.reason}") from None
        # In ASCII, so that no control character of the issuer's texts gets out.
        self.stdout.write(json.dumps(facts, indent=2))


def _read(name: str) -> bytes:
    """Read the file up to a limit far above any credential and key set."""
    enough = 2 * MAX_CHARACTERS
    try:
        if name == STANDARD_INPUT:
            return sys.stdin.buffer.read(enough)
        with Path(name).open("rb") as file:
            return file.read(enough)
    except OSError as error:
        raise CommandError(f"{name} cannot be read: {error.strerror}") from None
