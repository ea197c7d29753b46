"""Erase a person and keep a receipt without personal data: first revoke, then erase, then retry.

What is erased depends on who asks. The person and the operator: the account that they see, with all
its identities. The service's signed deletion event: its subject, wherever it is linked.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractBaseUser
from django.db import DatabaseError, InterfaceError
from django.db.models import F, ProtectedError, QuerySet, RestrictedError
from django.utils import timezone
from django.views.decorators.debug import sensitive_variables

from django_identity import conf, database, policy, signals
from django_identity.exceptions import StorageUnavailable
from django_identity.lifecycle import dossier, withdrawal
from django_identity.logs import LogEvent, log, log_trouble
from django_identity.models import (
    AccountKept,
    ErasureReceipt,
    LinkedIdentity,
    LinkedVia,
    RevokedBy,
    digest,
)
from django_identity.service import backoff

FIRST_PAUSE = 60.0
LONGEST_PAUSE = 6 * 3600.0
MOST_AT_ONCE = 100
LONGEST_SECONDS = 240.0  # It stops before the worker's time limit.


class AccountStillThere(RuntimeError):
    """The policy deletes accounts, but the row still exists: ``delete`` only hides it."""


class AccountFate(StrEnum):
    """What an erasure does to the site's account."""

    KEPT = "kept"
    EMPTIED = "emptied"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True)
class Scope:
    """What an erasure erases: these identities of ``user``, and the account unless it is kept.

    ``account_kept``: why the account stays, or an empty text.
    """

    application: conf.Application
    user: AbstractBaseUser | None
    identities: tuple[LinkedIdentity, ...]
    account_kept: str

    @property
    def fate(self) -> AccountFate:
        if self.account_kept or self.user is None:
            return AccountFate.KEPT
        is_deleted = policy.load(self.application.policy).erasure == "delete"
        return AccountFate.DELETED if is_deleted else AccountFate.EMPTIED

    @property
    def forgotten(self) -> dossier.Forgotten:
        places = tuple((each.application, each.environment) for each in self.identities)
        digests = tuple(each.subject_digest for each in self.identities)
        user_id = getattr(self.user, "pk", None)
        return dossier.Forgotten(digests, user_id, places, stays=bool(self.account_kept))


@dataclass(frozen=True, slots=True)
class Preview:
    """Table -> number of rows that go, and what happens to the account."""

    counts: Mapping[str, int]
    account: AccountFate


def may_erase_themselves(user: AbstractBaseUser, *, application: conf.Application) -> bool:
    """Whether the person may erase their account: not with links by code alone.

    A code may be another person's, so it gives no say about the account's data at the service.
    """
    if not policy.load(application.policy).people_may_erase:
        return False
    return LinkedIdentity.objects.filter(user_id=user.pk, linked_via=LinkedVia.OAUTH).exists()


def preview_of(user: AbstractBaseUser) -> Preview:
    """What ``erase_account`` would erase. Nothing is changed."""
    scope = _scope_of_account(user, tuple(_identities_of(user.pk)))
    return Preview(dossier.counts_of(scope.forgotten), scope.fate)


@sensitive_variables()
def erase_account(user: AbstractBaseUser, *, application: conf.Application) -> ErasureReceipt:
    """Erase the account of ``user`` with all its identities, for the person or an operator.

    If the site's own erasure code raised an error, the receipt is pending (``erased_at`` is None)
    and the erasure is retried. Raises ``StorageUnavailable`` if the database failed.
    """
    try:
        with database.atomic():
            now = timezone.now()
            for identity in _identities_of(user.pk).select_for_update():
                withdrawal.empty(identity, at=now, by=RevokedBy.PERSON)
            receipt = ErasureReceipt.objects.create(
                application=application.alias,
                user_id=user.pk,
                requested_at=now,
                next_attempt_at=now,
            )
        attempt(receipt.pk)
        receipt.refresh_from_db()
    except (DatabaseError, InterfaceError) as error:
        # The database's message, and Django's report of it, would contain the subject.
        raise StorageUnavailable(type(error).__name__) from None
    return receipt


