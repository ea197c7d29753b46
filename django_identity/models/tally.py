"""Counts for each day, and when each job of the upkeep was last done."""

from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

from django_identity.models.choices import NEVER, Environment, Job, Record, TallyName


class DailyTally(Record):
    """How often something happened on one day (UTC). It contains no personal data."""

    day = models.DateField()
    application = models.CharField(max_length=64)
    environment = models.CharField(max_length=4, choices=Environment)
    name = models.CharField(max_length=16, choices=TallyName)
    count = models.PositiveBigIntegerField(default=0)

    class Meta:
        verbose_name = _("daily tally")
        verbose_name_plural = _("daily tallies")
        default_permissions = ()
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["day", "application", "environment", "name"], name="identity_tally_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.day} {self.name}: {self.count}"


class JobRun(Record):
    """One row for each job. ``asked_at``: when a sweep last published the job."""

    job = models.CharField(max_length=16, choices=Job, unique=True)
    done_at = models.DateTimeField(default=NEVER)
    asked_at = models.DateTimeField(default=NEVER)

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.job}: {self.done_at}"
