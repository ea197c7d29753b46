"""Re-encrypt the stored tokens under the first of the ``ENCRYPTION_KEYS``."""

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
        done: list[rotation.Batch] = []
        total = TokenGrant.objects.filter(pk__gt=after).count()
        try:
            with tqdm(total=total, disable=None) as progress:
                for batch in rotation.rotate_keys(after=after):
                    done.append(batch)
                    progress.update(batch.seen)
        except KeyboardInterrupt:
            last = done[-1].last if done else after
            said = f"Stopped. To go on: identity_rotate_keys --after {last}"
            raise CommandError(said, returncode=INTERRUPTED) from None
        finally:
            self._report(done)
        if any(batch.unreadable for batch in done):
            raise CommandError(
                "Some tokens are opened by no key and left as they are. If no key is missing from "
                "ENCRYPTION_KEYS, these people have to sign in again."
            )

    def _report(self, done: list[rotation.Batch]) -> None:
        resealed, overtaken = sum(b.resealed for b in done), sum(b.overtaken for b in done)
        self.stdout.write(f"{resealed} grant(s) re-encrypted, {overtaken} renewed meanwhile")
        if unreadable := sum(batch.unreadable for batch in done):
            self.stdout.write(f"{unreadable} opened by no key")
