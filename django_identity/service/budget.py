"""When an application may call the service. All its processes share the state.

- The rate limit: calls are counted in windows of about one second. Upkeep leaves a fifth of each
  window to people who are waiting.
- After a 429, nobody calls endpoints of that class for the time that the service asked for.
- After five failures in a row of one endpoint, upkeep pauses. The pause doubles up to one minute;
  then one worker probes the service, and if that succeeds, all workers continue. If the service
  refuses the client credentials, the pause is a minute at once. Calls for waiting people are made.
"""

import hashlib
import time
from enum import StrEnum

from django_identity import exceptions
from django_identity.conf import Application
from django_identity.service import backoff, refusals, shared_state
from django_identity.telemetry import LogEvent, log, log_refusal, log_trouble

UPKEEP_SHARE = 0.8
CALLS_IN_WINDOW = 10
SHORTEST_PAUSE = 1.0
LONGEST_NAP = 1.0
# A pause after a 429 applies to all endpoints of a class.
CLASSES = {"profile": "users", "kyc": "users", "claims": "users"}
SIGN_IN_ENDPOINTS = ("token", "profile")

FAILURES_IN_A_ROW = 5
# Counted for a refusal of the client credentials. The pause is the longest one then.
ENOUGH_FAILURES = 16
LONGEST_PAUSE = 60.0
# Seconds after the last failure. A single identity waits less between its first failures.
REMEMBERED = 3600.0
# If the worker that probes dies, another one probes after so many seconds.
PROBE = 30.0


class Priority(StrEnum):
    """Whether a person or upkeep waits for the call."""

    INTERACTIVE = "a person who waits"
    UPKEEP = "nobody who waits"


# The rate limit, and pauses that the service asks for


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
            raise (
                _rate_limited(endpoint, pause)
                if pause
                else exceptions.BudgetSpent("no turn in time")
            )
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
        raise _rate_limited("token", pause)


def _rate_limited(endpoint: str, seconds: float) -> exceptions.RateLimited:
    error = exceptions.RateLimited("all workers pause", endpoint=endpoint, retry_after=seconds)
    error.may_have_arrived = False
    return error


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
    return (index + 1) * window - now + backoff.spread(0.0, 0.1 * window)


def _window(calls: int, seconds: float) -> tuple[int, float]:
    """A short window, so that calls are spread evenly, with at least ten calls if possible."""
    apart = seconds / calls
    window = min(seconds, max(1.0, CALLS_IN_WINDOW * apart))
    return max(1, round(window / apart)), window


# Outages


def note(application: Application, endpoint: str, error: exceptions.IdentityError | None) -> None:
    """The endpoint gave an answer, or failed with ``error``."""
    rejected = isinstance(error, exceptions.ClientRejected)
    name = _failures(application, endpoint)
    if not rejected and not _is_outage(error):
        before = shared_state.read(name)
        if before:
            shared_state.forget(name, _closed(application, endpoint))
        if before >= FAILURES_IN_A_ROW:
            log(LogEvent.SERVICE_BACK, application=application.alias, endpoint=endpoint)
        return
    step = ENOUGH_FAILURES if rejected else 1
    failures = shared_state.count(name, seconds=REMEMBERED, step=step)
    shared_state.keep(name, seconds=REMEMBERED)
    if failures < FAILURES_IN_A_ROW:
        return
    longest = min(LONGEST_PAUSE, 2.0 ** (min(failures, ENOUGH_FAILURES) - FAILURES_IN_A_ROW))
    closed = LONGEST_PAUSE if rejected else backoff.spread(longest / 2, longest)
    shared_state.write(_closed(application, endpoint), 1, seconds=closed)
    if failures - step >= FAILURES_IN_A_ROW:
        return
    facts = {"application": application.alias, "endpoint": endpoint}
    if rejected:
        log_trouble(LogEvent.SERVICE_AWAY, exceptions.ClientRejected(endpoint=endpoint), **facts)
    else:
        log_refusal(LogEvent.SERVICE_AWAY, **facts)


def require_open(application: Application, endpoint: str) -> None:
    """Raises ``ServiceAway`` if upkeep should not call that endpoint now. Admits one probe."""
    if _is_away(application, endpoint) and not shared_state.claim(
        _closed(application, endpoint), seconds=PROBE
    ):
        raise exceptions.ServiceAway("the last calls failed", endpoint=endpoint)


def _is_outage(error: exceptions.IdentityError | None) -> bool:
    """Whether the answer decides nothing about this call: a 5xx, a page, or any other 403.

    A 403 with an unknown code may concern the application, not the person.
    """
    if isinstance(error, (exceptions.ServiceUnavailable, exceptions.MalformedAnswer)):
        return True
    is_403 = isinstance(error, exceptions.ServiceRefusal) and error.status == 403
    known = (*refusals.BY_CODE.values(), exceptions.VerificationPolicyNotMet)
    return is_403 and type(error) not in known


def is_everybodys(application: Application, error: exceptions.IdentityError) -> bool:
    """Whether the client is rejected or the service is down: no failure of one person."""
    rejected = isinstance(error, exceptions.ClientRejected)
    return rejected or (_is_outage(error) and is_away(application))


def is_away(application: Application) -> bool:
    """Whether an endpoint that upkeep needs is down."""
    return any(_is_away(application, endpoint) for endpoint in _upkeep_endpoints(application))


def may_try(application: Application) -> bool:
    """Whether upkeep may call: the service is up, or a probe is due."""
    return not any(
        _is_away(application, endpoint) and shared_state.read(_closed(application, endpoint))
        for endpoint in _upkeep_endpoints(application)
    )


def _upkeep_endpoints(application: Application) -> tuple[str, str]:
    return "token", "claims" if "claims:read" in application.scopes else "kyc"


def _is_away(application: Application, endpoint: str) -> bool:
    return shared_state.read(_failures(application, endpoint)) >= FAILURES_IN_A_ROW


def _failures(application: Application, endpoint: str) -> str:
    return name_of(application, f"{endpoint}.failures")


def _closed(application: Application, endpoint: str) -> str:
    """Exists during a pause, and while a worker probes."""
    return name_of(application, f"{endpoint}.closed")
