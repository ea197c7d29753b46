"""What an operator does to linked identities by hand."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from django.db import transaction
from django.utils import timezone
from django.views.decorators.debug import sensitive_variables

from django_identity import conf, signals, vault
from django_identity.credentials.trace import Trace
from django_identity.exceptions import NoCredential
from django_identity.lifecycle.erasure import erasure
from django_identity.lifecycle.events import consent
from django_identity.lifecycle.operators.credential_check import check
from django_identity.lifecycle.upkeep import jobs
from django_identity.lifecycle.upkeep.claims import Refetched
from django_identity.models import Consent, ErasureReceipt, LinkedIdentity

FETCHED_AT_ONCE = 10
LONGEST_WAIT = 20.0
#: These end with a code on the identity's row; the others say all there is to say.
WITH_CODE = (
    Refetched.FAILED, Refetched.POSTPONED, Refetched.NOT_NOW, Refetched.REAUTHORIZATION_NEEDED,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class RefetchedMany:
    """How it went. ``failed``: the code of an error, or how it ended instead -> identities."""

    fetched: int = 0
    failed: Mapping[str, int] = field(default_factory=dict)
    made_due: int = 0


def refetch_now(identities: Sequence[LinkedIdentity]) -> RefetchedMany:
    """Re-fetch the first ten while somebody waits, for 20 seconds; the others fall due now.

    Must run outside any transaction.
    """
    give_up = time.monotonic() + LONGEST_WAIT
    ended: Counter[str] = Counter()
    done = 0
    for identity in identities[:FETCHED_AT_ONCE]:
        if time.monotonic() > give_up:
            break
        ended[_refetched(identity.pk)] += 1
        done += 1
    fetched = ended.pop(Refetched.STORED, 0)
    return RefetchedMany(fetched, dict(ended), _make_due(identities[done:]))


def _refetched(pk: int) -> str:
    """Re-fetch one, and say how it ended: ``STORED``, or why not."""
    outcome = next(jobs.refetch_these([pk]), Refetched.OVERTAKEN)
    if outcome not in WITH_CODE:
        return outcome
    code = LinkedIdentity.objects.filter(pk=pk).values_list("last_error", flat=True).first()
    return code or outcome


def _make_due(identities: Sequence[LinkedIdentity]) -> int:
    """The sweep finds them within a minute; a revoked identity has nothing to fetch."""
    if not identities:
        return 0
    now = timezone.now()
    return LinkedIdentity.objects.filter(
        pk__in=[identity.pk for identity in identities], consent=Consent.GRANTED
    ).update(refetch_due_at=now, updated_at=now)


@sensitive_variables()
def check_credential(identity: LinkedIdentity) -> Trace:
    """How a verification of the stored credential goes now. Nothing is changed.

    Raises ``NoCredential``, ``SealedValueUnreadable``, ``KeysUnavailable``.
    """
    application = conf.application(identity.application)
    rows = LinkedIdentity.objects.filter(pk=identity.pk)
    sealed = rows.values_list("credential", flat=True).first()
    if not sealed:
        raise NoCredential
    context = identity.sealing_context("credential")
    credential = vault.unseal(sealed, keys=application.encryption_keys, context=context)
    return check(application, credential, subject=identity.subject)


def revoke(identities: Sequence[LinkedIdentity]) -> int:
    """End what was consented, at this site alone and at once; returns how many changed.

    A sign-in that is on its way is refused, as after a revocation by the service.
    """
    return sum(map(_revoked, identities))


def _revoked(identity: LinkedIdentity) -> bool:
    now = timezone.now()
    with transaction.atomic():
        changed = consent.revoke(identity.subject_digest, at=now, now=now)
        if changed:
            identity.refresh_from_db()
            signals.announce(signals.consent_revoked, LinkedIdentity, identity=identity)
    return changed


def erase(identity: LinkedIdentity) -> ErasureReceipt:
    """Erase the person, as their own request to the service would; the receipt is what remains.

    It is pending still (``erased_at`` is None) if the site's part of it failed. Raises
    ``ConfigurationError`` if the application is no longer set up.
    """
    application = conf.application(identity.application)
    # An identity from before the application changed sides is erased where it is.
    there = replace(application, environment=identity.environment)
    return erasure.erase_now(there, identity.subject)
