"""Erase a person and keep a receipt without personal data: first revoke, then erase, then retry.

What is erased depends on who asks. The person and the operator: the account that they see, with its
identity. The service's signed deletion event (``effects.data_deletion_requested``) and the
command: the subject, wherever it is linked. ``dossier.PLACES`` has the tables, and the policy's
``erase_user`` treats the account.

While a receipt is pending, nobody signs in or links: ``withdrawal.is_being_erased``. Elsewhere a
site's own deletion of a user takes the identity with it (``withdrawal.forget``), and
``upkeep.purge`` deletes what is old.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from django.contrib.auth.models import AbstractBaseUser
from django.db import Error
from django.db.models import Q
from django.utils import timezone

from django_identity import conf, database, policy
from django_identity.exceptions import StorageUnavailable
from django_identity.lifecycle.ground import attempts, withdrawal
from django_identity.lifecycle.ground.attempts import Stop
from django_identity.lifecycle.leaving import audit, dossier
from django_identity.logs import LogEvent, log_trouble, models_in_the_way
from django_identity.models import (
    AccountKept,
    ErasureReceipt,
    LinkedIdentity,
    RevokedBy,
    digest,
)
from django_identity.models.choices import ERROR_LENGTH, Columns
from django_identity.policy import IdentityPolicy

#: The columns of a receipt that is done.
POINTS_AT_NOBODY: Columns = {
    "identity_id": None,
    "user_id": None,
    "next_attempt_at": None,
    "error": "",
}


class AccountStillThere(RuntimeError):
    """The policy deletes accounts, but the row still exists: ``delete`` only hides it."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """What a pending receipt erases, locked.

    ``user``: None if the site has deleted the account. ``kept``: why the account stays, if so.
    """

    user: AbstractBaseUser | None
    identities: list[LinkedIdentity]
    kept: str

    @property
    def person(self) -> dossier.Person:
        """Whose data goes."""
        user_id = None
        if self.user is not None:
            user_id = self.user.pk
        digests = tuple(identity.subject_digest for identity in self.identities)
        return dossier.Person(digests, user_id, account_stays=bool(self.kept))


@dataclass(frozen=True, slots=True)
class Forecast:
    """What an erasure of an account would do now.

    ``account_kept``: why the account stays, or an empty text. ``is_deleted``: its row goes; else it
    is emptied and closed. ``is_made``: it came with an identity. ``counts``: records by table.
    """

    account_kept: str
    is_deleted: bool
    is_made: bool
    counts: Mapping[str, int]

    @property
    def why_kept(self) -> str:
        """The reason in words, for operators."""
        if not self.account_kept:
            return ""
        return str(AccountKept(self.account_kept).label)


def forecast(user: AbstractBaseUser) -> Forecast:
    """What ``erase_account`` would do. The policy decides again when it is done."""
    identities = list(LinkedIdentity.objects.filter(user_id=user.pk))
    is_made = any(identity.made_its_account for identity in identities)
    kept = why_kept(user, is_made=is_made)
    chosen = Chosen(user, identities, kept)
    return Forecast(
        account_kept=kept,
        is_deleted=_policy().erasure == "delete",
        is_made=is_made,
        counts=dossier.count(chosen.person),
    )


def may_erase_themselves(user: AbstractBaseUser) -> bool:
    """Whether the person may erase their account: if the policy allows it.

    Not with a link by code. A code may be another person's, so it gives no say about the account's
    data at the service.
    """
    identity = LinkedIdentity.objects.of_user(user.pk)
    if identity is None or identity.connect_only:
        return False
    return _policy().people_may_erase


def erase_account(user: AbstractBaseUser) -> ErasureReceipt:
    """Erase the account of ``user`` with its identity, for the person or an operator.

    If the site's own erasure code raised an error, the receipt is pending (``erased_at`` is None)
    and the erasure is retried. Do not save ``user`` afterwards: the instance has what was erased.
    Raises ``StorageUnavailable`` if the database failed; ``ValueError`` for anybody but a user.
    """
    database.require_account(user)
    now = timezone.now()
    try:
        with database.atomic():
            identity = LinkedIdentity.objects.locked_of_user(user.pk)
            is_made = False
            if identity is not None:
                is_made = identity.made_its_account
                # A receiver of ``sessions_ended`` may ask again before anything is erased.
                if not withdrawal.is_being_erased(identity):
                    withdrawal.empty(identity, at=now, by=RevokedBy.PERSON)
            receipt = ErasureReceipt.objects.create(
                of_account=True,
                user_id=user.pk,
                account_made=is_made,
                requested_at=now,
                next_attempt_at=now,
            )
        return _try_now(receipt)
    except Error as error:
        # The database's message, and Django's report of it, could contain the person's data.
        raise StorageUnavailable(database.name_of(error)) from None


def erase_subject(subject: str, *, with_audit: bool = False) -> ErasureReceipt:
    """Erase the subject, as the service's deletion event does.

    If it is not linked, the events that are left about it are emptied. Raises
    ``StorageUnavailable``. The receipt is pending as after ``erase_account``.
    """
    subject_digest = digest(conf.application().environment, subject)
    try:
        with database.atomic():
            identity = LinkedIdentity.objects.locked(subject_digest)
            if identity is not None:
                receipt = withdrawal.request_erasure(
                    identity, at=timezone.now(), by=RevokedBy.SITE
                )
        # Behind the transaction, because the first attempt has one of its own.
        if identity is None:
            known = audit.Known(frozenset({subject, subject_digest}))
            return _erase_unlinked(subject_digest, known, with_audit=with_audit)
        return _try_now(receipt, with_audit=with_audit)
    except Error as error:
        raise StorageUnavailable(database.name_of(error)) from None


def _erase_unlinked(
    subject_digest: str, known: audit.Known, *, with_audit: bool
) -> ErasureReceipt:
    """Empty the events that are left about a subject who is not linked, and look for more."""
    with database.atomic():
        receipt = withdrawal.erase_unlinked(subject_digest, requested_at=timezone.now())
        receipt.save()
        withdrawal.announce_erased(receipt)
    if with_audit or _policy().audit_erasures:
        receipt.audit = asdict(audit.search(known))
        receipt.save(update_fields=["audit"])
    return receipt


def _try_now(receipt: ErasureReceipt, *, with_audit: bool = False) -> ErasureReceipt:
    """The receipt after the first attempt. No request waits for an audit: then a worker tries."""
    if with_audit or not _policy().audit_erasures:
        attempt(receipt.pk, with_audit=with_audit)
        receipt.refresh_from_db()
    return receipt


def retry_pending(*, stop: Stop = lambda: False) -> int:
    """Try all pending erasures that are due. Returns the number that are done."""
    pending = ErasureReceipt.objects.filter(erased_at=None)
    return attempts.attempt_due(pending, attempt, stop=stop)


def attempt(receipt_id: int, *, with_audit: bool = False) -> bool:
    """Try one pending erasure, unless another worker has it. Returns whether it is done.

    An audit follows if the policy or the caller wants it.
    """
    receipt: ErasureReceipt | None = attempts.take(
        ErasureReceipt.objects.filter(erased_at=None), receipt_id
    )
    if receipt is None:
        return False
    try:
        sought = _erase(receipt_id, with_audit=with_audit)
    except Exception as error:  # noqa: BLE001  the site's own code may raise anything
        _note_failure(receipt, error)
        return False
    if sought is not None:
        ErasureReceipt.objects.filter(pk=receipt_id).update(
            audit=asdict(audit.search(sought))
        )
    return True


def _note_failure(receipt: ErasureReceipt, error: Exception) -> None:
    """Store and log the class of ``error``, and the models whose rows protect the account's."""
    models = models_in_the_way(error)
    kind = type(error).__name__
    if models:
        kind = f"{kind}: {models}"
    due_at = attempts.next_attempt(receipt.attempts)
    pending = ErasureReceipt.objects.filter(pk=receipt.pk, erased_at=None)
    pending.update(error=kind[:ERROR_LENGTH], next_attempt_at=due_at)
    log_trouble(LogEvent.ERASURE_FAILED, error, row=receipt.pk, models=models)


