"""The service's current key set: in the process, in the shared cache, never over 5 minutes old.

Both hold one age, counted from the start of the fetch. What the shared cache holds is the answer's
text, signed: who can write to the cache must not be able to forge credentials.
"""

from __future__ import annotations

import hashlib
import logging
import threading
import time
from dataclasses import dataclass

from django.core import signing
from django.core.cache import cache
from django.core.signals import setting_changed
from django.db import connections

from django_identity.conf import Application
from django_identity.credentials import KeySet
from django_identity.exceptions import KeysUnavailable, ServiceError
from django_identity.service import ServiceClient

OLDEST = 300.0
REFRESH_AHEAD = 0.8
COOLDOWN = 30.0
FLIGHT = 10.0
LONGEST_WAIT = 2.0
POLL = 0.05
LONGEST_BACKOFF = 30.0

logger = logging.getLogger("django_identity.key_sets")


@dataclass(frozen=True, slots=True)
class _Held:
    """A key set, when its fetch began on this process's steady clock, and how long it may serve."""

    keys: KeySet
    began: float
    lifetime: float

    def age(self) -> float:
        return time.monotonic() - self.began


_held: dict[str, _Held] = {}
_last_attempt: dict[str, float] = {}
_one_flight = threading.Lock()


def current(application: Application) -> KeySet:
    """The key set, from the process, the shared cache or the service, whichever has it first.

    Late in its life one caller starts fetching the next one, and everybody goes on with this one,
    so that the last moment keeps nobody waiting. Raises ``KeysUnavailable``.
    """
    held = _held.get(application.api_origin)
    if held is None or held.age() >= held.lifetime:
        return _newer_than(None, application)
    if held.age() >= held.lifetime * REFRESH_AHEAD and _one_flight.acquire(blocking=False):
        threading.Thread(target=_refresh_ahead, args=(held, application), daemon=True).start()
    return held.keys


def refreshed(application: Application, *, unknown_in: KeySet) -> KeySet:
    """The key set after a ``kid`` that ``unknown_in`` lacks: newer if there is one, else the same.

    The cooldown counts attempts, not successes, so that a flood of unknown ``kid``s costs at most
    one fetch in 30 seconds, also while the service fails.
    """
    held = _held.get(application.api_origin)
    if held is not None and held.keys is not unknown_in:
        return held.keys
    shared = _adopted(held, application)
    if shared is not None:
        return shared.keys
    try:
        if _may_attempt(application):
            return _newer_than(held, application)
        if cache.get(_name(application, "flight")):
            return _winners(held, application)
    except KeysUnavailable:
        logger.info("no newer key set")
    return unknown_in


def forget() -> None:
    """Drop what this process holds. The shared cache is left alone."""
    _held.clear()
    _last_attempt.clear()


def _may_attempt(application: Application) -> bool:
    """Whether nobody has asked because of an unknown ``kid`` for 30 seconds, here or elsewhere."""
    now = time.monotonic()
    if now - _last_attempt.get(application.api_origin, -COOLDOWN) < COOLDOWN:
        return False
    _last_attempt[application.api_origin] = now
    return cache.add(_name(application, "cooldown"), 1, timeout=COOLDOWN)


def _newer_than(held: _Held | None, application: Application) -> KeySet:
    """The shared set if it is newer than ``held``, else a fetched one: one flight, others wait."""
    shared = _adopted(held, application)
    if shared is not None:
        return shared.keys
    if cache.get(_name(application, "pause")):
        raise KeysUnavailable("the last fetch failed a moment ago", endpoint="jwks")
    if not cache.add(_name(application, "flight"), 1, timeout=FLIGHT):
        return _winners(held, application)
    try:
        return _fetched(application)
    finally:
        cache.delete(_name(application, "flight"))


def _winners(held: _Held | None, application: Application) -> KeySet:
    """What the one who is fetching brings, if it comes in time. Raises ``KeysUnavailable``."""
    give_up = time.monotonic() + LONGEST_WAIT
    while time.monotonic() < give_up:
        landed = cache.get(_name(application, "flight")) is None
        shared = _adopted(held, application)
        if shared is not None:
            return shared.keys
        if landed:
            break
        time.sleep(POLL)
    raise KeysUnavailable("somebody else's fetch brought no key set", endpoint="jwks")


def _refresh_ahead(held: _Held, application: Application) -> None:
    try:
        _newer_than(held, application)
    except KeysUnavailable as error:
        logger.warning("key set not refreshed ahead of its end: %s", error)
    finally:
        _one_flight.release()
        connections.close_all()


def _fetched(application: Application) -> KeySet:
    began, began_at = time.monotonic(), time.time()
    try:
        answer = ServiceClient(application).key_set()
        keys = KeySet.from_text(answer.text)
    except ServiceError as error:
        _back_off(application)
        raise KeysUnavailable(f"no key set: {error.code}", endpoint="jwks") from error
    lifetime = OLDEST if answer.max_age is None else min(OLDEST, float(answer.max_age))
    _held[application.api_origin] = _Held(keys, began, lifetime)
    shared = {"text": answer.text, "began_at": began_at, "lifetime": lifetime}
    cache.set(
        _name(application, "set"), signing.dumps(shared, salt=_salt(application)), timeout=OLDEST
    )
    cache.delete(_name(application, "failures"))
    return keys


def _back_off(application: Application) -> None:
    """After failures in a row, pause 1, 2, 4 … 30 seconds before anybody asks again."""
    cache.add(_name(application, "failures"), 0, timeout=OLDEST)
    try:
        failures = cache.incr(_name(application, "failures"))
    except ValueError:  # it ran out between the two calls
        failures = 1
    pause = min(2.0 ** (failures - 1), LONGEST_BACKOFF)
    cache.set(_name(application, "pause"), 1, timeout=pause)


def _adopted(held: _Held | None, application: Application) -> _Held | None:
    """The shared cache's set, if it is newer than ``held`` and still young enough to serve."""
    sealed = cache.get(_name(application, "set"))
    if sealed is None:
        return None
    try:
        shared = signing.loads(sealed, salt=_salt(application))
    except signing.BadSignature:
        logger.error("the shared cache held a key set that this site did not sign")
        return None
    age = time.time() - shared["began_at"]
    found = _Held(KeySet.from_text(shared["text"]), time.monotonic() - age, shared["lifetime"])
    # Two clocks are compared, so a set is newer only by more than their jitter.
    is_newer = held is None or found.began > held.began + POLL
    if not 0 <= age < found.lifetime or not is_newer:
        return None
    _held[application.api_origin] = found
    return found


def _name(application: Application, what: str) -> str:
    """Live and test, and every application of one origin, share the set and its locks."""
    origin = hashlib.sha256(application.api_origin.encode()).hexdigest()[:32]
    return f"django_identity.key_sets.{origin}.{what}"


def _salt(application: Application) -> str:
    return f"django_identity.key_sets.{application.api_origin}"


def _forget(*, setting: str, **_kwargs: object) -> None:
    if setting in ("DJANGO_IDENTITY", "CACHES"):
        forget()


setting_changed.connect(_forget, dispatch_uid="django_identity.key_sets")
