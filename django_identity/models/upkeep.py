"""When upkeep began last, and until when it pauses."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from django_identity.models.choices import NEVER, Record


class UpkeepRun(Record):
    """When the newest run of upkeep began, and until when its re-fetches pause."""

    application = models.CharField(_("application"), max_length=64)
    begun_at = models.DateTimeField(default=NEVER)
    # The end of the pause, which the service (429) or an operator asked for.
    paused_until = models.DateTimeField(default=NEVER)

    class Meta:
        # On PostgreSQL a unique column would get a second index, for LIKE.
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["application"], name="identity_upkeep_once")
        ]
        default_permissions = ()

    def __str__(self) -> str:
        return self.application

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
