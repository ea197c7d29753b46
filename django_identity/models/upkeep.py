"""When upkeep began last, and until when it pauses."""

from __future__ import annotations

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from django_identity.models.choices import NEVER, Record


class UpkeepRun(Record):
    """When the newest run of upkeep began, and until when re-fetches pause. There is one row."""

    # The only key, so that two runs that begin at once do not make two rows.
    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    begun_at = models.DateTimeField(default=NEVER)
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
    def is_paused(self) -> bool:
        return self.paused_until > timezone.now()


class Overview(UpkeepRun):
    """The entry of the overview in the admin's index. It has no table."""

    class Meta:
        proxy = True
        default_permissions = ()
        verbose_name = _("overview")
        verbose_name_plural = _("overview")
