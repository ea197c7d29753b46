"""Erase a person and keep a receipt without personal data: first revoke, then erase, then retry.

What is erased depends on who asks. The person and the operator: the account that they see, with all
its identities. The service's signed deletion event (``events.data_deletion_requested``) and the
command: the subject, wherever it is linked. ``dossier.PLACES`` has the tables, and the policy's
``erase_user`` treats the account.
"""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from django.contrib.auth.models import AbstractBaseUser
from django.db import DatabaseError, InterfaceError
from django.db.models import QuerySet
from django.utils import timezone
from django.views.decorators.debug import sensitive_variables

from django_identity import conf, database, policy, signals
from django_identity.exceptions import StorageUnavailable
from django_identity.lifecycle import attempts, audit, dossier, withdrawal
from django_identity.lifecycle.attempts import Stop
from django_identity.logs import LogEvent, log, log_trouble, models_in_the_way
from django_identity.models import (
    AccountKept,
    ErasureReceipt,
    LinkedIdentity,
    LinkedVia,
    RevokedBy,
    digest,
)
from django_identity.policy import IdentityPolicy


class AccountStillThere(RuntimeError):
    """The policy deletes accounts, but the row still exists: ``delete`` only hides it."""


def may_erase_themselves(user: AbstractBaseUser, *, application: conf.Application) -> bool:
    """Whether the person may erase their account: not with links by code alone.

    A code may be another person's, so it gives no say about the account's data at the service.
    """
    if not policy.load(application.policy).people_may_erase:
        return False
    return LinkedIdentity.objects.filter(user_id=user.pk, linked_via=LinkedVia.OAUTH).exists()


def erase_account(user: AbstractBaseUser, *, application: conf.Application) -> ErasureReceipt:
    """Erase the account of ``user`` with all its identities, for the person or an operator.

    If the site's own erasure code raised an error, the receipt is pending (``erased_at`` is None)
    and the erasure is retried. Raises ``StorageUnavailable`` if the database failed.
    """
    receipt = ErasureReceipt(application=application.alias, user_id=user.pk)
    return _erase_now(receipt, lambda: list(_identities_of(user.pk).select_for_update()))


@sensitive_variables()
def erase_subject(
    alias: str, environment: str, subject: str, *, with_audit: bool = False
) -> ErasureReceipt:
    """Erase the subject wherever it is linked, as the service's deletion event does.

    Raises ``StorageUnavailable``. The receipt is pending as after ``erase_account``.
    """
    named = LinkedIdentity.objects.of_subject(alias, environment, subject)
    if not named.exists():
        return _erase_unlinked(alias, environment, subject, with_audit=with_audit)

    def locked() -> list[LinkedIdentity]:
        identity = LinkedIdentity.objects.locked(digest(alias, environment, subject))
        return [] if identity is None else [identity]

    receipt = ErasureReceipt(application=alias)
    return _erase_now(receipt, locked, with_audit=with_audit)


@sensitive_variables()
def _erase_unlinked(
    alias: str, environment: str, subject: str, *, with_audit: bool
) -> ErasureReceipt:
    """Empty the events that are left about a subject who is not linked, and look for more."""
    subject_digest = digest(alias, environment, subject)
    try:
        with database.atomic():
            receipt = withdrawal.erase_unlinked(alias, subject_digest, requested_at=timezone.now())
            receipt.save()
            signals.announce(
                signals.data_erased, ErasureReceipt, application=alias, receipt=receipt
            )
        if with_audit or _policy_of(alias).audit_erasures:
            known = audit.Known(frozenset({subject, subject_digest}))
            receipt.audit = asdict(audit.search(known))
            receipt.save(update_fields=["audit"])
    except (DatabaseError, InterfaceError) as error:
        raise StorageUnavailable(type(error).__name__) from None
    return receipt


@sensitive_variables()
def _erase_now(
    receipt: ErasureReceipt,
    locked: Callable[[], list[LinkedIdentity]],
    *,
    with_audit: bool = False,
) -> ErasureReceipt:
    """Revoke and commit; then make the first attempt. No request waits for an audit.

    ``locked``: the identities to revoke, locked in the order of all locks.
    """
    now, is_of_account = timezone.now(), receipt.user_id is not None
    by = RevokedBy.PERSON if is_of_account else RevokedBy.SITE
    receipt.requested_at = receipt.next_attempt_at = now
    try:
        with database.atomic():
            for identity in locked():
                withdrawal.empty(identity, at=now, by=by)
                receipt.identity = None if is_of_account else identity
            receipt.save()
        if with_audit or not _policy_of(receipt.application).audit_erasures:
            attempt(receipt.pk, with_audit=with_audit)
            receipt.refresh_from_db()
    except (DatabaseError, InterfaceError) as error:
        # The database's message, and Django's report of it, would contain the subject.
        raise StorageUnavailable(type(error).__name__) from None
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
        known = _erase(receipt_id)
    except Exception as error:  # noqa: BLE001  the site's own code may raise anything
        _note_failure(receipt, error)
        return False
    log(LogEvent.ERASED, application=receipt.application, row=receipt_id)
    wants_audit = with_audit or _policy_of(receipt.application).audit_erasures
    if wants_audit and known is not None:
        ErasureReceipt.objects.filter(pk=receipt_id).update(audit=asdict(audit.search(known)))
    return True


