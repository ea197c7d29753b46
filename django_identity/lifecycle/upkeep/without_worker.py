"""All upkeep in one process, for a site without a worker. It may run beside workers."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field

from django_identity.lifecycle.erasure.retention import Purged, purge
from django_identity.lifecycle.upkeep import follow_up, job_runs, jobs
from django_identity.lifecycle.upkeep.jobs import LONGEST_WORK, Tally
from django_identity.models import Job


@dataclass(slots=True)
class Upkept:
    """What was done. ``purged`` is None if no purge was due."""

    events: int = 0
    kept_alive: int = 0
    purged: Purged | None = None
    refetched: Tally = field(default_factory=Counter)


def run_all(*, stop: Callable[[], bool] = lambda: False) -> Upkept:
    """Do what is due: erasures, event handlers, the hourly jobs, re-fetches. The urgent work first.

    Stops starting re-fetches after four minutes, or when ``stop`` returns true. The rest stays due.
    """
    ends_at = time.monotonic() + LONGEST_WORK
    done = Upkept()
    with job_runs.recorded(Job.RETRY_PENDING):
        done.events = follow_up.retry_pending(stop=stop)
    for job in job_runs.take_due():
        with job_runs.recorded(job):
            if job is Job.KEEP_ALIVE:
                done.kept_alive = jobs.keep_alive(stop=stop)
            else:
                done.purged = purge()
    jobs.mark_all_vanished_keys()
    with job_runs.recorded(Job.SWEEP), closing(jobs.refetch_due()) as outcomes:
        for outcome in outcomes:
            done.refetched[outcome] += 1
            if stop() or time.monotonic() >= ends_at:
                break
    return done
