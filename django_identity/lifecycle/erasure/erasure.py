"""Erase all data about a person in one transaction, and keep a receipt without personal data.

Locks are always taken in this order, so that erasures, events and sign-ins cannot deadlock:

1. the pending receipts of the account (two requests for one account run one after the other);
2. the subject of the receipt, then its identity;
3. the account's other subjects, in the order of their digests;
4. the account itself, by what the policy does to it;
5. the account's other identities.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractBaseUser
from django.db import DatabaseError, InterfaceError, router, transaction
from django.db.models import F, QuerySet
from django.utils import timezone
from django.views.decorators.debug import sensitive_variables

from django_identity import backoff, conf, policy, signals
from django_identity.conf import Application
from django_identity.exceptions import ConfigurationError, StorageUnavailable
from django_identity.lifecycle import events
from django_identity.lifecycle.erasure import dossier, sessions
from django_identity.lifecycle.erasure.dossier import Forgotten
from django_identity.lifecycle.events import receipts
from django_identity.models import AccountKept, ErasureReceipt, LinkedIdentity, WebhookEvent, digest
from django_identity.telemetry import LogEvent, log, log_trouble

FIRST_PAUSE = 60.0
LONGEST_PAUSE = 6 * 3600.0
MOST_AT_ONCE = 100
# Stop before the worker's time limit. Reading many sessions may take long.
LONGEST_SECONDS = 240.0
WITH_SUBJECTS = (LinkedIdentity, WebhookEvent, ErasureReceipt)


class AccountStillThere(RuntimeError):
    """The policy deletes accounts, but the row still exists: ``delete`` only hides it."""


def application_of_rows(alias: str, *, environment: str | None = None) -> Application:
    """An application that stored rows name, but that the settings no longer have.

    Rows of a removed or renamed alias, or of another environment, have to be erasable. ``None``:
    the environment of the settings. Raises ``ConfigurationError`` if nothing is stored under that
    alias either.
    """
    if alias in conf.aliases():
        application = conf.application(alias)
    elif any(model.objects.filter(application=alias).exists() for model in WITH_SUBJECTS):
        application = replace(conf.application(), alias=alias)
    else:
        raise ConfigurationError(f"There is no application {alias!r}, and nothing stored of one.")
    return replace(application, environment=environment or application.environment)


@sensitive_variables()
def erase_now(application: Application, subject: str) -> ErasureReceipt:
    """Revoke at once and then erase, as a deletion event does. For operators.

    If the site's own erasure code raised an error, the receipt is pending (``erased_at`` is None)
    and the erasure is retried. Raises ``StorageUnavailable`` if the database failed.
    """
    try:
        return _erase_now(application, subject)
    except (DatabaseError, InterfaceError) as error:
        # The database's message, and Django's report of it, would contain the subject.
        raise StorageUnavailable(type(error).__name__) from None


def _erase_now(application: Application, subject: str) -> ErasureReceipt:
    subject_digest = digest(application.alias, application.environment, subject)
    with transaction.atomic():
        events.lock_subject(subject_digest)
        receipt = receipts.open_receipt(
            application=application.alias,
            environment=application.environment,
            subject=subject,
            identity=events.revoke(subject_digest),
            requested_at=timezone.now(),
        )
    attempt(receipt.pk)
    receipt.refresh_from_db()
    return receipt


def retry_pending() -> int:
    """Try all pending erasures that are due. Returns the number that are done."""
    ends_at = time.monotonic() + LONGEST_SECONDS
    due = ErasureReceipt.objects.pending().filter(next_attempt_at__lte=timezone.now())
    done = 0
    for key in list(due.order_by("next_attempt_at").values_list("pk", flat=True)[:MOST_AT_ONCE]):
        done += attempt(key)
        if time.monotonic() > ends_at:
            break
    return done


def attempt(receipt_id: int) -> bool:
    """Try one pending erasure, unless another worker has it. Returns whether it is done.

    The attempt is counted first, so that an erasure that crashes its worker is not retried at once.
    """
    now = timezone.now()
    due = ErasureReceipt.objects.pending().filter(pk=receipt_id, next_attempt_at__lte=now)
    receipt = due.first()
    if receipt is None:
        return False
    pause = timedelta(
        seconds=backoff.pause(receipt.attempts, first=FIRST_PAUSE, longest=LONGEST_PAUSE)
    )
    taken = due.filter(attempts=receipt.attempts).update(
        attempts=F("attempts") + 1, next_attempt_at=now + pause, updated_at=now
    )
    if not taken:
        return False
    try:
        _erase(receipt)
    except Exception as error:  # noqa: BLE001  the site's own code may raise anything
        kind = type(error).__name__
        ErasureReceipt.objects.filter(pk=receipt_id).update(error=kind[:255])
        log_trouble(
            LogEvent.ERASURE_FAILED, error, application=receipt.application, receipt=receipt_id
        )
        return False
    log(LogEvent.ERASED, application=receipt.application, receipt=receipt_id)
    return True


def _erase(receipt: ErasureReceipt) -> None:
    """Erase in one transaction. Sessions are searched before it, because that may take long."""
    began_at = timezone.now()
    identity = LinkedIdentity.objects.filter(subject_digest=_subject_digest(receipt)).first()
    user_id = identity.user_id if identity else receipt.user_id
    keys = sessions.keys_of(user_id)
    siblings = _siblings(receipt.pk, user_id)
    with transaction.atomic():
        _lock_receipts(siblings)
        if _erase_rows(receipt.pk, keys):
            transaction.on_commit(
                lambda: _erase_sessions(user_id, keys, since=began_at), robust=True
            )


def _erase_sessions(user_id: Any, keys: list[str], *, since: datetime) -> None:
    """Delete the sessions, after the account is disabled: also new ones, and copies in a cache."""
    sessions.delete({*keys, *sessions.keys_of(user_id, saved_since=since)})


def _siblings(receipt_id: int, user_id: Any) -> set[int]:
    """The pending erasures of the same account, including this one."""
    if user_id is None:
        return {receipt_id}
    pending = ErasureReceipt.objects.pending().filter(user_id=user_id)
    return {receipt_id, *pending.values_list("pk", flat=True)}


def _lock_receipts(keys: set[int]) -> None:
    """Lock all erasures of the account, because concurrent ones would deadlock.

    Lock by a write: SQLite then waits for the lock, but would fail at once after a read. Select by
    primary keys only: with two indexes MariaDB's order of locks varies.
    """
    ErasureReceipt.objects.pending().filter(pk__in=keys).update(updated_at=timezone.now())


def _erase_rows(receipt_id: int, session_keys: list[str]) -> bool:
    """Erase the data of the receipt's subject. Returns whether to delete the sessions too."""
    receipt = ErasureReceipt.objects.select_for_update().get(pk=receipt_id)
    if receipt.erased_at is not None:
        return False
    subject_digest = _subject_digest(receipt)
    events.lock_subject(subject_digest)
    identities = LinkedIdentity.objects.select_for_update().filter(subject_digest=subject_digest)
    identity = identities.first()
    user_id = identity.user_id if identity else receipt.user_id
    counts = Counter(dossier.erase(Forgotten(subject_digest, user_id)))
    user = _user(user_id)
    if user is not None:
        made_for_identity = identity.account_made if identity else receipt.account_made
        receipt.account_kept = _erase_account(receipt, user, made_for_identity=made_for_identity)
    is_erased = user is not None and not receipt.account_kept
    if not receipt.account_kept:
        counts["session"] = sessions.delete(session_keys)
    receipts.close(receipt, counts={**counts, "user": int(is_erased)})
    signals.announce(
        signals.data_erased, ErasureReceipt, application=receipt.application, receipt=receipt
    )
    return not receipt.account_kept


