"""An erasure that is pending: the site's part of it is attempted until it is done.

Two things may wait: the account, which the policy's ``erase_user`` treats, and a row of the
identity, if the site's code refuses its deletion. ``erasure`` has erased the rest. An attempt that
fails is made again for ever: each pause doubles, up to six hours (``ground.backoff``).
Until then nobody links to the account (``withdrawal.waits_for_erasure``).
"""

from typing import Any

from django.contrib.auth.models import AbstractBaseUser
from django.utils import timezone

from django_identity import database, policy
from django_identity.lifecycle.ground import attempts, withdrawal
from django_identity.lifecycle.ground.attempts import Stop
from django_identity.lifecycle.leaving import dossier
from django_identity.logs import LogEvent, log_trouble, models_in_the_way
from django_identity.models import AccountKept, Consent, ErasureReceipt, LinkedIdentity
from django_identity.models.choices import ERROR_LENGTH, Columns

#: The columns of a receipt that is done.
POINTS_AT_NOBODY: Columns = {
    "account": None,
    "subject_digest": "",
    "next_attempt_at": None,
    "error": "",
}


class AccountStillThere(RuntimeError):
    """The policy deletes accounts, but the row still exists: ``delete`` only hides it."""


def retry(*, stop: Stop = lambda: False) -> int:
    """Try all pending erasures that are due. Returns the number that are done."""
    pending = ErasureReceipt.objects.filter(erased_at=None)
    return attempts.attempt_due(pending, attempt, stop=stop)


def attempt(receipt_id: int) -> bool:
    """Try what waits of one erasure, unless another worker has it. Returns whether it is done."""
    receipt: ErasureReceipt | None = attempts.take_row(
        ErasureReceipt.objects.filter(erased_at=None),
        receipt_id,
    )
    if receipt is None:
        return False
    try:
        owner_id = None
        if receipt.subject_digest:
            owner_id = _erase_held(receipt)
        return _erase_what_waits(receipt_id, owner_id)
    except Exception as error:  # noqa: BLE001  the site's own code may raise anything
        _note_failure(receipt, error)
        return False


def _note_failure(receipt: ErasureReceipt, error: Exception) -> None:
    """Store and log the class of ``error``, and the models whose rows protect the account's."""
    models = models_in_the_way(error)
    failure = type(error).__name__
    if models:
        failure = f"{failure}: {models}"
    due_at = attempts.next_attempt(receipt.attempts)
    pending = ErasureReceipt.objects.filter(pk=receipt.pk, erased_at=None)
    pending.update(error=failure[:ERROR_LENGTH], next_attempt_at=due_at)
    log_trouble(LogEvent.ERASURE_FAILED, error, row=receipt.pk, models=models)


def _erase_held(asked: ErasureReceipt) -> Any:
    """Delete the row that the site's own code held, wherever the site has moved it.

    It waits for no account, so the transaction is its own. Returns whose row it was.
    """
    with database.atomic():
        held = LinkedIdentity.objects.locked(asked.subject_digest)
        receipt = ErasureReceipt.objects.select_for_update().get(pk=asked.pk)
        if receipt.subject_digest != asked.subject_digest:
            # Another request has joined, and holds another row.
            return None
        if held is not None and held.consent == Consent.GRANTED:
            # The row is gone, and the subject is linked anew: that consent is a new one.
            held = None
        if held is not None:
            with database.checked_references(*withdrawal.CASCADING):
                dossier.erase(dossier.Person.of(held, None), receipt.counts)
        receipt.subject_digest = ""
        receipt.store()
    if held is None:
        return None
    return held.user_id


def _erase_what_waits(receipt_id: int, owner_id: Any) -> bool:
    """Erase what is left in one transaction, and close the receipt. Returns whether it is closed.

    The locks: identity, user, receipt. The site's own deletion of a user takes them so.
    """
    with database.atomic():
        asked = ErasureReceipt.objects.get(pk=receipt_id)
        user_id = database.key_of(asked.account)
        linked = LinkedIdentity.objects.locked_of_user(user_id)
        user = database.locked_account(user_id)
        receipt = ErasureReceipt.objects.select_for_update().get(pk=receipt_id)
        if receipt.subject_digest:
            return False
        if receipt.erased_at is not None:
            return True
        if linked is not None:
            receipt.account_made |= linked.made_its_account
        kept = receipt.account_kept
        if user is not None and not kept:
            kept = why_kept(user, is_made=receipt.account_made)
        # Before the site's part, which may do more than a rollback takes back.
        with database.checked_references(*withdrawal.CASCADING):
            if not kept:
                dossier.erase(dossier.Person.of(linked, user_id), receipt.counts)
        if user is not None and not kept:
            is_erased = erase_user(user)
            receipt.counts["user"] = int(is_erased)
            if not is_erased:
                kept = AccountKept.POLICY
        receipt.set_columns(POINTS_AT_NOBODY)
        receipt.account_kept = kept
        receipt.account_was_gone = user is None and not kept
        receipt.erased_at = timezone.now()
        receipt.store()
        if user_id is None:
            user_id = owner_id
        withdrawal.announce_erased(receipt, user_id=user_id)
        return True


# What the site's policy decides about the account


def why_kept(user: AbstractBaseUser, *, is_made: bool) -> str:
    """Why the account stays, or an empty text. ``is_made``: it came with an identity."""
    answer = policy.of_site().keeps_account(user, made_for_identity=is_made)
    if not policy.is_yes(answer, "keeps_account"):
        return ""
    if policy.is_privileged(user):
        return AccountKept.PRIVILEGED
    if is_made:
        return AccountKept.POLICY
    return AccountKept.OLDER


def erase_user(user: AbstractBaseUser) -> bool:
    """Let the policy erase the account. Returns whether it is erased.

    Raises ``AccountStillThere``.
    """
    key = user.pk
    policy.of_site().erase_user(user)
    left: Any = database.all_users().filter(pk=key).first()
    if left is None:
        return True
    if policy.of_site().erasure == "delete":
        raise AccountStillThere
    # An account that was emptied but cannot be disabled is as erased as it can be.
    can_be_disabled = "is_active" in database.field_names(left)
    return not (left.is_active and can_be_disabled)
