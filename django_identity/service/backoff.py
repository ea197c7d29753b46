"""How long to wait after failures: one rule for calls, re-fetches, erasures and handlers."""

import random

# Beyond it every pause is the longest one, and the power stays a number.
MOST_DOUBLINGS = 16


def pause(failures: int, *, first: float, longest: float, growth: float = 2.0) -> float:
    """Seconds to wait after that many failures in a row.

    A random value between ``first`` and the grown pause, which is at most ``longest``.
    """
    grown = min(longest, first * growth ** min(failures, MOST_DOUBLINGS))
    return spread(first, grown)


def spread(low: float, high: float) -> float:
    """A random value, so that callers that failed together do not come back together."""
    return random.uniform(low, high)  # noqa: S311  spreads load, guards nothing