def _erase(receipt_id: int, *, with_audit: bool) -> audit.Known | None:
    """Erase in one transaction, and close the receipt.

    Returns what to search for, or None if no audit is wanted or another worker has erased them.
    """
    with database.atomic():
        chosen = _choose(ErasureReceipt.objects.get(pk=receipt_id))
        receipt = ErasureReceipt.objects.select_for_update().get(pk=receipt_id)
        if receipt.erased_at is not None:
            return None
        fulfilled = _fulfilled(receipt, chosen)
        user = chosen.user
        kept = chosen.kept
        known = audit.known_of_identities(chosen.identities)
        # The site's own rows may point at the identities, so they go before the account.
        counts = dossier.erase(chosen.person)
        is_erased = False
        if user is not None and not kept:
            known |= audit.known_of_account(user)
            is_erased = erase_user(user)
            if not is_erased:
                kept = AccountKept.POLICY

        done = {**POINTS_AT_NOBODY, "account_kept": kept, "erased_at": timezone.now()}
        ErasureReceipt.objects.filter(pk__in=fulfilled).update(**done)
        receipt.set_columns(done)
        receipt.account_was_gone = user is None and not kept
        receipt.counts = {**counts, "user": int(is_erased)}
        receipt.save()
        withdrawal.announce_erased(receipt)
    withdrawal.note_erased(receipt, chosen.identities)
    if with_audit or _policy().audit_erasures:
        return known
    return None


