"""Re-encrypt the stored tokens under the first of the ``ENCRYPTION_KEYS``."""

from collections import Counter
from typing import Any

from django.core.management.base import CommandError, CommandParser
from tqdm import tqdm

from django_identity.lifecycle.operators import rotation
from django_identity.lifecycle.operators.rotation import Rotated
from django_identity.management.command import INTERRUPTED, IdentityCommand


class Command(IdentityCommand):
    help = (
        "Re-encrypt the tokens of every grant under the first of the ENCRYPTION_KEYS. A new key "
        "comes in two deploys: first as the last of the keys, on every machine, then as the "
        "first. Run this after the second, and remove the old key an hour later. May run beside "
        "the site. Ctrl-C stops it; run it again then."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--forget-unreadable",
            action="store_true",
            help="End the grants whose tokens no key opens, if the key is lost for good. These "
            "people have to sign in again. You cannot undo it.",
        )
        parser.add_argument("--yes", action="store_true", help="Do not ask.")

    def handle(self, *, forget_unreadable: bool, yes: bool, **_options: Any) -> None:
        if forget_unreadable and not yes:
            question = (
                "Is the key lost for good? Type forget to end what no key opens: "
            )
            if input(question) != "forget":
                raise CommandError("Nothing was done.")

        fates = Counter({Rotated.RESEALED: 0})
        total = rotation.usable_grants().count()
        try:
            with tqdm(total=total, disable=None) as progress:
                for batch in rotation.rotate_keys(forget_unreadable=forget_unreadable):
                    fates.update(batch)
                    progress.update(batch.total())
        except KeyboardInterrupt:
            raise CommandError(
                "Stopped. Run it again: it begins anew.",
                returncode=INTERRUPTED,
            ) from None
        finally:
            for fate, count in fates.items():
                self.stdout.write(f"{count} grant(s) {fate}")

        if fates[Rotated.UNREADABLE]:
            raise CommandError(
                "Some tokens are opened by no key and left as they are. Put the missing key back "
                "into ENCRYPTION_KEYS, behind the current one. If it is lost for good, "
                "--forget-unreadable ends these grants.",
            )
        if fates[Rotated.STRAY]:
            raise CommandError(
                "Some tokens are of the environment that the settings do not have.",
            )
