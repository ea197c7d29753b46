"""Re-encrypt the stored tokens under the first of the ``ENCRYPTION_KEYS``."""

from collections import Counter
from typing import Any

from django.core.management.base import CommandError, CommandParser
from tqdm import tqdm

from django_identity.lifecycle.operators import rotation
from django_identity.management.command import INTERRUPTED, IdentityCommand
from django_identity.models import TokenGrant


class Command(IdentityCommand):
    help = (
        "Re-encrypt the tokens of every grant under the first of the ENCRYPTION_KEYS. May run "
        "beside the site. Ctrl-C stops it, and it says where to go on."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--after", type=int, default=0, help="Go on behind this grant.")

    def handle(self, *, after: int, **_options: Any) -> None:
        fates = Counter({rotation.RESEALED: 0})
        total = TokenGrant.objects.filter(pk__gt=after).count()
        try:
            with tqdm(total=total, disable=None) as progress:
                for last, batch in rotation.rotate_keys(after=after):
                    after = last
                    fates.update(batch)
                    progress.update(batch.total())
        except KeyboardInterrupt:
            said = f"Stopped. To go on: identity_rotate_keys --after {after}"
            raise CommandError(said, returncode=INTERRUPTED) from None
        finally:
            for fate, count in fates.items():
                self.stdout.write(f"{count} grant(s) {fate}")
        if fates[rotation.UNREADABLE]:
            raise CommandError(
                "Some tokens are opened by no key and left as they are. If no key is missing from "
                "ENCRYPTION_KEYS, these people have to sign in again."
            )
