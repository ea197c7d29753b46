"""Detect that the service is down. All processes share the state.

After five failures in a row of one endpoint, upkeep stops calling it. After a pause, which doubles
up to one minute, one worker probes it. If that succeeds, all workers continue within the rate
limit. Calls for waiting people are always made, and their results count too.
"""

from __future__ import annotations

import random
import time

from django_identity.conf import Application
from django_identity.exceptions import ServiceAway
from django_identity.service import shared_state
from django_identity.service.budget import Priority, name_of

FAILURES_IN_A_ROW = 5
FIRST_PAUSE = 1.0
LONGEST_PAUSE = 60.0
# Seconds after the last failure. A single identity waits less between its first failures.
REMEMBERED = 3600.0
PROBE = 30.0
UPKEEP_ENDPOINTS = ("token", "claims")


def failed(application: Application, endpoint: str) -> None:
    """Record a failure: no answer, or a 5xx."""
    failures = _name(application, endpoint, "failures")
    count = shared_state.count(failures, seconds=REMEMBERED)
    shared_state.keep(failures, seconds=REMEMBERED)
    if count < FAILURES_IN_A_ROW:
        return
    longest = min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(count - FAILURES_IN_A_ROW, 16))
    pause = longest * random.uniform(0.5, 1.0)  # noqa: S311  spreads load, guards nothing
    until = _name(application, endpoint, "until")
    shared_state.write(until, time.time() + pause, seconds=REMEMBERED)
    shared_state.forget(_name(application, endpoint, "probe"))


def answered(application: Application, endpoint: str) -> None:
    """Record an answer of the service."""
    if shared_state.read(_name(application, endpoint, "failures")):
        names = ("failures", "until", "probe")
        shared_state.forget(*(_name(application, endpoint, what) for what in names))


def admit(application: Application, endpoint: str, priority: Priority) -> None:
    """Raises ``ServiceAway`` if upkeep should not call that endpoint now."""
    if priority is Priority.INTERACTIVE or not _is_away(application, endpoint):
        return
    probe = _name(application, endpoint, "probe")
    if _has_paused(application, endpoint) and shared_state.claim(probe, seconds=PROBE):
        return
    raise ServiceAway("the last calls failed", endpoint=endpoint)


def is_away(application: Application) -> bool:
    """Whether an endpoint that upkeep needs is down."""
    return any(_is_away(application, endpoint) for endpoint in UPKEEP_ENDPOINTS)


def may_try(application: Application) -> bool:
    """Whether upkeep may call: the service is up, or a probe is due."""
    return all(
        not _is_away(application, endpoint) or _has_paused(application, endpoint)
        for endpoint in UPKEEP_ENDPOINTS
    )


def _is_away(application: Application, endpoint: str) -> bool:
    failures = shared_state.read(_name(application, endpoint, "failures"))
    return failures >= FAILURES_IN_A_ROW


def _has_paused(application: Application, endpoint: str) -> bool:
    return time.time() >= shared_state.read(_name(application, endpoint, "until"))


def _name(application: Application, endpoint: str, what: str) -> str:
    return name_of(application, f"{endpoint}.{what}")
