"""The actions of an operator on linked identities."""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from django.utils import timezone

from django_identity import conf, database
from django_identity.exceptions import LinkingRefused
from django_identity.lifecycle import erasure, notices, upkeep, withdrawal
from django_identity.lifecycle.erasure import Preview
from django_identity.lifecycle.upkeep import Refetched
from django_identity.models import Consent, ErasureReceipt, LinkedIdentity, RevokedBy

FETCHED_AT_ONCE = 10
TRIED_AT_ONCE = 10
LONGEST_WAIT = 20.0
#: After these results the identity's row has an error code that says more.
WITH_CODE = (
    Refetched.FAILED, Refetched.OUTAGE, Refetched.NOT_NOW, Refetched.REAUTHORIZATION_NEEDED,
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
    outcome = next(upkeep.refetch_these([pk]), Refetched.OVERTAKEN)
    if outcome not in WITH_CODE:
        return outcome
    code = LinkedIdentity.objects.filter(pk=pk).values_list("last_error", flat=True).first()
    return code or outcome


def _make_due(identities: Sequence[LinkedIdentity]) -> int:
    """Make ``identities`` due, except revoked ones. Upkeep finds them within a minute."""
    if not identities:
        return 0
    now = timezone.now()
    return LinkedIdentity.objects.filter(
        pk__in=[identity.pk for identity in identities], consent=Consent.GRANTED
    ).change(refetch_due_at=now)


def revoke(identities: Sequence[LinkedIdentity]) -> int:
    """Revoke the consent at this site, at once. Returns the number of changed identities.

    A sign-in that is in progress is refused, as after a revocation by the service.
    """
    revoked = 0
    for identity in identities:
        with database.atomic():
            locked = LinkedIdentity.objects.locked(identity.subject_digest)
            if locked is None:
                continue
            withdrawal.revoke(locked, at=timezone.now(), by=RevokedBy.SITE)
            revoked += 1
            if identity.application in conf.aliases():
                application = conf.application(identity.application)
                notices.send_on_commit(application, identity.user, change="revoked")
    return revoked


def disconnect(identities: Sequence[LinkedIdentity]) -> list[LinkedIdentity]:
    """Remove links, so that these identities no longer sign in. Returns those that stay.

    A link that is its account's only way in stays: its owner could not come back.
    """
    kept = []
    for identity in identities:
        try:
            withdrawal.disconnect(identity)
        except LinkingRefused:
            kept.append(identity)
    return kept


def try_erasures(receipts: Sequence[ErasureReceipt]) -> int:
    """Try pending erasures at once, without waiting for their turn. Returns how many are done."""
    keys = [receipt.pk for receipt in receipts[:TRIED_AT_ONCE]]
    pending = ErasureReceipt.objects.filter(pk__in=keys, erased_at=None)
    pending.update(next_attempt_at=timezone.now())
    return sum(erasure.attempt(key) for key in keys)


def erasure_preview(identity: LinkedIdentity) -> Preview:
    """What an erasure of the person would delete. Nothing is changed."""
    application = withdrawal.application_of(identity.application)
    return erasure.preview_of(identity.user, application=application)


def erase(identity: LinkedIdentity) -> ErasureReceipt:
    """Erase the account of the identity with all its identities. Returns the receipt.

    If the site's own erasure code failed, the receipt is pending (``erased_at`` is None). An
    identity of an application that the settings no longer have is erased too.
    """
    application = withdrawal.application_of(identity.application)
    return erasure.erase_account(identity.user, application=application)
