"""Erase all data about a person in one transaction, and keep a receipt without personal data.

The locks come in the order of ``events.locks``: the account's pending receipts (two requests for
one account run one after the other), the subject and its identity; then the account's other
subjects by their digests, the account itself, and its other identities.
"""

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractBaseUser
from django.db import DatabaseError, InterfaceError
from django.db.models import F, ProtectedError, QuerySet, RestrictedError
from django.utils import timezone
from django.views.decorators.debug import sensitive_variables

from django_identity import conf, database, policy, signals
from django_identity.exceptions import ConfigurationError, StorageUnavailable
from django_identity.lifecycle import events
from django_identity.lifecycle.erasure import dossier, sessions
from django_identity.lifecycle.events import receipts, rows
from django_identity.models import (
    AccountKept,
    ErasureReceipt,
    FormerLink,
    LinkedIdentity,
    WebhookEvent,
    digest,
)
from django_identity.service import backoff
from django_identity.telemetry import LogEvent, Operation, log, log_trouble, measured

FIRST_PAUSE = 60.0
LONGEST_PAUSE = 6 * 3600.0
MOST_AT_ONCE = 100
EVENTS_AT_ONCE = 500
# Stop before the worker's time limit.
LONGEST_SECONDS = 240.0
#: User -> the keys of their sessions.
SessionKeys = dict[Any, list[str]]
WITH_SUBJECTS = (LinkedIdentity, WebhookEvent, ErasureReceipt)


class AccountStillThere(RuntimeError):
    """The policy deletes accounts, but the row still exists: ``delete`` only hides it."""


