"""The current key set, and what it verifies: credentials, and tokens in the form of JWTs.

Each process fetches the set; it is at most 5 minutes old. Each process reads its own key set, so
write access to a cache is useless for a forger. ``credentials.keys`` says which keys of a set can
be used.

- A credential names a ``kid`` that the set lacks: the key may be new, so the set is fetched once
  more. If the new set lacks it, too, the credential is rejected (``CredentialRejected``).
- Two such fetches in 30 seconds are the most, also while the service fails. After them, and without
  an answer of the service, ``KeysUnavailable`` is raised: the credential may still be good.
- A key that the service withdraws verifies nothing after 5 minutes. What it proved before counts
  until its ``valid_until``.

After either error a re-fetch leaves the stored claims and is tried again (``due.retry``); the list
of a rejected credential may still revoke some. A sign-in goes on with closed gates, and a re-fetch
is due at once (``arrivals``).
"""

import os
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from django.utils import timezone

from django_identity import exceptions
from django_identity.conf import Application
from django_identity.credentials import (
    KeySet,
    RejectionReason,
    VerifiedCredential,
    identity_tokens,
    verify,
)
from django_identity.lifecycle.ground.clocks import CLOCK_SKEW
from django_identity.service import ServiceClient
from django_identity.service.answers import ClaimsAnswer, TokenAnswer
from django_identity.service.members import is_subject

OLDEST = 300.0
# Seconds by which the service's clock may be ahead in what its keys have signed.
CLOCK_LEEWAY = CLOCK_SKEW.total_seconds()
MOST_TRIES = 2
COOLDOWN = 30.0


@dataclass(slots=True)
class _Origin:
    """The key set of one origin in this process. All times are from ``time.monotonic``.

    ``lock``: held during a fetch. ``began``: the start of the fetch of ``keys``. ``tries``: the
    last fetches for an unknown ``kid``, and those that failed.
    """

    lock: threading.Lock = field(default_factory=threading.Lock)
    keys: KeySet | None = None
    began: float = 0.0
    tries: deque[float] = field(default_factory=lambda: deque(maxlen=MOST_TRIES))


_origins: dict[str, _Origin] = {}


# What the keys verify


def verify_answer(
    application: Application,
    answer: ClaimsAnswer,
    *,
    subject: str,
) -> VerifiedCredential | None:
    """Verify the credential in a claims answer of ``subject``, if there is one.

    Raises ``SubjectMismatch``, ``CredentialRejected`` or ``KeysUnavailable``.
    """
    if answer.user_id != subject:
        raise exceptions.SubjectMismatch("about another subject", endpoint="claims")
    if answer.credential is None:
        return None
    return verify_credential(application, answer.credential, subject=subject)


def verify_credential(
    application: Application,
    credential: str,
    *,
    subject: str | None,
    keys: KeySet | None = None,
) -> VerifiedCredential:
    """Verify ``credential`` with the settings of ``application``. Nothing is stored.

    ``keys``: use only these keys. By default the service's current key set is used, and an unknown
    ``kid`` refreshes it once. Raises ``CredentialRejected`` or ``KeysUnavailable``.
    """
    expected = {
        "environment": application.environment,
        "subject": subject,
        **_expected(application),
    }
    used = keys
    if used is None:
        used = current(application)
    try:
        return verify(credential, keys=used, now=timezone.now(), **expected)
    except exceptions.CredentialRejected as rejected:
        if keys is not None or rejected.reason is not RejectionReason.KEY:
            raise
    # A key that was rotated in is not known here yet, so the set is fetched once more.
    newer = _newer_than(used, application)
    return verify(credential, keys=newer, now=timezone.now(), **expected)


def subject_of(application: Application, answer: TokenAnswer) -> str | None:
    """The subject in the answer's own members, its ``id_token`` or a JWT access token, or None.

    A token counts only if the service's keys verify it. Raises ``SubjectMismatch`` if two of them
    name different subjects.
    """
    named = {answer.subject} - {None}
    for token in (answer.id_token, answer.access_token):
        if token is None or token.reveal().count(".") != 2:
            continue
        try:
            # An unknown ``kid`` causes no fetch of newer keys: these fetches are for credentials.
            keys = current(application)
        except exceptions.KeysUnavailable:
            break
        expected = _expected(application)
        subject = identity_tokens.subject_of(token.reveal(), keys=keys, **expected)
        if subject is not None and is_subject(subject):
            named.add(subject)
    if len(named) > 1:
        raise exceptions.SubjectMismatch("names two subjects", endpoint="token")
    if not named:
        return None
    return named.pop()


def _expected(application: Application) -> dict[str, Any]:
    """Who must have signed, for whom, and by how much the clocks may differ."""
    return {
        "issuer": application.api_origin,
        "audience": application.client_id,
        "leeway": CLOCK_LEEWAY,
    }


# The set of this process


def current(application: Application) -> KeySet:
    """The key set of this process, or a new one. Raises ``KeysUnavailable``."""
    origin = _origin_of(application)
    if origin.keys is not None and time.monotonic() - origin.began < OLDEST:
        return origin.keys
    newer = _newer_than(origin.keys, application)
    origin.tries.clear()
    return newer


def trust(application: Application, keys: KeySet) -> None:
    """Take ``keys`` for the service's, as if this process had just fetched them. For tests."""
    origin = _origin_of(application)
    origin.keys = keys
    origin.began = time.monotonic()


def forget() -> None:
    """Forget all key sets of this process."""
    _origins.clear()


def _origin_of(application: Application) -> _Origin:
    """The state for the origin of ``application``."""
    return _origins.setdefault(application.api_origin, _Origin())


def _newer_than(old: KeySet | None, application: Application) -> KeySet:
    """Fetch the key set, unless another thread has replaced ``old`` while this one waited.

    A flood of unknown ``kid``s costs at most two fetches in 30 seconds, also while the service
    fails. Raises ``KeysUnavailable``, in which case the credential may still be good.
    """
    origin = _origin_of(application)
    with origin.lock:
        if origin.keys is not None and origin.keys is not old:
            return origin.keys
        began = time.monotonic()
        has_tried_often = len(origin.tries) == MOST_TRIES
        if has_tried_often and began - origin.tries[0] < COOLDOWN:
            raise exceptions.KeysUnavailable(
                "asked for it a moment ago",
                endpoint="jwks",
            )
        origin.tries.append(began)
        try:
            keys = KeySet.from_text(ServiceClient(application).key_set().body)
        except exceptions.ServiceError as error:
            why = f"{error.code} ({error.detail})"
            raise exceptions.KeysUnavailable(why, endpoint="jwks") from error
        origin.keys = keys
        origin.began = began
        return keys


# A forked process has no threads of its parent, and one of them may have held a lock.
os.register_at_fork(after_in_child=forget)
