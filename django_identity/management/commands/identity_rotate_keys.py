"""Re-encrypt all stored secrets under the first of the ``ENCRYPTION_KEYS``."""

from typing import Any

from django.core.management.base import CommandError

from django_identity.lifecycle import upkeep
from django_identity.management.command import BatchCommand


class Command(BatchCommand):
    help = (
        "Re-encrypt every stored token, credential and verifier under the first of the "
        "ENCRYPTION_KEYS. May run beside the site. Ctrl-C stops it; run it again to continue."
    )
    batch = upkeep.ROWS_AT_ONCE

    def handle(self, *, batch: int, **_options: Any) -> None:
        found: list[upkeep.Batch] = []
        try:
            with self.progress(total=upkeep.count_outdated()) as progress:
                for done in upkeep.rotate_keys(size=batch):
                    found.append(done)
                    progress.update(done.seen)
        finally:
            self._report(found)
        if any(done.unreadable for done in found):
            raise CommandError("Some values are opened by no key.")

    def _report(self, found: list[upkeep.Batch]) -> None:
        for column in upkeep.COLUMNS:
            batches = [done for done in found if done.column == column.label]
            resealed = sum(done.resealed for done in batches)
            overtaken = sum(done.overtaken for done in batches)
            self.stdout.write(f"{column.label}: {resealed} re-encrypted, {overtaken} overtaken")
            if unreadable := sum(done.unreadable for done in batches):
                self.stderr.write(
                    f"{column.label}: {unreadable} opened by no key and left as they are; "
                    "if no key is missing from ENCRYPTION_KEYS, these persons have to sign in again"
                )
