"""The tokens of a linked identity."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

from django_identity.models.choices import Record
from django_identity.models.identity import LinkedIdentity


class TokenGrant(Record):
    """The access and refresh token of a linked identity. No page shows them."""

    identity = models.OneToOneField(
        LinkedIdentity,
        on_delete=models.CASCADE,
        related_name="grant",
    )
    # Both tokens, each sealed by ``vault`` for this identity and this column.
    access_token = models.TextField()
    refresh_token = models.TextField(blank=True)
    scopes = models.JSONField(
        _("What it lets this site read"),
        blank=True,
        default=list,
    )
    access_expires_at = models.DateTimeField(_("Access ends"))
    refresh_expires_at = models.DateTimeField(
        _("Permission ends"),
        blank=True,
        null=True,
    )
    # The number of the tokens. A refresh stores its answer only if nobody has raised it since.
    generation = models.PositiveIntegerField(default=1)
    # The end of the lease of the one worker that may refresh. Empty: nobody has it.
    lease_until = models.DateTimeField(blank=True, null=True)
    # The time before which nobody refreshes, after an attempt without a usable answer.
    retry_at = models.DateTimeField(blank=True, null=True)
    # The grant is dead, and only a sign-in helps.
    needs_reauthorization = models.BooleanField(
        _("Needs you to check again"),
        default=False,
    )

    class Meta:
        verbose_name = _("grant")
        verbose_name_plural = _("Permission")
        indexes: ClassVar = [
            models.Index(
                fields=["needs_reauthorization", "access_expires_at"],
                name="identity_grant_dead",
            ),
        ]

    def __str__(self) -> str:
        return f"grant #{self.pk}, generation {self.generation}"
