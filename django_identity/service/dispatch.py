"""Send a call within the rate limit, and retry it if that is safe.

One deadline covers the wait for a turn, all attempts and the pauses between them.
"""

from __future__ import annotations

import time
from dataclasses import replace

from django.views.decorators.debug import sensitive_variables

from django_identity import backoff
from django_identity.conf import Application
from django_identity.exceptions import ServiceError, ServiceTimeout, ServiceUnavailable
from django_identity.service import budget, outage, refusals
from django_identity.service.budget import Priority
from django_identity.service.transport import Answer, Call, exchange

MOST_TRIES = 3
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 0.2
# A call must not use all its time for waiting, because it needs time for the answer.
WAIT_SHARE = 0.75
WAIT_SHARE_ONCE = 0.33
WORTH_RETRYING = (502, 503, 504)


@sensitive_variables()
def send(
    application: Application, call: Call, *, priority: Priority = Priority.INTERACTIVE
) -> Answer:
    """Send ``call`` and return the answer, whatever its status.

    A GET without a connection, or with 502, 503 or 504, is sent up to three times. Other calls are
    sent once. Raises like ``transport.exchange``, and ``RateLimited``, ``BudgetSpent`` or
    ``ServiceAway`` if the call was not sent.
    """
    deadline = time.monotonic() + call.seconds
    tries = MOST_TRIES if call.method == "GET" and not call.sent_once else 1
    for left in reversed(range(tries)):
        _await_turn(application, call, priority, deadline=deadline)
        try:
            answer = _sent(application, call, deadline=deadline)
        except ServiceTimeout:
            raise
        except ServiceUnavailable:
            if not _pause(tries - left, left=left, deadline=deadline):
                raise
            continue
        if answer.status not in WORTH_RETRYING:
            break
        if not _pause(tries - left, left=left, deadline=deadline):
            break
    return answer


def _await_turn(
    application: Application, call: Call, priority: Priority, *, deadline: float
) -> None:
    outage.admit(application, call.endpoint, priority)
    share = WAIT_SHARE_ONCE if call.sent_once else WAIT_SHARE
    patience = deadline - time.monotonic() - call.seconds * (1 - share)
    patience = max(0.0, patience)
    budget.await_turn(application, priority, endpoint=call.endpoint, patience=patience)


@sensitive_variables()
def _sent(application: Application, call: Call, *, deadline: float) -> Answer:
    """Send the call once, and tell all processes whether the service answered."""
    left = deadline - time.monotonic()
    if left <= 0.0:
        late = ServiceTimeout("no time left", endpoint=call.endpoint)
        late.may_have_arrived = False
        raise late
    try:
        answer = exchange(application, replace(call, seconds=left))
    except ServiceUnavailable:
        outage.failed(application, call.endpoint)
        raise
    except ServiceError:
        outage.answered(application, call.endpoint)
        raise
    if answer.status == 429:
        seconds = refusals.pause(answer.headers)
        budget.pause(application, endpoint=call.endpoint, seconds=seconds)
    if refusals.is_outage(answer.status, answer.body) and answer.status != 429:
        outage.failed(application, call.endpoint)
    else:
        outage.answered(application, call.endpoint)
    return answer


def _pause(tried: int, *, left: int, deadline: float) -> bool:
    """Sleep before the next attempt. Returns False if no attempt or no time is left."""
    pause = backoff.pause(tried, first=FIRST_PAUSE, longest=LONGEST_PAUSE, growth=3.0)
    if not left or time.monotonic() + pause >= deadline:
        return False
    time.sleep(pause)
    return True
