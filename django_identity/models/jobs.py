"""When each job of the upkeep was last done."""

from __future__ import annotations

from django.db import models

from django_identity.models.choices import NEVER, Job, Record


class JobRun(Record):
    """One row for each job. ``asked_at``: when a sweep last published the job."""

    job = models.CharField(max_length=16, choices=Job, unique=True)
    done_at = models.DateTimeField(default=NEVER)
    asked_at = models.DateTimeField(default=NEVER)

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.job}: {self.done_at}"
