"""The actions of an operator on linked identities, and the check of a credential."""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from django.utils import timezone
from django.views.decorators.debug import sensitive_variables

from django_identity import conf, database, signals, vault
from django_identity.conf import Application
from django_identity.credentials import KeySet, RejectionReason
from django_identity.credentials.trace import Trace, trace
from django_identity.exceptions import NoCredential
from django_identity.lifecycle import arrival, events
from django_identity.lifecycle.erasure import Preview, erasure, preview_of
from django_identity.lifecycle.upkeep import jobs, key_sets
from django_identity.lifecycle.upkeep.claims import Refetched
from django_identity.lifecycle.upkeep.key_sets import verify_for
from django_identity.models import Consent, ErasureReceipt, LinkedIdentity

FETCHED_AT_ONCE = 10
LONGEST_WAIT = 20.0
#: After these results the identity's row has an error code that says more.
WITH_CODE = (
    Refetched.FAILED, Refetched.POSTPONED, Refetched.NOT_NOW, Refetched.REAUTHORIZATION_NEEDED,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class RefetchedMany:
    """The results. ``failed``: error code, or other result -> number of identities."""

    fetched: int = 0
    failed: Mapping[str, int] = field(default_factory=dict)
    made_due: int = 0


def refetch_now(identities: Sequence[LinkedIdentity]) -> RefetchedMany:
    """Re-fetch the first ten identities, for 20 seconds at most; make the others due now.

    Must run outside any transaction.
    """
    give_up = time.monotonic() + LONGEST_WAIT
    ended: Counter[str] = Counter()
    done = 0
    for identity in identities[:FETCHED_AT_ONCE]:
        if time.monotonic() > give_up:
            break
        ended[_refetch(identity.pk)] += 1
        done += 1
    fetched = ended.pop(Refetched.STORED, 0)
    return RefetchedMany(fetched, dict(ended), _make_due(identities[done:]))


def _refetch(pk: int) -> str:
    """Re-fetch one identity. Return ``STORED`` or the reason of the failure."""
    outcome = next(jobs.refetch_these([pk]), Refetched.OVERTAKEN)
    if outcome not in WITH_CODE:
        return outcome
    code = LinkedIdentity.objects.filter(pk=pk).values_list("last_error", flat=True).first()
    return code or outcome


def _make_due(identities: Sequence[LinkedIdentity]) -> int:
    """Make ``identities`` due, except revoked ones. The sweep finds them within a minute."""
    if not identities:
        return 0
    now = timezone.now()
    return LinkedIdentity.objects.filter(
        pk__in=[identity.pk for identity in identities], consent=Consent.GRANTED
    ).update(refetch_due_at=now, updated_at=now)


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
def check_credential(identity: LinkedIdentity) -> Trace:
    """Verify the stored credential with the current keys. Nothing is changed.

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
    """Revoke the consent at this site, at once. Returns the number of changed identities.

    A sign-in that is in progress is refused, as after a revocation by the service.
    """
    revoked = []
    for identity in identities:
        with database.atomic():
            changed = events.revoke(identity.subject_digest)
            if changed is not None:
                signals.announce(signals.consent_revoked, LinkedIdentity, identity=changed)
                revoked.append(identity)
    for alias in conf.aliases():
        owners = [identity.user for identity in revoked if identity.application == alias]
        arrival.send_change_on_commit(conf.application(alias), owners, change="revoked")
    return len(revoked)


def erasure_preview(identity: LinkedIdentity) -> Preview:
    """What an erasure of the person would delete. Nothing is changed."""
    there = erasure.application_of_rows(identity.application, environment=identity.environment)
    return preview_of(identity, application=there)


def erase(identity: LinkedIdentity) -> ErasureReceipt:
    """Erase the person, as their own deletion request would. Returns the receipt.

    If the site's own erasure code failed, the receipt is pending (``erased_at`` is None). An
    identity of an application that the settings no longer have is erased too.
    """
    there = erasure.application_of_rows(identity.application, environment=identity.environment)
    return erasure.erase_now(there, identity.subject)