def _note_failure(receipt: ErasureReceipt, error: Exception) -> None:
    """Store and log the class of ``error``, and the models whose rows protect the account's."""
    models = models_in_the_way(error)
    kind = f"{type(error).__name__}: {models}" if models else type(error).__name__
    due_at = attempts.next_attempt(receipt.attempts)
    pending = ErasureReceipt.objects.filter(pk=receipt.pk, erased_at=None)
    pending.update(error=kind[:255], next_attempt_at=due_at)
    facts = {"application": receipt.application, "row": receipt.pk, "models": models}
    log_trouble(LogEvent.ERASURE_FAILED, error, **facts)


@sensitive_variables()
def _erase(receipt_id: int) -> audit.Known | None:
    """Erase in one transaction, and close the receipt.

    Returns what was known of the person, or None if another worker has erased them.
    """
    with database.atomic():
        pending = ErasureReceipt.objects.get(pk=receipt_id)
        site = _policy_of(pending.application)
        user, identities, kept = _locked(pending, site)
        receipt = ErasureReceipt.objects.select_for_update().get(pk=receipt_id)
        if receipt.erased_at is not None:
            return None
        known = audit.known_of_identities(identities)
        digests = tuple(each.subject_digest for each in identities)
        user_id = user.pk if user else None
        # The site's own rows may point at the identities, so they go before the account.
        counts = dossier.erase(dossier.Person(digests, user_id, account_stays=bool(kept)))
        if user is not None and not kept:
            known |= audit.known_of_account(user)
            kept = _erase_account(site, user)
        receipt.account_kept = kept
        receipt.identity = receipt.user = receipt.next_attempt_at = None
        receipt.erased_at, receipt.error = timezone.now(), ""
        receipt.counts = {**counts, "user": int(user is not None and not kept)}
        receipt.save()
        signals.announce(
            signals.data_erased, ErasureReceipt, application=receipt.application, receipt=receipt
        )
    return known


def _locked(
    receipt: ErasureReceipt, site: IdentityPolicy
) -> tuple[AbstractBaseUser | None, list[LinkedIdentity], str]:
    """What the pending receipt erases: the user, the identities, and why the account stays, if so.

    All is locked, the identities first. Then nobody links another identity to the account until the
    erasure has committed. One that was linked while this waited for the account is in the second
    look. The account's other identities go only with the account.
    """
    user_id = receipt.user_id
    if user_id is None and receipt.identity is not None:
        user_id = receipt.identity.user_id
    list(_identities_of(user_id).select_for_update())
    user = database.all_users().select_for_update().filter(pk=user_id).first()
    theirs = list(_identities_of(user_id).select_for_update())
    asked = theirs
    if receipt.user_id is None:
        asked = [each for each in theirs if each.pk == receipt.identity_id]
    is_made = any(each.account_made for each in asked)
    if user is None or not site.keeps_account(user, made_for_identity=is_made):
        return user, theirs, ""
    if policy.is_privileged(user):
        return user, asked, AccountKept.PRIVILEGED
    return user, asked, AccountKept.POLICY if is_made else AccountKept.OLDER


def _policy_of(alias: str) -> IdentityPolicy:
    return policy.load(withdrawal.application_of(alias).policy)


def _identities_of(user_id: Any) -> QuerySet[LinkedIdentity]:
    return LinkedIdentity.objects.filter(user_id=user_id).order_by("pk")


def _erase_account(site: IdentityPolicy, user: AbstractBaseUser) -> str:
    """Let the policy erase the account. Returns why it stays, or an empty text if it is erased."""
    user_id = user.pk
    site.erase_user(user)
    left = database.all_users().filter(pk=user_id).first()
    if left is None:
        return ""
    if site.erasure == "delete":
        raise AccountStillThere
    # An account that was emptied but cannot be disabled is as erased as it can be.
    can_be_disabled = "is_active" in {field.name for field in left._meta.concrete_fields}
    return AccountKept.POLICY if left.is_active and can_be_disabled else ""
