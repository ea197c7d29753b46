"""Make the person's claims due and wait for the worker: ``python -m example_project.demo.refetch``.

Exits with 0 if a newer credential arrives in time.
"""

from __future__ import annotations

import sys
import time
from datetime import datetime

import django
from django.apps import apps
from django.utils import timezone

# A failed re-fetch, which can happen on a busy machine, is retried after a minute.
WITHIN = 90.0


def credential_came_after(moment: datetime) -> bool:
    """Whether a credential is stored that was issued after ``moment``."""
    identities = apps.get_model("django_identity", "LinkedIdentity").objects
    return bool(identities.filter(credential_issued_at__gt=moment).exists())


def refetched() -> bool:
    asked_at = timezone.now()
    # Credentials have time-stamps in whole seconds, rounded down, so wait for the next second.
    time.sleep(1 - time.time() % 1)
    identities = apps.get_model("django_identity", "LinkedIdentity").objects
    identities.update(refetch_due_at=timezone.now())
    give_up = time.monotonic() + WITHIN
    while time.monotonic() < give_up:
        if credential_came_after(asked_at):
            return True
        time.sleep(0.2)
    return False


if __name__ == "__main__":
    django.setup()
    sys.exit(0 if refetched() else 1)
