"""Examine one credential as the site would, and say how far it comes."""

from __future__ import annotations

from datetime import datetime

from django.views.decorators.debug import sensitive_variables

from django_identity.conf import Application
from django_identity.credentials import KeySet, RejectionReason
from django_identity.credentials.trace import Trace, trace
from django_identity.lifecycle.upkeep import key_sets
from django_identity.lifecycle.upkeep.claims import verify_for


@sensitive_variables()
def check(
    application: Application,
    credential: str,
    *,
    subject: str | None = None,
    now: datetime | None = None,
    keys: KeySet | None = None,
) -> Trace:
    """How a verification of ``credential`` for ``application`` goes, with the site's own leeway.

    ``keys``: these and no others; by default the service's current key set, which an unknown
    ``kid`` refreshes once. Nothing is stored. Raises ``KeysUnavailable``.
    """

    def traced(used: KeySet) -> Trace:
        return trace(
            lambda: verify_for(application, credential, subject=subject, keys=used, now=now)
        )

    used = key_sets.current(application) if keys is None else keys
    found = traced(used)
    if keys is not None or found.reason is not RejectionReason.KEY:
        return found
    return traced(key_sets.refreshed(application, unknown_in=used))
