"""The service's current key set: in the process, in the shared cache, never over 5 minutes old.

Both hold one age, counted from the start of the fetch. What the shared cache holds is the answer's
text, signed: who can write to the cache must not be able to forge credentials. While the shared
cache does not answer, each process fetches for itself.
"""

from __future__ import annotations

import hashlib
import logging
import threading
import time
from dataclasses import dataclass, replace

from django.core import signing
from django.core.signals import setting_changed
from django.db import connections

from django_identity.conf import Application
from django_identity.credentials import KeySet
from django_identity.exceptions import KeysUnavailable, ServiceError
from django_identity.service import ServiceClient, shared_state

OLDEST = 300.0
REFRESH_AHEAD = 0.8
AHEAD_PAUSE = 5.0
COOLDOWN = 30.0
FLIGHT = 10.0
LONGEST_WAIT = 2.0
POLL = 0.05
LONGEST_BACKOFF = 30.0

logger = logging.getLogger("django_identity.key_sets")


@dataclass(frozen=True, slots=True)
class _Held:
    """A key set, and for how many seconds from the start of its fetch it may serve.

    ``began`` is that start on this process's steady clock, ``began_at`` on the fetcher's wall
    clock: it goes with the set from process to process and tells two sets apart.
    """

    keys: KeySet
    began: float
    began_at: float
    lifetime: float

    def age(self) -> float:
        return time.monotonic() - self.began


_held: dict[str, _Held] = {}
_last_attempt: dict[str, float] = {}
_last_ahead: dict[str, float] = {}
_paused_until: dict[str, float] = {}
_choosing = threading.Lock()


def current(application: Application) -> KeySet:
    """The key set, from the process, the shared cache or the service, whichever has it first.

    Late in its life one caller starts fetching the next one, and everybody goes on with this one,
    so that the last moment keeps nobody waiting. Raises ``KeysUnavailable``.
    """
    held = _held.get(application.api_origin)
    if held is None or held.age() >= held.lifetime:
        return _newer_than(None, application)
    if held.age() >= held.lifetime * REFRESH_AHEAD and _is_first_ahead(application):
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
    try:
        return _newer_than(held, application, has_cooldown=True)
    except KeysUnavailable as error:
        logger.info("no newer key set: %s", error)
    # Somebody else's fetch may have landed since this looked.
    shared = _adopted(held, application)
    return unknown_in if shared is None else shared.keys


def age_of(application: Application) -> float | None:
    """Seconds since the fetch of the set that is held, here or in the shared cache, if one is."""
    held = _held.get(application.api_origin)
    held = _adopted(held, application) or held
    return None if held is None else held.age()


def forget() -> None:
    """Drop what this process holds. The shared cache is left alone."""
    _held.clear()
    _last_attempt.clear()
    _last_ahead.clear()
    _paused_until.clear()


def age(seconds: float) -> None:
    """Count everything that this process holds as that much older: for tests that move the clock.

    The shared cache has a clock of its own; ``shared_value`` makes one of any age.
    """
    for origin, held in _held.items():
        _held[origin] = replace(held, began=held.began - seconds, began_at=held.began_at - seconds)
    for moments in (_last_attempt, _last_ahead, _paused_until):
        for origin, moment in moments.items():
            moments[origin] = moment - seconds


def _newer_than(
    held: _Held | None, application: Application, *, has_cooldown: bool = False
) -> KeySet:
    """The shared set if it is newer than ``held``, else a fetched one: one flight, others wait.

    Raises ``KeysUnavailable``: after a failure, after 2 seconds of waiting for somebody else's
    flight, and, if this way ``has_cooldown``, while it lasts.
    """
    give_up = time.monotonic() + LONGEST_WAIT
    while True:
        # Asked before the shared set is: who sees no flight sees what the last one brought.
        is_flying = bool(shared_state.read(_name(application, "flight")))
        shared = _adopted(held, application)
        if shared is not None:
            return shared.keys
        if not is_flying and _may_take_off(application, has_cooldown=has_cooldown):
            return _flown(held, application, has_cooldown=has_cooldown)
        if time.monotonic() >= give_up:
            raise KeysUnavailable("somebody else's fetch takes too long", endpoint="jwks")
        time.sleep(POLL)


