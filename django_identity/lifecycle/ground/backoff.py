"""How long to wait after failures."""

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