@sensitive_variables()
def erase_subject(alias: str, environment: str, subject: str) -> ErasureReceipt:
    """Erase the subject wherever it is linked, as the service's deletion event does.

    Raises ``StorageUnavailable``. The receipt is pending as after ``erase_account``.
    """
    try:
        with database.atomic():
            now = timezone.now()
            identity = LinkedIdentity.objects.locked(digest(alias, environment, subject))
            if identity is not None:
                withdrawal.empty(identity, at=now, by=RevokedBy.SITE)
            receipt = ErasureReceipt.objects.create(
                application=alias, identity=identity, requested_at=now, next_attempt_at=now
            )
        attempt(receipt.pk)
        receipt.refresh_from_db()
    except (DatabaseError, InterfaceError) as error:
        # The database's message, and Django's report of it, would contain the subject.
        raise StorageUnavailable(type(error).__name__) from None
    return receipt


def retry_pending(*, stop: Callable[[], bool] = lambda: False) -> int:
    """Try all pending erasures that are due, until ``stop``. Returns the number that are done."""
    due = ErasureReceipt.objects.filter(erased_at=None, next_attempt_at__lte=timezone.now())
    keys = list(due.order_by("next_attempt_at").values_list("pk", flat=True)[:MOST_AT_ONCE])
    ends_at, done = time.monotonic() + LONGEST_SECONDS, 0
    for key in keys:
        done += attempt(key)
        if stop() or time.monotonic() > ends_at:
            break
    return done


def attempt(receipt_id: int) -> bool:
    """Try one pending erasure, unless another worker has it. Returns whether it is done.

    The attempt is counted first, in case the erasure crashes its worker.
    """
    now = timezone.now()
    due = ErasureReceipt.objects.filter(pk=receipt_id, erased_at=None, next_attempt_at__lte=now)
    receipt = due.first()
    if receipt is None:
        return False
    seconds = backoff.pause(receipt.attempts, first=FIRST_PAUSE, longest=LONGEST_PAUSE)
    taken = due.filter(attempts=receipt.attempts).update(
        attempts=F("attempts") + 1, next_attempt_at=now + timedelta(seconds=seconds), updated_at=now
    )
    if not taken:
        return False
    try:
        _erase(receipt_id)
    except Exception as error:  # noqa: BLE001  the site's own code may raise anything
        _note_failure(receipt, error)
        return False
    log(LogEvent.ERASED, application=receipt.application, row=receipt_id)
    return True


def _note_failure(receipt: ErasureReceipt, error: Exception) -> None:
    """Store and log the class of ``error``, and the models whose rows protect the account's."""
    in_the_way: set[Any] = set()
    if isinstance(error, ProtectedError):
        in_the_way = error.protected_objects
    elif isinstance(error, RestrictedError):
        in_the_way = error.restricted_objects
    models = ",".join(sorted({row._meta.label for row in in_the_way}))
    kind = f"{type(error).__name__}: {models}" if models else type(error).__name__
    facts = {"row": receipt.pk, **({"models": models} if models else {})}
    ErasureReceipt.objects.filter(pk=receipt.pk).update(error=kind[:255])
    log_trouble(LogEvent.ERASURE_FAILED, error, application=receipt.application, **facts)


def _erase(receipt_id: int) -> None:
    """Erase in one transaction, and close the receipt."""
    with database.atomic():
        scope = _scope_of(ErasureReceipt.objects.get(pk=receipt_id))
        receipt = ErasureReceipt.objects.select_for_update().get(pk=receipt_id)
        if receipt.erased_at is not None:
            return
        # The site's own rows may point at the identities, so they go before the account.
        counts = dossier.erase(scope.forgotten)
        is_erased = False
        if scope.user is not None and not scope.account_kept:
            receipt.account_kept = _erase_account(scope.application, scope.user)
            is_erased = not receipt.account_kept
        else:
            receipt.account_kept = scope.account_kept
        receipt.identity = receipt.user = receipt.next_attempt_at = None
        receipt.erased_at, receipt.error = timezone.now(), ""
        receipt.counts = {**counts, "user": int(is_erased)}
        receipt.save()
        signals.announce(
            signals.data_erased, ErasureReceipt, application=receipt.application, receipt=receipt
        )


