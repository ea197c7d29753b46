"""The service's current key set, and what it verifies: credentials, and tokens that are JWTs.

Each process fetches the set; it is at most 5 minutes old. Processes share nothing, so write access
to the cache does not allow anybody to forge credentials.
"""

import os
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime

from django.core.signals import setting_changed
from django.utils import timezone
from django.views.decorators.debug import sensitive_variables

from django_identity import exceptions
from django_identity.conf import Application
from django_identity.credentials import (
    KeySet,
    RejectionReason,
    VerifiedCredential,
    identity_tokens,
    verify,
)
from django_identity.lifecycle.kyc import CLOCK_SKEW
from django_identity.service import ServiceClient, backoff
from django_identity.service.answers import ClaimsAnswer, TokenAnswer
from django_identity.service.members import is_subject

OLDEST = 300.0
# Seconds by which the service's clock may be ahead in what its keys have signed.
CLOCK_LEEWAY = CLOCK_SKEW.total_seconds()
COOLDOWN = 30.0
FETCHES_IN_COOLDOWN = 2
# A little longer than the time limit of a fetch.
LONGEST_WAIT = 6.0
FIRST_PAUSE, LONGEST_PAUSE = 2.0, 30.0


@dataclass(slots=True)
class _Origin:
    """The state of one origin in this process. All times are from ``time.monotonic``.

    ``lock``: held during a fetch. ``began``: the start of the fetch of ``keys``. ``asked``: the
    last fetches for an unknown ``kid``.
    """

    lock: threading.Lock = field(default_factory=threading.Lock)
    keys: KeySet | None = None
    began: float = 0.0
    asked: deque[float] = field(default_factory=lambda: deque(maxlen=FETCHES_IN_COOLDOWN))
    failures: int = 0
    paused_until: float = 0.0

    def age(self) -> float:
        return time.monotonic() - self.began

    def held(self) -> KeySet | None:
        """The keys, unless they are too old."""
        return self.keys if self.age() < OLDEST else None


_origins: dict[str, _Origin] = {}


# What the keys verify


@sensitive_variables()
def verify_answer(
    application: Application, answer: ClaimsAnswer, *, subject: str
) -> VerifiedCredential | None:
    """Verify the credential in a claims answer of ``subject``, if there is one.

    An unknown ``kid`` refreshes the key set once. Raises ``SubjectMismatch``,
    ``CredentialRejected`` or ``KeysUnavailable``.
    """
    if answer.user_id != subject:
        raise exceptions.SubjectMismatch("about another subject", endpoint="claims")
    if answer.credential is None:
        return None
    keys = current(application)
    try:
        return verify_for(application, answer.credential, subject=subject, keys=keys)
    except exceptions.CredentialRejected as rejected:
        if rejected.reason is not RejectionReason.KEY:
            raise
    newer = refresh(application, unknown_in=keys)
    return verify_for(application, answer.credential, subject=subject, keys=newer)


def verify_for(
    application: Application,
    credential: str,
    *,
    subject: str | None,
    keys: KeySet,
    now: datetime | None = None,
) -> VerifiedCredential:
    """Call ``credentials.verify`` with the settings of ``application``.

    ``now``: the time to verify at, by default the current time. Raises ``CredentialRejected``.
    """
    return verify(
        credential,
        keys=keys,
        issuer=application.api_origin,
        audience=application.client_id,
        environment=application.environment,
        subject=subject,
        now=now or timezone.now(),
        leeway=CLOCK_LEEWAY,
    )


@sensitive_variables()
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
        subject = identity_tokens.subject_of(
            token.reveal(),
            keys=keys,
            issuer=application.api_origin,
            audience=application.client_id,
            leeway=CLOCK_LEEWAY,
        )
        if subject is not None and is_subject(subject):
            named.add(subject)
    if len(named) > 1:
        raise exceptions.SubjectMismatch("names two subjects", endpoint="token")
    return named.pop() if named else None


# The set of this process


def current(application: Application) -> KeySet:
    """The key set of this process, or a new one. Raises ``KeysUnavailable``."""
    origin = _origin_of(application)
    if (held := origin.held()) is not None:
        return held
    with _fetching(origin):
        # Another thread may have fetched it meanwhile. A set without keys is an answer, too.
        held = origin.held()
        return _fetch(application, origin) if held is None else held


def refresh(application: Application, *, unknown_in: KeySet) -> KeySet:
    """Fetch a newer key set, after a ``kid`` that ``unknown_in`` does not contain.

    A flood of unknown ``kid``s costs at most two fetches in 30 seconds, also while the service
    fails. Raises ``KeysUnavailable``, which does not mean that the credential is bad.
    """
    origin = _origin_of(application)
    with _fetching(origin):
        if origin.keys is not None and origin.keys is not unknown_in:
            return origin.keys
        now = time.monotonic()
        if len(origin.asked) == FETCHES_IN_COOLDOWN and now - origin.asked[0] < COOLDOWN:
            raise exceptions.KeysUnavailable("asked for newer keys a moment ago", endpoint="jwks")
        origin.asked.append(now)
        return _fetch(application, origin)


def age_of(application: Application) -> float | None:
    """Seconds since this process fetched its key set, or None without one."""
    origin = _origin_of(application)
    return None if origin.keys is None else origin.age()


def forget() -> None:
    """Forget all key sets of this process."""
    _origins.clear()


def trust(application: Application, keys: KeySet) -> None:
    """Take ``keys`` for the service's, as if this process had just fetched them. For tests."""
    origin = _origin_of(application)
    origin.keys, origin.began = keys, time.monotonic()


def _origin_of(application: Application) -> _Origin:
    """The state for the application's origin, which live and test applications share."""
    return _origins.setdefault(application.api_origin, _Origin())


@contextmanager
def _fetching(origin: _Origin) -> Iterator[None]:
    """Hold the lock for a fetch. Other threads wait for it and then use the new key set."""
    if not origin.lock.acquire(timeout=LONGEST_WAIT):
        raise exceptions.KeysUnavailable("somebody else's fetch takes too long", endpoint="jwks")
    try:
        yield
    finally:
        origin.lock.release()


def _fetch(application: Application, origin: _Origin) -> KeySet:
    """Fetch the key set, unless a fetch has just failed. The caller holds the lock."""
    began = time.monotonic()
    if began < origin.paused_until:
        raise exceptions.KeysUnavailable("the last fetch failed a moment ago", endpoint="jwks")
    try:
        keys = KeySet.from_text(ServiceClient(application).key_set().body)
    except exceptions.ServiceError as error:
        origin.failures += 1
        pause = backoff.pause(origin.failures, first=FIRST_PAUSE, longest=LONGEST_PAUSE)
        origin.paused_until = time.monotonic() + pause
        raise exceptions.KeysUnavailable(f"no key set: {error.code}", endpoint="jwks") from error
    origin.keys, origin.began = keys, began
    origin.failures, origin.paused_until = 0, 0.0
    return keys


def _forget(*, setting: str, **_kwargs: object) -> None:
    if setting == "DJANGO_IDENTITY":
        forget()


setting_changed.connect(_forget, dispatch_uid="django_identity.key_sets")
# A forked process has no threads of its parent, and one of them may have held a lock.
os.register_at_fork(after_in_child=forget)
