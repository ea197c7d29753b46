"""Erase a person by hand, as a deletion event does."""

import json
from dataclasses import asdict
from datetime import datetime
from typing import Any

from django.core.management.base import CommandError, CommandParser
from tqdm import tqdm

from django_identity import conf
from django_identity.instruments import audit
from django_identity.instruments.audit import Findings, Known
from django_identity.lifecycle.leaving import erasure
from django_identity.lifecycle.operators import interventions
from django_identity.management.command import IdentityCommand
from django_identity.models import Environment, ErasureReceipt, LinkedIdentity

#: The exit code if nothing was found, and something was not read.
UNREAD = 2


class Command(IdentityCommand):
    help = (
        "Revoke and erase all data about a subject. The policy decides about the site's user. "
        "You cannot undo it."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        chosen = parser.add_mutually_exclusive_group(required=True)
        chosen.add_argument("subject", nargs="?", help="The service's user id.")
        chosen.add_argument(
            "--links-of",
            choices=Environment.values,
            help="Delete the links of the other environment instead, as a copy of the live "
            "database has them. Accounts stay.",
        )
        chosen.add_argument(
            "--identity",
            type=int,
            metavar="KEY",
            help="The row that a restored backup brought back, by the log line of its erasure.",
        )
        parser.add_argument(
            "--linked",
            type=datetime.fromisoformat,
            metavar="TIME",
            help="When the row of --identity was made, by the same line. Another row of the key "
            "stays.",
        )
        parser.add_argument("--yes", action="store_true", help="Do not ask.")
        parser.add_argument(
            "--audit",
            action="store_true",
            help="Search all tables afterwards. Exits with 1 if something is left, and with 2 if "
            "something could not be read.",
        )

    def handle(
        self,
        *,
        subject: str | None,
        links_of: str | None,
        yes: bool,
        **options: Any,
    ) -> None:
        if (options["identity"] is None) != (options["linked"] is None):
            raise CommandError("--identity and --linked go together.")
        if options["identity"] is not None:
            subject = interventions.subject_of(
                options["identity"],
                linked_at=options["linked"],
            )
            if subject is None:
                raise CommandError("There is no such identity. Nothing was done.")
        named = links_of or subject or ""
        if not named.strip():
            raise CommandError("The subject is empty. Nothing was done.")
        if links_of == conf.application().environment:
            raise CommandError(f"This site is {links_of}. Nothing was done.")
        question = "Type the subject, or the environment, again to erase for good: "
        if not yes and input(question) != named:
            raise CommandError("That is another one. Nothing was done.")
        if links_of:
            self._delete_links(links_of)
        else:
            self._erase(named, with_audit=options["audit"])

    def _delete_links(self, environment: str) -> None:
        rows = LinkedIdentity.objects.filter(environment=environment)
        count = rows.count()
        with tqdm(total=count, disable=None) as progress:
            for deleted in interventions.delete_links(rows):
                progress.update(deleted)
        self.stdout.write(f"Deleted {count} link(s) of {environment}.")

    def _erase(self, subject: str, *, with_audit: bool) -> None:
        known = Known()
        if with_audit:
            # Afterwards nobody knows any more what to search for.
            known = audit.known_of_subject(subject)
        receipt = erasure.erase_subject(subject)
        if receipt.erased_at is None:
            raised = f", which raised {receipt.error}" if receipt.error else ""
            raise CommandError(
                f"Erased, but for the site's part{raised}. Erasure {receipt.pk} is pending and is"
                " tried again.",
            )
        self._write(receipt)
        if with_audit:
            if receipt.account_kept:
                # The owner's name is still theirs.
                known = audit.known_of_subject(subject)
            found = audit.search(known)
            self.stdout.write(json.dumps({"audit": asdict(found)}, indent=1))
            _require_clean(found)

    def _write(self, receipt: ErasureReceipt) -> None:
        counts: list[str] = []
        for name, count in receipt.counts.items():
            if count:
                counts.append(f"{count} {name}")
        erased = ", ".join(counts) or "nothing was held. Did you mistype it?"
        self.stdout.write(f"Erased; receipt {receipt.pk}: {erased}")
        if receipt.account_was_gone:
            self.stdout.write("The account was deleted before: erase_user did not run.")
        if receipt.account_kept:
            why = receipt.get_account_kept_display()
            self.stdout.write(f"The account stays: {why}")


def _require_clean(found: Findings) -> None:
    if found.hits:
        raise CommandError(
            "The erasure left something. Extend the policy's erase_user.",
        )
    if found.unread:
        count = len(found.unread)
        places = ", ".join(found.unread)
        raise CommandError(
            f"{count} place(s) were not read: {places}. Look there yourself.",
            returncode=UNREAD,
        )
