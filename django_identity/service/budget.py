"""The rate limit of an application, for all its processes together, and the pause after a 429.

Calls are counted in windows of about one second. Upkeep leaves a fifth of each window to people who
are waiting. A call waits for its turn at most until its own deadline.
"""

from __future__ import annotations

import hashlib
import random
import time
from enum import StrEnum

from django_identity.conf import Application
from django_identity.exceptions import BudgetSpent, RateLimited
from django_identity.service import shared_state

UPKEEP_SHARE = 0.8
CALLS_IN_WINDOW = 10
SHORTEST_PAUSE = 1.0
LONGEST_NAP = 1.0
# A pause after a 429 applies to all endpoints of a class.
CLASSES = {"profile": "users", "kyc": "users", "claims": "users"}
SIGN_IN_ENDPOINTS = ("token", "profile")


class Priority(StrEnum):
    """Whether a person or upkeep waits for the call."""

    INTERACTIVE = "a person who waits"
    UPKEEP = "nobody who waits"


def await_turn(
    application: Application, priority: Priority, *, endpoint: str, patience: float
) -> None:
    """Wait until one more call of ``endpoint`` may be made, and count it.

    Raises ``RateLimited`` if the service asked for a pause that outlasts ``patience`` (seconds),
    ``BudgetSpent`` if no turn comes within it.
    """
    give_up_at = time.monotonic() + patience
    while True:
        pause = paused_for(application, endpoint)
        wait = pause or _wait_for_turn(application, priority)
        if wait <= 0.0:
            return
        if time.monotonic() + wait > give_up_at:
            if pause:
                raise RateLimited("all workers pause", endpoint=endpoint, retry_after=pause)
            raise BudgetSpent("no turn in time")
        # The pause may become longer meanwhile, so check it now and then.
        time.sleep(min(wait, LONGEST_NAP))


def pause(application: Application, *, endpoint: str, seconds: float) -> None:
    """After a 429: no process calls endpoints of this class for ``seconds``, at least one."""
    length = max(seconds, SHORTEST_PAUSE)
    name = _pause_name(application, endpoint)
    until = time.time() + length
    if until > shared_state.read(name):
        shared_state.write(name, until, seconds=length)


def paused_for(application: Application, endpoint: str) -> float:
    """Seconds until endpoints of this class may be called again, or zero."""
    return max(0.0, shared_state.read(_pause_name(application, endpoint)) - time.time())


def require_sign_in(application: Application, *, patience: float) -> None:
    """Raises ``RateLimited`` if a pause that is longer than ``patience`` would stop a sign-in."""
    pause = max(paused_for(application, endpoint) for endpoint in SIGN_IN_ENDPOINTS)
    if pause > patience:
        raise RateLimited("sign-ins pause", endpoint="token", retry_after=pause)


def _pause_name(application: Application, endpoint: str) -> str:
    return name_of(application, f"pause.{CLASSES.get(endpoint, endpoint)}")


def name_of(application: Application, what: str) -> str:
    """The cache key of a value that all processes of ``application`` share."""
    parts = (application.alias, application.base_url, application.client_id)
    digest = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]
    return f"django_identity.{digest}.{what}"


def _wait_for_turn(application: Application, priority: Priority) -> float:
    """Count a call and return zero, or return the seconds until the next window plus a jitter."""
    if application.rate_limit is None:
        return 0.0
    allowed, window = _window(*application.rate_limit)
    if priority is Priority.UPKEEP:
        allowed = max(1, int(allowed * UPKEEP_SHARE))
    now = time.time()
    index = int(now // window)
    name = name_of(application, f"calls.{index}")
    if shared_state.read(name) < allowed:
        if shared_state.count(name, seconds=2 * window) <= allowed:
            return 0.0
        shared_state.take_back(name)
    late = random.uniform(0.0, 0.1 * window)  # noqa: S311  spreads load, guards nothing
    return (index + 1) * window - now + late


def _window(calls: int, seconds: float) -> tuple[int, float]:
    """A short window, so that calls are spread evenly, with at least ten calls if possible."""
    apart = seconds / calls
    window = min(seconds, max(1.0, CALLS_IN_WINDOW * apart))
    return max(1, round(window / apart)), window
