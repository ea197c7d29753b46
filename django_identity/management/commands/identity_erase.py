"""Erase a person by hand, as a deletion event does."""

import json
from typing import Any

from django.core.management.base import CommandError, CommandParser

from django_identity import conf
from django_identity.lifecycle import erasure
from django_identity.lifecycle.operators import interventions
from django_identity.management.command import IdentityCommand
from django_identity.models import Environment, ErasureReceipt

#: The exit code if nothing was found, and something was not read.
UNREAD = 2


class Command(IdentityCommand):
    help = (
        "Revoke and erase all data about a subject. The policy decides about the site's user. "
        "You cannot undo it."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("subject", help="The service's user id.")
        parser.add_argument(
            "--environment",
            choices=Environment.values,
            help="By default that of the settings.",
        )
        parser.add_argument("--yes", action="store_true", help="Do not ask.")
        parser.add_argument(
            "--audit",
            action="store_true",
            help="Search all tables afterwards. Exits with 1 if something is left, and with 2 if "
            "something could not be read.",
        )

    def handle(self, *, subject: str, audit: bool, **options: Any) -> None:
        if not subject.strip():
            raise CommandError("The subject is empty. Nothing was done.")
        environment = options["environment"]
        if environment is None:
            environment = conf.application().environment
        question = "Type the subject again to erase them for good: "
        if not options["yes"] and input(question) != subject:
            raise CommandError("That is another subject. Nothing was done.")

        receipt = erasure.erase_subject(environment, subject, with_audit=audit)
        if receipt.erased_at is None:
            why = " yet"
            if receipt.error:
                why = f": the site's part raised {receipt.error}"
            raise CommandError(
                f"Revoked, but not erased{why}. Erasure {receipt.pk} is pending and is tried again."
            )
        self._write(receipt)
        if elsewhere := interventions.still_linked(subject):
            raise CommandError(
                f"The subject is still linked under {', '.join(elsewhere)}: erase it there, too, by"
                " --environment."
            )
        if receipt.audit is not None:
            _require_clean(receipt.audit)

    def _write(self, receipt: ErasureReceipt) -> None:
        counts = [f"{count} {name}" for name, count in receipt.counts.items() if count]
        erased = ", ".join(counts) or "nothing was held. Did you mistype it?"
        self.stdout.write(f"Erased; receipt {receipt.pk}: {erased}")
        if receipt.account_was_gone:
            self.stdout.write("The account was deleted before: erase_user did not run.")
        if receipt.account_kept:
            why = receipt.get_account_kept_display()
            self.stdout.write(f"The account stays: {why}")
        if receipt.audit is not None:
            self.stdout.write(json.dumps({"audit": receipt.audit}, indent=1))


def _require_clean(audit: dict[str, dict[str, Any]]) -> None:
    if audit["hits"]:
        raise CommandError(
            "The erasure left something. Extend the policy's erase_user."
        )
    if audit["unread"]:
        count = len(audit["unread"])
        places = ", ".join(audit["unread"])
        raise CommandError(
            f"{count} place(s) were not read: {places}. Look there yourself.",
            returncode=UNREAD,
        )
