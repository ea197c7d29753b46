"""How long to wait after failures: a minute, doubled with each failure, up to six hours.

Each pause is random between half of that and all of it.

- A failed re-fetch is tried again for ever (``due.retry``), at ``LinkedIdentity.refetch_due_at``.
- So is a pending erasure (``pending_erasures``), at ``ErasureReceipt.next_attempt_at``.
- So is an event that could not be applied, at ``WebhookEvent.next_attempt_at``. The site's handlers
  of an applied event have 12 tries, in 10 to 21 hours (``follow_up.TRIES``).

Two other pauses have their own lengths: before a refresh token is sent again (``tokens``), and of
all re-fetches after a 429 (``runs``).
"""

import random

FIRST = 60.0
LONGEST = 6 * 3600.0
# Beyond it every pause is the longest one, and the power stays a number.
MOST_DOUBLINGS = 16


def pause(failures: int) -> float:
    """Seconds to wait after that many failures in a row.

    The pause doubles with each failure, up to ``LONGEST``. It is random between half of that and
    all of it: callers with a common failure come back one after another.
    """
    doublings = min(max(failures - 1, 0), MOST_DOUBLINGS)
    grown = min(LONGEST, FIRST * 2.0**doublings)
    return random.uniform(grown / 2, grown)  # noqa: S311  spreads load, guards nothing
