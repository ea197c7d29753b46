"""Verify one credential as the site would, and record the result of every check."""

from __future__ import annotations

from datetime import datetime

from django.views.decorators.debug import sensitive_variables

from django_identity.conf import Application
from django_identity.credentials import KeySet, RejectionReason
from django_identity.credentials.trace import Trace, trace
from django_identity.lifecycle.upkeep import key_sets
from django_identity.lifecycle.upkeep.key_sets import verify_for
from django_identity.service import ServiceClient
from django_identity.service.answers import ClaimsVerdict


@sensitive_variables()
def check(
    application: Application,
    credential: str,
    *,
    subject: str | None = None,
    now: datetime | None = None,
    keys: KeySet | None = None,
) -> Trace:
    """Verify ``credential`` for ``application`` with the site's leeway. Nothing is stored.

    ``keys``: use only these keys. By default the service's current key set is used, and an unknown
    ``kid`` refreshes it once. Raises ``KeysUnavailable``.
    """

    def check_with(used: KeySet) -> Trace:
        return trace(
            lambda: verify_for(application, credential, subject=subject, keys=used, now=now)
        )

    used = key_sets.current(application) if keys is None else keys
    found = check_with(used)
    if keys is not None or found.reason is not RejectionReason.KEY:
        return found
    return check_with(key_sets.refresh(application, unknown_in=used))


@sensitive_variables()
def ask_service(application: Application, credential: str) -> ClaimsVerdict:
    """The service's own verdict on ``credential``. Raises a ``ServiceError``."""
    return ServiceClient(application).verify_claims(credential)
