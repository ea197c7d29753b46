"""How long to wait: after failures, and for as long as the service asks upkeep to."""

import logging
import random

from django.core.cache import cache

from django_identity.conf import Application
from django_identity.exceptions import RateLimited
from django_identity.logs import LogEvent, log_trouble

FIRST, LONGEST = 60.0, 6 * 3600.0
# Beyond it every pause is the longest one, and the power stays a number.
MOST_DOUBLINGS = 16
PAUSE = "django_identity.pause.{}"


def pause(failures: int) -> float:
    """Seconds to wait after that many failures in a row.

    The pause doubles with each failure, up to ``LONGEST``. It is random between half of that and
    all of it, so that callers that failed together do not come back together.
    """
    doublings = min(max(failures - 1, 0), MOST_DOUBLINGS)
    grown = min(LONGEST, FIRST * 2.0**doublings)
    return random.uniform(grown / 2, grown)  # noqa: S311  spreads load, guards nothing


def is_paused(application: Application) -> bool:
    """Whether the service has answered upkeep's last call of this application with a 429.

    The pause is one key of Django's default cache; sites that share one need a ``KEY_PREFIX`` each,
    as everywhere. Without a cache that processes share, or if it
    fails, each process learns of the pause by a 429 of its own.
    """
    try:
        return bool(cache.get(PAUSE.format(application.alias)))
    except Exception as failure:  # noqa: BLE001  any cache's own errors
        _log_cache(application, failure)
        return False


def begin_pause(application: Application, error: RateLimited) -> None:
    """Pause for as long as the service asked for, at least a second."""
    try:
        cache.set(PAUSE.format(application.alias), True, timeout=max(error.pause, 1.0))
    except Exception as failure:  # noqa: BLE001  any cache's own errors
        _log_cache(application, failure)


def _log_cache(application: Application, error: Exception) -> None:
    log_trouble(LogEvent.CACHE_FAILED, error, level=logging.WARNING, application=application.alias)