def application_of_rows(alias: str, *, environment: str | None = None) -> conf.Application:
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
def erase_now(application: conf.Application, subject: str) -> ErasureReceipt:
    """Revoke at once and then erase, as a deletion event does. For operators.

    If the site's own erasure code raised an error, the receipt is pending (``erased_at`` is None)
    and the erasure is retried. Raises ``StorageUnavailable`` if the database failed.
    """
    subject_digest = digest(application.alias, application.environment, subject)
    try:
        with database.atomic():
            events.lock_subject(subject_digest)
            receipt = receipts.open_receipt(
                application,
                subject,
                identity=events.revoke(subject_digest),
                requested_at=timezone.now(),
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
    keys = due.order_by("next_attempt_at").values_list("pk", flat=True)[:MOST_AT_ONCE]
    return _attempt_each(list(keys), stop=stop)


def attempt(receipt_id: int) -> bool:
    """Try one pending erasure, unless another worker has it. Returns whether it is done."""
    return bool(_attempt_each([receipt_id]))


def _attempt_each(receipt_ids: list[int], *, stop: Callable[[], bool] = lambda: False) -> int:
    """Try each of the erasures. The sessions are searched once for all, before and after."""
    began_at = timezone.now()
    users = _users_of(receipt_ids)
    found = sessions.keys_of({user_id for user_id in users.values() if user_id is not None})
    # From here: however long the search took, some of the erasures must be done after it.
    ends_at = time.monotonic() + LONGEST_SECONDS
    signed_out: SessionKeys = {}
    done = 0
    try:
        for receipt_id, user_id in users.items():
            keys = found.get(user_id, [])
            done += _attempt(receipt_id, user_id, keys, signed_out)
            if stop() or time.monotonic() > ends_at:
                break
    finally:
        # Robust: the accounts are erased, so an error of the session store is only logged.
        database.on_commit(lambda: _erase_sessions(signed_out, began_at))
    return done


def _users_of(receipt_ids: list[int]) -> dict[int, Any]:
    """Receipt -> the user to erase, for those of the receipts that are still pending."""
    pending = ErasureReceipt.objects.filter(erased_at=None).in_bulk(receipt_ids)
    digests = {key: _subject_digest(receipt) for key, receipt in pending.items()}
    identities = LinkedIdentity.objects.filter(subject_digest__in=digests.values())
    owners = dict(identities.values_list("subject_digest", "user_id"))
    return {
        key: owners.get(digests[key], pending[key].user_id) for key in receipt_ids if key in pending
    }


def _attempt(receipt_id: int, user_id: Any, keys: list[str], signed_out: SessionKeys) -> bool:
    """Try one erasure. The attempt is counted first, in case the erasure crashes its worker.

    ``keys``: the user's sessions. They are added to ``signed_out`` if they must go.
    """
    now = timezone.now()
    due = ErasureReceipt.objects.filter(pk=receipt_id, erased_at=None, next_attempt_at__lte=now)
    receipt = due.first()
    if receipt is None:
        return False
    seconds = backoff.pause(receipt.attempts, first=FIRST_PAUSE, longest=LONGEST_PAUSE)
    next_attempt_at = now + timedelta(seconds=seconds)
    taken = due.filter(attempts=receipt.attempts).update(
        attempts=F("attempts") + 1, next_attempt_at=next_attempt_at, updated_at=now
    )
    if not taken:
        return False
    try:
        with measured(Operation.ERASURE, application=receipt.application):
            has_sessions = _erase(receipt, user_id, keys)
    except Exception as error:  # noqa: BLE001  the site's own code may raise anything
        # The models whose rows keep the account's rows from being deleted, as ``shop.Order``.
        in_the_way: set[Any] = set()
        if isinstance(error, ProtectedError):
            in_the_way = error.protected_objects
        elif isinstance(error, RestrictedError):
            in_the_way = error.restricted_objects
        models = ",".join(sorted({row._meta.label for row in in_the_way}))
        kind = f"{type(error).__name__}: {models}" if models else type(error).__name__
        facts = {"row": receipt_id, **({"models": models} if models else {})}
        ErasureReceipt.objects.filter(pk=receipt_id).update(error=kind[:255])
        log_trouble(LogEvent.ERASURE_FAILED, error, application=receipt.application, **facts)
        return False
    if has_sessions:
        signed_out[user_id] = keys
    log(LogEvent.ERASED, application=receipt.application, row=receipt_id)
    return True


def _erase(receipt: ErasureReceipt, user_id: Any, keys: list[str]) -> bool:
    """Erase in one transaction, after most events. Returns whether the sessions had to go."""
    _empty_most_events(receipt)
    pending = ErasureReceipt.objects.filter(erased_at=None)
    siblings = pending.filter(user_id=user_id) if user_id is not None else pending.none()
    # Lock all erasures of the account, because concurrent ones would deadlock. Only by primary
    # keys: with two indexes MariaDB's order of locks varies.
    locked = {receipt.pk, *siblings.values_list("pk", flat=True)}
    with database.atomic():
        # Lock by a write: SQLite then waits for the lock, but would fail at once after a read.
        pending.filter(pk__in=locked).update(updated_at=timezone.now())
        return _erase_rows(receipt.pk, keys)


def _empty_most_events(receipt: ErasureReceipt) -> None:
    """Empty the subject's events in batches, so that the last transaction has at most one."""
    theirs = WebhookEvent.objects.filter(subject_digest=_subject_digest(receipt)).order_by("pk")
    while len(keys := list(theirs.values_list("pk", flat=True)[: 2 * EVENTS_AT_ONCE])) > (
        EVENTS_AT_ONCE
    ):
        with database.atomic():
            emptied = WebhookEvent.objects.filter(pk__in=keys[:EVENTS_AT_ONCE])
            so_far = receipt.counts.get("webhookevent", 0)
            receipt.counts = {"webhookevent": so_far + rows.empty(emptied)}
            receipt.save(update_fields=["counts"])


def _erase_sessions(signed_out: SessionKeys, since: datetime) -> None:
    """Delete the sessions, after the account is disabled: also new ones, and copies in a cache."""
    begun_since = sessions.keys_of(signed_out, saved_since=since)
    for user_id, keys in signed_out.items():
        sessions.delete({*keys, *begun_since[user_id]})


def _erase_rows(receipt_id: int, session_keys: list[str]) -> bool:
    """Erase the data of the receipt's subject. Returns whether to delete the sessions too."""
    receipt = ErasureReceipt.objects.select_for_update().get(pk=receipt_id)
    if receipt.erased_at is not None:
        return False
    subject_digest = _subject_digest(receipt)
    events.lock_subject(subject_digest)
    identities = LinkedIdentity.objects.select_for_update().filter(subject_digest=subject_digest)
    identity = identities.first()
    link = identity or receipt
    user = _user(link.user_id)
    user_id = user.pk if user else None
    receipt.account_kept = _reason_to_keep(receipt, user, made_for_identity=link.account_made)
    _open_other_receipts(receipt, subject_digest, user_id=user_id)
    place, stays = (receipt.application, receipt.environment), bool(receipt.account_kept)
    counts = Counter(dossier.erase(dossier.Forgotten(subject_digest, user_id, *place, stays=stays)))
    counts.update(receipt.counts)
    if user is not None and not receipt.account_kept:
        receipt.account_kept = _erase_account(receipt, user)
    is_erased = user is not None and not receipt.account_kept
    if not receipt.account_kept:
        counts["session"] = sessions.delete(session_keys)
    receipts.close(receipt, counts={**counts, "user": int(is_erased)})
    signals.announce(
        signals.data_erased, ErasureReceipt, application=receipt.application, receipt=receipt
    )
    return not receipt.account_kept


def _reason_to_keep(
    receipt: ErasureReceipt, user: AbstractBaseUser | None, *, made_for_identity: bool
) -> str:
    """Ask the policy. Returns why the account stays, or an empty text."""
    site = _policy_of(receipt)
    if user is None or not site.keeps_account(user, made_for_identity=made_for_identity):
        return ""
    if policy.is_privileged(user):
        return AccountKept.PRIVILEGED
    return AccountKept.POLICY if made_for_identity else AccountKept.OLDER


def _open_other_receipts(receipt: ErasureReceipt, subject_digest: str, *, user_id: Any) -> None:
    """Request the erasure of other accounts from which the subject was disconnected."""
    for former in receipts.former_links(subject_digest).exclude(user_id=user_id):
        ErasureReceipt.objects.create(
            application=receipt.application,
            environment=receipt.environment,
            subject=receipt.subject,
            subject_digest=receipt.subject_digest,
            user_id=former.user_id,
            account_made=former.account_made,
            requested_at=receipt.requested_at,
            next_attempt_at=timezone.now(),
        )


def _erase_account(receipt: ErasureReceipt, user: AbstractBaseUser) -> str:
    """Let the policy erase the account. Returns why it stays, or an empty text if it is erased."""
    site = _policy_of(receipt)
    # Lock before the user's row, because an event that has an identity may wait for that row.
    theirs = LinkedIdentity.objects.filter(user_id=user.pk).order_by("subject_digest")
    for subject_digest in list(theirs.values_list("subject_digest", flat=True)):
        events.lock_subject(subject_digest)
    # ``delete`` sets the instance's key to None, and deletes the former links.
    user_id, former = user.pk, list(FormerLink.objects.filter(user_id=user.pk))
    site.erase_user(user)
    left = _user(user_id)
    if left is not None and site.erasure == "delete":
        raise AccountStillThere
    if left is not None and left.is_active:
        # The account was emptied but cannot be disabled, so its person can still sign in.
        can_be_disabled = "is_active" in {field.name for field in user._meta.concrete_fields}
        return AccountKept.POLICY if can_be_disabled else ""
    _erase_identities_of(user_id, receipt)
    # The digests that stayed with the account. Each leaves a receipt.
    for link in former:
        FormerLink.objects.filter(pk=link.pk).delete()
        _write_receipt(link, link.subject_digest, receipt, {"formerlink": 1, "user": 0})
    return ""


def _user(user_id: Any) -> AbstractBaseUser | None:
    """The account, even if the user model's managers hide it."""
    everybody: QuerySet[AbstractBaseUser] = QuerySet(get_user_model(), using=database.alias())
    return everybody.filter(pk=user_id).first() if user_id is not None else None


def _erase_identities_of(user_id: Any, receipt: ErasureReceipt) -> None:
    """Erase the identities of an erased account under other applications.

    It comes after the user's row: a request that links another identity now waits for that row or
    has committed. Each identity gets its own receipt, which recognises later events of its subject.
    """
    others = LinkedIdentity.objects.select_for_update().filter(user_id=user_id)
    for identity in list(others):
        forgotten = dossier.Forgotten(
            identity.subject_digest, user_id, identity.application, identity.environment
        )
        counts = {**dossier.erase(forgotten), "user": 0}
        if not receipts.is_being_erased(identity.subject_digest):
            _write_receipt(identity, rows.keyed(identity.subject_digest)[0], receipt, counts)


def _write_receipt(
    link: LinkedIdentity | FormerLink,
    subject_digest: str,
    receipt: ErasureReceipt,
    counts: dict[str, int],
) -> None:
    """Write a receipt, done, for another subject of the erased account."""
    ErasureReceipt.objects.create(
        application=link.application,
        environment=link.environment,
        subject_digest=subject_digest,
        requested_at=receipt.requested_at,
        erased_at=timezone.now(),
        counts=counts,
    )


def _subject_digest(receipt: ErasureReceipt) -> str:
    return digest(receipt.application, receipt.environment, receipt.subject)


def _policy_of(receipt: ErasureReceipt) -> policy.IdentityPolicy:
    """The policy of the application, or of the default one if it is no longer in the settings."""
    is_known = receipt.application in conf.aliases()
    alias = receipt.application if is_known else conf.DEFAULT_ALIAS
    return policy.load(conf.application(alias).policy)