def _erase_account(
    receipt: ErasureReceipt, user: AbstractBaseUser, *, made_for_identity: bool
) -> str:
    """Let the policy erase the account. Returns why it stays, or an empty text if it is erased."""
    site = policy.load(_policy_path(receipt.application))
    if site.keeps_account(user, made_for_identity=made_for_identity):
        if policy.is_privileged(user):
            return AccountKept.PRIVILEGED
        return AccountKept.POLICY if made_for_identity else AccountKept.OLDER
    _hold_subjects_of(user.pk)
    # ``delete`` sets the instance's key to None.
    user_id = user.pk
    site.erase_user(user)
    left = _user(user_id)
    if left is not None and site.erasure == "delete":
        raise AccountStillThere
    if left is not None and left.is_active:
        # The account was emptied but cannot be disabled, so its person can still sign in.
        can_be_disabled = "is_active" in {field.name for field in user._meta.concrete_fields}
        return AccountKept.POLICY if can_be_disabled else ""
    _erase_identities_of(user_id, receipt)
    return ""


def _user(user_id: Any) -> AbstractBaseUser | None:
    """The account, even if the user model's default manager hides it."""
    if user_id is None:
        return None
    model = get_user_model()
    everybody: QuerySet[AbstractBaseUser] = QuerySet(model, using=router.db_for_write(model))
    return everybody.filter(pk=user_id).first()


def _hold_subjects_of(user_id: Any) -> None:
    """Lock before the user's row, because an event that has an identity may wait for that row."""
    theirs = LinkedIdentity.objects.filter(user_id=user_id).order_by("subject_digest")
    for subject_digest in list(theirs.values_list("subject_digest", flat=True)):
        events.lock_subject(subject_digest)


def _erase_identities_of(user_id: Any, receipt: ErasureReceipt) -> None:
    """Erase the identities of an erased account under other applications.

    It comes after the user's row: a request that links another identity now waits for that row or
    has committed. Each identity gets its own receipt, which recognises later events of its subject.
    """
    others = LinkedIdentity.objects.select_for_update().filter(user_id=user_id)
    for identity in list(others):
        counts = dossier.erase(Forgotten(identity.subject_digest, user_id))
        if not receipts.is_being_erased(identity.subject_digest):
            ErasureReceipt.objects.create(
                application=identity.application,
                environment=identity.environment,
                subject_digest=receipts.keyed(identity.subject_digest)[0],
                requested_at=receipt.requested_at,
                erased_at=timezone.now(),
                counts={**counts, "user": 0},
            )


def _subject_digest(receipt: ErasureReceipt) -> str:
    return digest(receipt.application, receipt.environment, receipt.subject)


def _policy_path(alias: str) -> str:
    """The policy of the application, or of the default one if it is no longer in the settings."""
    known = alias if alias in conf.aliases() else conf.DEFAULT_ALIAS
    return conf.application(known).policy