def _may_take_off(application: Application, *, has_cooldown: bool) -> bool:
    """Take the flight, if nobody has it. Raises ``KeysUnavailable`` if nobody may take off.

    A cooldown that began since the look for a flight began with one: it is worth waiting for.
    """
    try:
        _require_attempt(application, has_cooldown=has_cooldown)
    except KeysUnavailable:
        if not shared_state.read(_name(application, "flight")):
            raise
        return False
    return shared_state.claim(_name(application, "flight"), seconds=FLIGHT)


def _require_attempt(application: Application, *, has_cooldown: bool) -> None:
    paused_until = _paused_until.get(application.api_origin, 0.0)
    if time.monotonic() < paused_until or shared_state.read(_name(application, "pause")):
        raise KeysUnavailable("the last fetch failed a moment ago", endpoint="jwks")
    if not has_cooldown:
        return
    last = _last_attempt.get(application.api_origin, -COOLDOWN)
    if time.monotonic() - last < COOLDOWN or shared_state.read(_name(application, "cooldown")):
        raise KeysUnavailable("asked for newer keys less than 30 seconds ago", endpoint="jwks")


def _flown(held: _Held | None, application: Application, *, has_cooldown: bool) -> KeySet:
    """Fetch, as the holder of the one flight, unless another one landed just before it."""
    try:
        shared = _adopted(held, application)
        if shared is not None:
            return shared.keys
        _require_attempt(application, has_cooldown=has_cooldown)
        if has_cooldown:
            # After the flight began, so that whoever meets the cooldown has met the flight.
            _last_attempt[application.api_origin] = time.monotonic()
            shared_state.write(_name(application, "cooldown"), 1, seconds=COOLDOWN)
        return _fetched(application)
    finally:
        shared_state.forget(_name(application, "flight"))


def _is_first_ahead(application: Application) -> bool:
    """Whether nobody in this process started to refresh ahead a moment ago."""
    now = time.monotonic()
    with _choosing:
        if now - _last_ahead.get(application.api_origin, -AHEAD_PAUSE) < AHEAD_PAUSE:
            return False
        _last_ahead[application.api_origin] = now
    return True


def _refresh_ahead(held: _Held, application: Application) -> None:
    try:
        _newer_than(held, application)
    except KeysUnavailable as error:
        logger.warning("key set not refreshed ahead of its end: %s", error)
    finally:
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
    _held[application.api_origin] = _Held(keys, began, began_at, lifetime)
    value = shared_value(application, answer.text, began_at=began_at, lifetime=lifetime)
    shared_state.write(_name(application, "set"), value, seconds=OLDEST)
    shared_state.forget(_name(application, "failures"), _name(application, "pause"))
    _paused_until.pop(application.api_origin, None)
    return keys


def _back_off(application: Application) -> None:
    """After failures in a row, pause 1, 2, 4 … 30 seconds before anybody asks again."""
    failures = shared_state.read(_name(application, "failures"))
    shared_state.write(_name(application, "failures"), failures + 1, seconds=OLDEST)
    pause = min(2.0 ** min(failures, 10), LONGEST_BACKOFF)
    shared_state.write(_name(application, "pause"), 1, seconds=pause)
    # Kept here too, for a shared cache that does not answer.
    _paused_until[application.api_origin] = time.monotonic() + pause


def shared_value(
    application: Application, text: str, *, began_at: float, lifetime: float = OLDEST
) -> str:
    """What the shared cache holds: the answer's text and its age, signed for this origin."""
    shared = {"text": text, "began_at": began_at, "lifetime": lifetime}
    return signing.dumps(shared, salt=_salt(application))


def _adopted(held: _Held | None, application: Application) -> _Held | None:
    """The shared cache's set, if it is newer than ``held`` and still young enough to serve."""
    signed = shared_state.kept(_name(application, "set"))
    if signed is None:
        return None
    try:
        shared = signing.loads(str(signed), salt=_salt(application))
    except signing.BadSignature:
        logger.error("the shared cache held a key set that this site did not sign")
        return None
    age = time.time() - shared["began_at"]
    is_newer = held is None or shared["began_at"] > held.began_at
    if not 0 <= age < shared["lifetime"] or not is_newer:
        return None
    keys = KeySet.from_text(shared["text"])
    found = _Held(keys, time.monotonic() - age, shared["began_at"], shared["lifetime"])
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
