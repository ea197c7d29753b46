"""A re-fetch while the person waits: for two seconds at most, and never cut short.

The work goes on in a thread of its own when nobody waits any more: a refresh token that was spent
must have its successor stored.
"""

from __future__ import annotations

import logging
import threading
from concurrent.futures import Future, wait

from django.db import connections

from django_identity.lifecycle.upkeep import jobs
from django_identity.lifecycle.upkeep.claims import Refetched

LONGEST_WAIT = 2.0
MOST_AT_ONCE = 8

logger = logging.getLogger("django_identity.upkeep")
_hands = threading.BoundedSemaphore(MOST_AT_ONCE)


def is_refetched(identity_id: int) -> bool:
    """Re-fetch the identity if it is due, and wait; whether newer claims are stored by then.

    False also while eight others wait in this process, and after a failure, whose pause holds here
    too. Uses a database connection of its own: on SQLite an open transaction keeps it from writing.
    """
    if not _hands.acquire(blocking=False):
        return False
    ended: Future[Refetched | None] = Future()
    threading.Thread(target=_work, args=(identity_id, ended), daemon=True).start()
    wait([ended], timeout=LONGEST_WAIT)
    return ended.done() and ended.result() is Refetched.STORED


def _work(identity_id: int, ended: Future[Refetched | None]) -> None:
    outcome = None
    try:
        outcome = jobs.refetch_one(identity_id)
    except Exception as error:  # noqa: BLE001  the gate stays closed, whatever it was
        logger.error("re-fetching identity #%s inline: %s", identity_id, type(error).__name__)
    finally:
        connections.close_all()
        _hands.release()
        ended.set_result(outcome)