def _scope_of(receipt: ErasureReceipt) -> Scope:
    """What the pending receipt erases, with everything locked."""
    if receipt.user_id is not None:
        return _scope_of_account(*_locked(receipt.user_id))
    one = LinkedIdentity.objects.filter(pk=receipt.identity_id or 0).first()
    user, theirs = _locked(one.user_id) if one is not None else (None, ())
    asked = tuple(each for each in theirs if each.pk == receipt.identity_id)
    made_for_identity = any(each.account_made for each in asked)
    application = application_of(receipt.application)
    kept = _reason_to_keep(application, user, made_for_identity=made_for_identity)
    # An account that goes takes its other identities with it.
    return Scope(application, user, asked if kept else theirs, kept)


def _scope_of_account(
    user: AbstractBaseUser | None, identities: tuple[LinkedIdentity, ...]
) -> Scope:
    """The scope of the person's or the operator's request: the account with all its identities."""
    made = next((each for each in identities if each.account_made), None)
    first = made or next(iter(identities), None)
    application = application_of(first.application if first else conf.DEFAULT_ALIAS)
    kept = _reason_to_keep(application, user, made_for_identity=made is not None)
    return Scope(application, user, identities, kept)


def _identities_of(user_id: Any) -> QuerySet[LinkedIdentity]:
    return LinkedIdentity.objects.filter(user_id=user_id).order_by("pk")


def _locked(user_id: Any) -> tuple[AbstractBaseUser | None, tuple[LinkedIdentity, ...]]:
    """The account, even if the user model's managers hide it, and its identities, locked first.

    Then nobody links another identity to the account until the erasure has committed. One that was
    linked while this waited for the account is in the second look.
    """
    list(_identities_of(user_id).select_for_update())
    everybody: QuerySet[AbstractBaseUser] = QuerySet(get_user_model(), using=database.alias())
    user = everybody.select_for_update().filter(pk=user_id).first()
    return user, tuple(_identities_of(user_id).select_for_update())


def _reason_to_keep(
    application: conf.Application, user: AbstractBaseUser | None, *, made_for_identity: bool
) -> str:
    """Ask the policy. Returns why the account stays, or an empty text."""
    site = policy.load(application.policy)
    if user is None or not site.keeps_account(user, made_for_identity=made_for_identity):
        return ""
    if policy.is_privileged(user):
        return AccountKept.PRIVILEGED
    return AccountKept.POLICY if made_for_identity else AccountKept.OLDER


def _erase_account(application: conf.Application, user: AbstractBaseUser) -> str:
    """Let the policy erase the account. Returns why it stays, or an empty text if it is erased."""
    site, user_id = policy.load(application.policy), user.pk
    site.erase_user(user)
    everybody: QuerySet[AbstractBaseUser] = QuerySet(get_user_model(), using=database.alias())
    left = everybody.filter(pk=user_id).first()
    if left is not None and site.erasure == "delete":
        raise AccountStillThere
    if left is not None and left.is_active:
        # The account was emptied but cannot be disabled, so its person can still sign in.
        can_be_disabled = "is_active" in {field.name for field in left._meta.concrete_fields}
        return AccountKept.POLICY if can_be_disabled else ""
    return ""


def application_of(alias: str) -> conf.Application:
    """The application, or the default one's settings for an alias that is not set up any more."""
    if alias in conf.aliases():
        return conf.application(alias)
    return replace(conf.application(), alias=alias)
