"""What upkeep did last."""

from __future__ import annotations

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from django_identity.models.choices import NEVER, Record


class UpkeepRun(Record):
    """The newest run of upkeep, and until when re-fetches pause. There is one row."""

    # The only key, so that two runs that begin at once do not make two rows.
    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    begun_at = models.DateTimeField(default=NEVER)
    # The number of due rows that it handed to workers. Empty if it re-fetched them itself.
    handed_out = models.PositiveIntegerField(null=True, blank=True)
    # The end of the newest re-fetches, and how those of the run ended: result -> number.
    served_at = models.DateTimeField(default=NEVER)
    results = models.JSONField(default=dict, blank=True)
    # The end of the pause, which the service (429) or an operator asked for.
    paused_until = models.DateTimeField(default=NEVER)

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return "upkeep"

    @property
    def has_begun(self) -> bool:
        """Whether upkeep ever ran."""
        return self.begun_at > NEVER

    @property
    def has_served(self) -> bool:
        """Whether the newest run, or another one since, has re-fetched anybody."""
        return self.served_at >= self.begun_at and self.served_at > NEVER

    @property
    def seconds(self) -> float:
        """How long after its begin the newest re-fetches ended."""
        if not self.has_served:
            return 0.0
        return (self.served_at - self.begun_at).total_seconds()

    @property
    def served(self) -> int:
        """How many re-fetches have ended."""
        return sum(self.results.values())

    @property
    def stored(self) -> int:
        """How many of them have stored something, if only the claims."""
        return sum(
            count for name, count in self.results.items() if name.startswith("stored")
        )

    @property
    def is_paused(self) -> bool:
        return self.paused_until > timezone.now()


class Overview(UpkeepRun):
    """The entry of the overview in the admin's index. It has no table."""

    class Meta:
        proxy = True
        default_permissions = ()
        verbose_name = _("overview")
        verbose_name_plural = _("overview")
