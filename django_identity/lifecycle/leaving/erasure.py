"""Erase a person at once, and keep a receipt without personal data.

The person and the operator ask about the account that they see; the service's signed deletion event
(``effects.data_deletion_requested``) and the command ask about the subject.

- At once, in the transaction that asks (``erase``): the identity with its claims and tokens, the
  sign-ins that it completed (``dossier.PLACES``), what its events say, and its sessions.
- With the account, which the policy's ``erase_user`` treats: sign-ins and codes that it began. The
  default empties and closes the account (``anonymisation``).
- What stays: the account if ``why_kept`` says so; type, times and digests of the events for
  ``EVENT_DAYS``; the subject's lock for a day; the receipt.

Only the site's part may wait: the account, and a row of the identity that the site's code holds.
Then the receipt is pending, and ``pending_erasures`` attempts the rest until it is done, for ever.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from django.contrib.auth.models import AbstractBaseUser
from django.utils import timezone

from django_identity import conf, database, policy
from django_identity.lifecycle.ground import attempts, retention, sessions, withdrawal
from django_identity.lifecycle.leaving import dossier, pending_erasures
from django_identity.logs import LogEvent, log
from django_identity.models import (
    AccountKept,
    AuthorizationRequest,
    Consent,
    ErasureReceipt,
    LinkedIdentity,
    RevokedBy,
    digest,
)


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
    identity = LinkedIdentity.objects.filter(user_id=user.pk).first()
    is_made = identity is not None and identity.made_its_account
    kept = pending_erasures.why_kept(user, is_made=is_made)
    person = dossier.Person.of(identity, user.pk, account_stays=bool(kept))
    return Forecast(
        account_kept=kept,
        is_deleted=policy.of_site().erasure == "delete",
        is_made=is_made,
        counts=dossier.count(person),
    )


def may_erase_themselves(user: AbstractBaseUser) -> bool:
    """Whether the person may erase their account: if the policy allows it.

    Not with a link by code. A code may be another person's, so it gives no say about the account's
    data at the service.
    """
    identity = LinkedIdentity.objects.of_user(user.pk)
    if identity is None or identity.connect_only:
        return False
    return policy.of_site().people_may_erase


def erase(
    identity: LinkedIdentity | None,
    *,
    user_id: Any,
    at: datetime,
    by: RevokedBy,
    of_account: bool = False,
) -> ErasureReceipt:
    """Erase the identity in the caller's transaction, which has locked it and then the user.

    If the site's own code refuses, the row is emptied and revoked in the same transaction, and the
    receipt is pending for it. It is pending for the account, too: ``user_id``, or None if it is
    gone. ``of_account``: the account is asked for. Else a link by code alone gives no say about it.
    """
    receipt = ErasureReceipt(requested_at=at)
    if identity is not None and identity.connect_only and not of_account:
        receipt.account_kept = AccountKept.OLDER
    elif user_id is not None:
        receipt = _pending_of(user_id, at)
    if identity is not None:
        receipt.account_made |= identity.made_its_account
        _erase_identity(receipt, identity, at=at, by=by)

    if receipt.account is None and not receipt.subject_digest:
        receipt.erased_at = timezone.now()
        receipt.account_was_gone = user_id is None
        withdrawal.announce_erased(receipt, user_id=user_id)
    elif not attempts.is_taken(receipt):
        # Else a policy that asks for the erasure that it is part of would call itself without end.
        receipt.next_attempt_at = timezone.now()
    receipt.store()
    # Not a partial: if the log fails, Django 5.2 asks for the function's name.
    database.on_commit(lambda: _log_erased(receipt, identity))
    return receipt


def _pending_of(user_id: Any, at: datetime) -> ErasureReceipt:
    """The pending receipt of the account, which is locked. A second request joins the first."""
    account = database.key_text(user_id)
    pending = ErasureReceipt.objects.select_for_update().filter(account=account)
    return pending.first() or ErasureReceipt(account=account, requested_at=at)


def _erase_identity(
    receipt: ErasureReceipt,
    identity: LinkedIdentity,
    *,
    at: datetime,
    by: RevokedBy,
) -> None:
    """Delete the identity with all that it holds, or else empty it."""
    person = dossier.Person.of(identity, identity.user_id, account_stays=True)
    counts: dict[str, int] = {}
    deletion = partial(dossier.erase, person, counts)
    if not withdrawal.try_deletion(deletion, LogEvent.ERASURE_FAILED, row=identity.pk):
        receipt.subject_digest = identity.subject_digest
        events = retention.with_content(identity.subject_digest)
        counts = {dossier.EVENTS: retention.empty_events(events)}
        requests = AuthorizationRequest.objects.filter(completed_by=identity.user_id)
        requests._raw_delete(database.alias())  # noqa: SLF001  see ``withdrawal.empty``
        was_granted = identity.consent == Consent.GRANTED
        withdrawal.empty(identity, at=at, by=by)
        # Nobody is told twice that sessions ended.
        if was_granted:
            sessions.end_all(identity)
    # A receipt that was joined keeps what it has counted.
    receipt.counts |= {
        table: receipt.counts.get(table, 0) + number for table, number in counts.items()
    }


def _log_erased(receipt: ErasureReceipt, identity: LinkedIdentity | None) -> None:
    """Log which row went. A restored backup brings it back, and the receipt without it."""
    if identity is None:
        log(LogEvent.ERASED, row=receipt.pk)
        return
    linked = identity.created_at.isoformat()
    log(LogEvent.ERASED, row=receipt.pk, identity=identity.pk, linked=linked)


def erase_account(user: AbstractBaseUser) -> ErasureReceipt:
    """Erase the account of ``user`` with its identity, for the person or an operator.

    If the site's own erasure code raised an error, the receipt is pending (``erased_at`` is None)
    and the account is tried again, for ever. Do not save ``user`` afterwards: the instance has what
    was erased.

    Raises:

    - ``ValueError``: ``user`` is no stored account
    """
    database.require_account(user)
    return _erase_and_try(partial(_erase_of_account, user.pk))


def _erase_of_account(user_id: Any) -> ErasureReceipt:
    with database.atomic():
        identity = LinkedIdentity.objects.locked_of_user(user_id)
        if database.locked_account(user_id) is None:
            user_id = None
        return erase(
            identity,
            user_id=user_id,
            at=timezone.now(),
            by=RevokedBy.PERSON,
            of_account=True,
        )


def erase_subject(subject: str) -> ErasureReceipt:
    """Erase the subject, as the service's deletion event does.

    If it is not linked, the events that are left about it are emptied. The receipt is pending as
    after ``erase_account``.
    """
    subject_digest = digest(conf.application().environment, subject)
    return _erase_and_try(partial(_erase_of_subject, subject_digest))


def _erase_of_subject(subject_digest: str) -> ErasureReceipt:
    with database.atomic():
        identity = LinkedIdentity.objects.locked_or_held(subject_digest)
        now = timezone.now()
        if identity is not None:
            database.locked_account(identity.user_id)
            return erase(identity, user_id=identity.user_id, at=now, by=RevokedBy.SITE)
        receipt = withdrawal.erase_unlinked(subject_digest, requested_at=now)
        receipt.store()
        withdrawal.announce_erased(receipt)
        return receipt


def _erase_and_try(work: Callable[[], ErasureReceipt]) -> ErasureReceipt:
    """The receipt of ``work``, after the first attempt at the account."""
    receipt = database.tried_again(work)
    if receipt.erased_at is None:
        pending_erasures.attempt(receipt.pk)
        receipt.refresh_from_db()
    return receipt
