"""What the processes of ``tests.crowd`` call."""

from __future__ import annotations

from django_identity import conf
from django_identity.exceptions import BudgetSpent, RateLimited
from django_identity.service import ServiceClient, budget
from django_identity.service.budget import Priority


def turns() -> int:
    """How many calls this process may make at once."""
    for taken in range(100):
        try:
            budget.await_turn(
                conf.application(), Priority.INTERACTIVE, endpoint="claims", patience=0
            )
        except BudgetSpent:
            return taken
    return 100


def read() -> float:
    """Read something; the seconds of the pause if all workers pause, else zero."""
    try:
        ServiceClient(conf.application()).kyc("subject-1", access_token="at")
    except RateLimited as paused:
        return paused.retry_after
    return 0.0