def _fulfilled(receipt: ErasureReceipt, chosen: Chosen) -> list[int]:
    """Other pending requests that this erasure fulfils: for the same identity or account.

    Tried later, they would find an account that is gone, as if the site had deleted it.
    """
    same = Q(identity__in=chosen.identities)
    if chosen.user is not None and not chosen.kept:
        same |= Q(user=chosen.user)
    pending = ErasureReceipt.objects.filter(same, erased_at=None)
    others = pending.exclude(pk=receipt.pk)
    return list(others.values_list("pk", flat=True))


def _choose(receipt: ErasureReceipt) -> Chosen:
    """What the pending receipt erases, locked: the identities first, then the account.

    After that nobody links another identity to the account until the erasure has committed. One
    that was linked while this waited for the account is in the second look.
    """
    user_id: Any = receipt.user_id
    is_made = receipt.account_made
    if user_id is None and receipt.identity is not None:
        user_id = receipt.identity.user_id
        is_made = receipt.identity.made_its_account
    LinkedIdentity.objects.locked_of_user(user_id)
    user = database.all_users().select_for_update().filter(pk=user_id).first()
    locked = LinkedIdentity.objects.select_for_update()
    # The site may have moved what was asked for to another account, which stays.
    named = locked.filter(pk__in=[receipt.identity_id]).exclude(user_id=user_id)
    identities = [*locked.filter(user_id=user_id), *named]

    # It may be decided since the request.
    kept = receipt.account_kept
    if user is not None and not kept:
        kept = why_kept(user, is_made=is_made)
    if kept and not receipt.of_account:
        # Another identity of the account goes only with the account.
        identities = [row for row in identities if row.pk == receipt.identity_id]
    return Chosen(user, identities, kept)


# What the site's policy decides about the account


def _policy() -> IdentityPolicy:
    return policy.load(conf.application().policy)


def why_kept(user: AbstractBaseUser, *, is_made: bool) -> str:
    """Why the account stays, or an empty text. ``is_made``: it came with an identity."""
    answer = _policy().keeps_account(user, made_for_identity=is_made)
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
    _policy().erase_user(user)
    left: Any = database.all_users().filter(pk=key).first()
    if left is None:
        return True
    if _policy().erasure == "delete":
        raise AccountStillThere
    # An account that was emptied but cannot be disabled is as erased as it can be.
    can_be_disabled = "is_active" in database.field_names(left)
    return not (left.is_active and can_be_disabled)
