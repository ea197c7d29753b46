"""The actions of an operator on linked identities and receipts."""

from collections.abc import Iterable, Iterator
from datetime import datetime

from django.contrib.auth.models import AbstractBaseUser
from django.db.models import QuerySet
from django.utils import timezone

from django_identity import database
from django_identity.exceptions import LinkingRefused
from django_identity.lifecycle.ground import notices, withdrawal
from django_identity.lifecycle.leaving import disconnecting, erasure, pending_erasures
from django_identity.lifecycle.minute import upkeep
from django_identity.lifecycle.minute.upkeep import Refetched
from django_identity.models import Consent, ErasureReceipt, LinkedIdentity, RevokedBy

#: So few that no lock is held for long.
LINKS_AT_ONCE = 200


def refetch(identity: LinkedIdentity) -> str:
    """Re-fetch now. Returns why it failed, as an error code, or an empty text.

    Must run outside any transaction.
    """
    outcome = next(upkeep.refetch_these([identity.pk]), Refetched.OVERTAKEN)
    if outcome is Refetched.STORED:
        return ""
    if outcome is Refetched.OVERTAKEN:
        return outcome
    stored = LinkedIdentity.objects.filter(pk=identity.pk)
    code = stored.values_list("last_error", flat=True).first()
    return code or outcome


def revoke(identities: Iterable[LinkedIdentity]) -> int:
    """Revoke the consent at this site, at once. Returns the number of changed identities.

    A sign-in that is in progress is refused, as after a revocation by the service. Of a consent
    that was over before, nobody is told that the site has ended it.
    """
    revoked = 0
    for identity in identities:
        with database.atomic():
            locked = LinkedIdentity.objects.locked_row(identity)
            if locked is None:
                continue
            user = withdrawal.user_of(locked)
            is_over = locked.consent == Consent.REVOKED
            by = RevokedBy.SITE
            if is_over and locked.revoked_by:
                by = RevokedBy(locked.revoked_by)
            withdrawal.revoke(locked, at=timezone.now(), by=by)
            revoked += 1
            if is_over:
                continue
            notices.send_on_commit(user, change="revoked")
    return revoked


def disconnect(identities: Iterable[LinkedIdentity]) -> list[LinkedIdentity]:
    """Remove links, so that these identities no longer sign in. Returns those that stay.

    A link that is its account's only way in stays: its owner could not come back.
    """
    kept = []
    for identity in identities:
        try:
            disconnecting.disconnect(identity)
        except LinkingRefused:
            kept.append(identity)
    return kept


def try_erasures(pending: Iterable[ErasureReceipt]) -> int:
    """Try erasures at once, ahead of their turn. Returns how many are done."""
    keys = [receipt.pk for receipt in pending]
    due = ErasureReceipt.objects.filter(pk__in=keys, erased_at=None)
    due.update(next_attempt_at=timezone.now())
    return sum(pending_erasures.attempt(key) for key in keys)


def concerned_by(receipt: ErasureReceipt) -> AbstractBaseUser | None:
    """The account that waits for a pending erasure, if it is still there."""
    key = database.key_of(receipt.account)
    return database.all_users().filter(pk=key).first()


def delete_links(rows: QuerySet[LinkedIdentity]) -> Iterator[int]:
    """Delete these links. The accounts stay. Yields the number of each step."""
    while keys := list(rows.values_list("pk", flat=True)[:LINKS_AT_ONCE]):
        with database.atomic():
            LinkedIdentity.objects.filter(pk__in=keys).delete()
        yield len(keys)


def subject_of(key: int, *, linked_at: datetime) -> str | None:
    """The subject of the row with this key, if it was made at this time."""
    rows = LinkedIdentity.objects.filter(pk=key, created_at=linked_at)
    return rows.values_list("subject", flat=True).first()


def erase(identity: LinkedIdentity) -> ErasureReceipt:
    """Erase the account of the identity. Returns the receipt.

    If the site's own erasure code failed, the receipt is pending (``erased_at`` is None). An
    identity of the other environment is erased too.
    """
    return erasure.erase_account(withdrawal.user_of(identity))
