"""Background work: re-fetch claims, refresh tokens, run event handlers, keep key sets current.

``jobs`` has the functions for tasks and commands,
``due_rows`` the leases of rows, ``claims`` one re-fetch, ``replacement`` what an answer changes,
``tokens`` the refresh under a lease, ``key_sets`` the service's keys and what they verify,
``sealing`` the rotation of encryption keys, ``follow_up`` the site's event handlers.
"""

from django_identity.lifecycle.events.tallies import DayCount
from django_identity.lifecycle.upkeep.claims import Refetched
from django_identity.lifecycle.upkeep.follow_up import (
    Replayed,
    choose_events,
    replay,
    results_of,
    retry_pending,
    run_handlers,
    unknown_events,
)
from django_identity.lifecycle.upkeep.jobs import (
    Tally,
    Upkept,
    count_due,
    keep_alive,
    last_done,
    publish_due_jobs,
    record_run,
    refetch_chunk,
    refetch_due,
    refetch_one,
    refetch_these,
    run_all,
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
from django_identity.lifecycle.upkeep.tokens import access_token_for
from django_identity.models import Job

__all__ = [
    "COLUMNS",
    "ROWS_AT_ONCE",
    "Batch",
    "DayCount",
    "Job",
    "Refetched",
    "Replayed",
    "Tally",
    "Upkept",
    "access_token_for",
    "choose_events",
    "count_due",
    "count_outdated",
    "keep_alive",
    "last_done",
    "publish_due_jobs",
    "record_run",
    "refetch_chunk",
    "refetch_due",
    "refetch_one",
    "refetch_these",
    "replay",
    "results_of",
    "retry_pending",
    "rotate_keys",
    "run_all",
    "run_handlers",
    "sweep",
    "takes_no_calls",
    "unknown_events",
]
