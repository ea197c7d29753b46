"""Send a call within the rate limit, and retry it if that is safe.

One deadline covers the wait for a turn, all attempts and the pauses between them.
"""

import time

from django.views.decorators.debug import sensitive_variables

from django_identity.conf import Application
from django_identity.exceptions import ServiceError, ServiceTimeout, ServiceUnavailable
from django_identity.service import backoff, budget, refusals
from django_identity.service.budget import Priority
from django_identity.service.transport import Answer, Call, exchange, seconds_left, within
from django_identity.telemetry import Operation, measured

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
    tries = MOST_TRIES if call.method == "GET" and not call.sent_once else 1
    with within(call.seconds):
        reserved = seconds_left() * (1 - (WAIT_SHARE_ONCE if call.sent_once else WAIT_SHARE))
        for left in reversed(range(tries)):
            if priority is Priority.UPKEEP:
                budget.require_open(application, call.endpoint)
            patience = max(0.0, seconds_left() - reserved)
            budget.await_turn(application, priority, endpoint=call.endpoint, patience=patience)
            try:
                answer = _send_once(application, call)
            except ServiceTimeout:
                raise
            except ServiceUnavailable:
                if not _pause(tries - left, left=left):
                    raise
                continue
            if answer.status not in WORTH_RETRYING or not _pause(tries - left, left=left):
                break
    return answer


@sensitive_variables()
def _send_once(application: Application, call: Call) -> Answer:
    """Send the call once, and tell all processes whether the service answered."""
    if seconds_left() <= 0.0:
        late = ServiceTimeout("no time left", endpoint=call.endpoint)
        late.may_have_arrived = False
        raise late
    facts = {"application": application.alias, "endpoint": call.endpoint}
    try:
        with measured(Operation.CALL, **facts) as measurement:
            answer = exchange(application, call)
            measurement.outcome = str(answer.status)
    except ServiceError as error:
        # A readable failure, such as a redirect, is an answer too.
        is_answer = not isinstance(error, ServiceUnavailable)
        budget.note(application, call.endpoint, None if is_answer else error)
        raise
    if answer.status == 429:
        budget.pause(application, endpoint=call.endpoint, seconds=refusals.pause(answer.headers))
    budget.note(application, call.endpoint, refusals.error_in(application, call.endpoint, answer))
    return answer


def _pause(tried: int, *, left: int) -> bool:
    """Sleep before the next attempt. Returns False if no attempt or no time is left."""
    pause = backoff.pause(tried, first=FIRST_PAUSE, longest=LONGEST_PAUSE, growth=3.0)
    if not left or pause >= seconds_left():
        return False
    time.sleep(pause)
    return True
