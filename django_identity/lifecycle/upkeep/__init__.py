"""Background work: re-fetch claims, refresh tokens, run event handlers, keep key sets current.

``jobs`` has the functions for tasks and commands, ``due_rows`` the leases of rows, ``claims`` the
re-fetch of one identity, ``tokens`` the refresh under a lease, ``key_sets`` the service's keys,
``sealing`` the rotation of encryption keys, ``follow_up`` the site's event handlers.
"""

from django_identity.lifecycle.upkeep.claims import Refetched
from django_identity.lifecycle.upkeep.follow_up import (
    choose_events,
    replay,
    retry_pending,
    run_handlers,
)
from django_identity.lifecycle.upkeep.jobs import (
    Tally,
    count_due,
    keep_alive,
    refetch_chunk,
    refetch_due,
    refetch_one,
    refetch_these,
    sweep,
    takes_no_calls,
)
from django_identity.lifecycle.upkeep.sealing import (
    COLUMNS,
    ROWS_AT_ONCE,
    Batch,
    count_outdated,
    rotate_keys,
)
from django_identity.lifecycle.upkeep.tallies import DayCount
from django_identity.lifecycle.upkeep.tokens import access_token_for

__all__ = [
    "COLUMNS",
    "ROWS_AT_ONCE",
    "Batch",
    "DayCount",
    "Refetched",
    "Tally",
    "access_token_for",
    "choose_events",
    "count_due",
    "count_outdated",
    "keep_alive",
    "refetch_chunk",
    "refetch_due",
    "refetch_one",
    "refetch_these",
    "replay",
    "retry_pending",
    "rotate_keys",
    "run_handlers",
    "sweep",
    "takes_no_calls",
]
