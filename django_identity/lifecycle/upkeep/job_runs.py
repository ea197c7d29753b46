"""When each job was last done, in the database: beat forgets it when its container restarts."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta

from django.utils import timezone

from django_identity.models import Job, JobRun

EVERY = timedelta(hours=1)
#: The jobs that a sweep publishes when they are due.
HOURLY = (Job.KEEP_ALIVE, Job.PURGE)
# A job that was published and not done is published again after this time.
ASKED_AGAIN_AFTER = timedelta(minutes=10)


@contextmanager
def record_run(job: Job) -> Iterator[None]:
    """Record that ``job`` is done, unless the body raises."""
    yield
    JobRun.objects.update_or_create(job=job, defaults={"done_at": timezone.now()})


def take_due() -> list[Job]:
    """The hourly jobs that are due. Only one of several callers gets each."""
    now = timezone.now()
    due = []
    for job in HOURLY:
        JobRun.objects.get_or_create(job=job)
        waiting = JobRun.objects.filter(
            job=job, done_at__lt=now - EVERY, asked_at__lt=now - ASKED_AGAIN_AFTER
        )
        if waiting.update(asked_at=now):
            due.append(job)
    return due


def last_done() -> Mapping[Job, datetime]:
    """When each job was last done. A job that never was is missing."""
    runs = JobRun.objects.exclude(done_at=JobRun._meta.get_field("done_at").default)
    return {Job(run.job): run.done_at for run in runs}
