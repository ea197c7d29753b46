"""What is due: re-fetching claims, refreshing tokens, running handlers, keeping keys current.

``jobs`` are the entrances of tasks and commands, ``due_rows`` who has which row in hand, ``claims``
one re-fetch, ``tokens`` one refresh under a lease, ``key_sets`` the service's keys, ``sealing``
encryption at rest, ``follow_up`` what an acknowledged event still needs.
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
