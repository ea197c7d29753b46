"""The claims of a linked identity."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

from django_identity.models.choices import Record
from django_identity.models.identity import LinkedIdentity


class StoredClaim(Record):
    """One claim. With ``valid_until`` a credential has disclosed it; else it is only listed."""

    identity = models.ForeignKey(
        LinkedIdentity,
        on_delete=models.CASCADE,
        related_name="claims",
    )
    claim_type = models.CharField(_("proof"), max_length=128)
    provider = models.CharField(_("provider"), max_length=128, blank=True)
    value = models.JSONField(_("value"), blank=True, null=True)
    proof_hash = models.CharField(_("proof hash"), max_length=255, blank=True)
    issued_at = models.DateTimeField(_("issued"), blank=True, null=True)
    # The claim's own end, whatever the credential's.
    expires_at = models.DateTimeField(_("expires"), blank=True, null=True)
    # The end of the proof: the claim's own end or the credential's, at most 24 hours after it was
    # read (``said.claims``). Empty: the claim is not proven.
    valid_until = models.DateTimeField(_("valid until"), blank=True, null=True)
    revoked_at = models.DateTimeField(_("revoked"), blank=True, null=True)

    class Meta:
        verbose_name = _("claim")
        verbose_name_plural = _("proofs")
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["identity", "claim_type", "provider"],
                name="identity_claim_once",
            ),
        ]

    def __str__(self) -> str:
        return self.claim_type

    @property
    def revoked(self) -> bool:
        """Whether the claim is revoked. Only a credential that was issued later proves it again."""
        return self.revoked_at is not None
