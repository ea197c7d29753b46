"""Delete stored events and started sign-ins that are older than the settings allow."""

from typing import Any

from django_identity.lifecycle import erasure, upkeep
from django_identity.management.command import BatchCommand


class Command(BatchCommand):
    help = (
        "Empty the payloads of events older than EVENT_PAYLOAD_DAYS, reduce events older than "
        "EVENT_DAYS to a digest, and delete expired sign-ins and Connect redemptions. "
        "May run beside the site. Ctrl-C stops it."
    )
    batch = erasure.BATCH

    def handle(self, *, batch: int, **_options: Any) -> None:
        total = erasure.count_purgeable()
        with upkeep.record_run(upkeep.Job.PURGE), self.progress(total=total) as progress:
            purged = erasure.purge(size=batch, progress=progress.update)
        self.stdout.write(
            f"{purged.payloads} payload(s) emptied, {purged.events} event(s) reduced to a digest, "
            f"{purged.requests} started sign-in(s) and redemption(s) and "
            f"{purged.identities} revoked identity(ies) deleted"
        )
