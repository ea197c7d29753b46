"""Linked identities with their grants and claims."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from django_identity.models import choices
from django_identity.models.choices import (
    DIGEST_LENGTH,
    KID_LENGTH,
    NEVER,
    SUBJECT_LENGTH,
    Consent,
    Environment,
    LinkedVia,
    RevokedBy,
    Timestamped,
)
from django_identity.models.querysets import LinkedIdentityManager, digest

if TYPE_CHECKING:
    from django_identity.vault import Context


class LinkedIdentity(Timestamped):
    """The link between one subject and one user, under one application and environment."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="linked_identities"
    )
    application = models.CharField(_("application"), max_length=64)
    environment = models.CharField(_("environment"), max_length=4, choices=Environment)
    subject = models.CharField(_("subject"), max_length=SUBJECT_LENGTH)
    subject_digest = models.CharField(max_length=DIGEST_LENGTH, editable=False)
    consent = models.CharField(_("consent"), max_length=7, choices=Consent)
    consent_changed_at = models.DateTimeField(_("consent changed"))
    signed_in_at = models.DateTimeField(
        default=NEVER, help_text=_("When the flow began that brought what is held.")
    )
    revoked_at = models.DateTimeField(
        null=True, help_text=_("The newest revocation; sessions from before it have ended.")
    )
    revoked_by = models.CharField(_("revoked by"), max_length=6, choices=RevokedBy, blank=True)
    linked_via = models.CharField(_("linked via"), max_length=7, choices=LinkedVia)
    account_made = models.BooleanField(
        _("account made for it"), default=False, help_text=_("Not an older account of the site.")
    )
    scopes = models.JSONField(_("scopes"), default=list)
    kyc_level = models.CharField(_("KYC level"), max_length=64, blank=True)
    kyc_status = models.CharField(_("KYC status"), max_length=64, blank=True)
    kyc_provider = models.CharField(_("KYC provider"), max_length=255, blank=True)
    kyc_verified_at = models.DateTimeField(_("KYC verified"), null=True)
    kyc_checked_at = models.DateTimeField(
        _("KYC checked"), null=True, help_text=_("When the service last said so.")
    )
    kyc_changed_at = models.DateTimeField(default=NEVER)
    kyc_rank = models.CharField(
        max_length=DIGEST_LENGTH + 1, blank=True, help_text=_("Which of two of one moment wins.")
    )
    credential = models.TextField(blank=True, help_text=_("Sealed."))
    credential_kid = models.CharField(max_length=KID_LENGTH, blank=True)
    credential_issued_at = models.DateTimeField(null=True)
    # The newest revocation of a claim: a credential from before it proves nothing.
    claims_revoked_at = models.DateTimeField(null=True)
    credential_expires_at = models.DateTimeField(_("credential valid until"), null=True)
    refetch_due_at = models.DateTimeField(_("re-fetch due"), null=True)
    # A lease changes no indexed column: the row stays due until its re-fetch is done.
    refetch_taken_until = models.DateTimeField(null=True)
    refetch_started = models.BooleanField(default=False)
    refetch_failures = models.PositiveSmallIntegerField(default=0)
    last_error = models.CharField(max_length=255, blank=True)
    last_event_digest = models.CharField(
        max_length=DIGEST_LENGTH, blank=True, help_text=_("The event that last changed something.")
    )
    connect_request_id = models.CharField(_("Connect request"), max_length=255, blank=True)
    connect_issued_at = models.DateTimeField(_("Connect answer issued"), null=True)
    connect_person = models.CharField(
        _("owner of the Connect code"), max_length=128, blank=True, help_text=_("Masked.")
    )

    objects: ClassVar[LinkedIdentityManager[LinkedIdentity]] = LinkedIdentityManager()

    class Meta:
        verbose_name = _("linked identity")
        verbose_name_plural = _("linked identities")
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["user", "application", "environment"], name="identity_one_per_user"
            ),
            models.UniqueConstraint(fields=["subject_digest"], name="identity_once"),
        ]
        indexes: ClassVar = [
            models.Index(
                fields=["application", "environment", "refetch_due_at", "id"],
                name="identity_refetch_due",
            ),
            models.Index(
                fields=["application", "environment", "credential_kid"],
                name="identity_credential_kid",
            ),
            # For the search by the beginning of a subject: LIKE under any collation of PostgreSQL.
            models.Index(
                fields=["subject"], name="identity_subject", opclasses=["varchar_pattern_ops"]
            ),
            # The overview begins with the most failures.
            models.Index(fields=["refetch_failures", "id"], name="identity_most_failures"),
            # The admin's filters and orders. The first has few different entries, which PostgreSQL
            # stores once each: a condition on any of its columns reads a few megabytes.
            models.Index(
                fields=["environment", "consent", "kyc_status", "kyc_level"], name="identity_facets"
            ),
            models.Index(fields=["credential_expires_at"], name="identity_expiry"),
            models.Index(fields=["created_at"], name="identity_created"),
            models.Index(fields=["refetch_due_at", "id"], name="identity_due_order"),
        ]
        default_permissions = ("view",)
        permissions: ClassVar = [
            ("refetch_linkedidentity", "Can re-fetch linked identities"),
            ("check_linkedidentity", "Can check the credentials of linked identities"),
            ("revoke_linkedidentity", "Can revoke linked identities at this site"),
            ("erase_linkedidentity", "Can erase people with linked identities"),
        ]

    def __str__(self) -> str:
        return f"{self.application}/{self.environment} #{self.pk}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        self.subject_digest = digest(self.application, self.environment, self.subject)
        super().save(*args, **kwargs)

    @property
    def arrived_at(self) -> datetime:
        """When the newest sign-in began, or the newest Connect answer was issued."""
        return max(self.signed_in_at, self.connect_issued_at or NEVER)

    @property
    def is_withdrawn(self) -> bool:
        """Whether the consent was revoked since: a ``consent.granted`` brings nothing back."""
        return self.revoked_at is not None and self.revoked_at >= self.arrived_at

    @property
    def connect_only(self) -> bool:
        """Whether only a Connect code verified this identity, so that it has no claims."""
        return choices.connect_only(
            by_code_at=self.connect_issued_at,
            signed_in_at=self.signed_in_at,
            expires_at=self.credential_expires_at,
        )

    def sealing_context(self, column: str) -> Context:
        """The context that binds a sealed column to this row."""
        return (self.application, self.environment, self.subject, column)


class FormerLink(Timestamped):
    """A subject that was disconnected from an account, as a keyed digest.

    With it the person can come back into the account, and their deletion request finds it.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    application = models.CharField(_("application"), max_length=64)
    environment = models.CharField(_("environment"), max_length=4, choices=Environment)
    subject_digest = models.CharField(max_length=DIGEST_LENGTH, db_index=True)
    linked_via = models.CharField(_("linked via"), max_length=7, choices=LinkedVia)
    account_made = models.BooleanField(_("account made for it"), default=False)

    class Meta:
        verbose_name = _("former link")
        verbose_name_plural = _("former links")
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["user", "subject_digest"], name="identity_former_link_once"
            )
        ]
        default_permissions = ()

    def __str__(self) -> str:
        return f"former link #{self.pk}"


class Overview(LinkedIdentity):
    """A proxy without a table, so that the admin's index can list the overview page."""

    class Meta:
        proxy = True
        default_permissions = ()
        verbose_name = verbose_name_plural = _("overview")


class TokenGrant(Timestamped):
    """The access and refresh token of a linked identity. No page shows them."""

    identity = models.OneToOneField(LinkedIdentity, on_delete=models.CASCADE, related_name="grant")
    access_token = models.TextField(help_text=_("Sealed."))
    refresh_token = models.TextField(blank=True, help_text=_("Sealed."))
    scopes = models.JSONField(default=list)
    access_expires_at = models.DateTimeField()
    refresh_expires_at = models.DateTimeField(null=True, db_index=True)
    generation = models.PositiveIntegerField(default=1)
    lease_until = models.DateTimeField(null=True)
    retry_at = models.DateTimeField(null=True)
    needs_reauthorization = models.BooleanField(default=False)

    class Meta:
        verbose_name = _("grant")
        verbose_name_plural = _("grants")
        indexes: ClassVar = [
            models.Index(fields=["needs_reauthorization"], name="identity_grant_dead")
        ]

    def __str__(self) -> str:
        return f"grant #{self.pk}, generation {self.generation}"

    def sealing_context(self, column: str) -> Context:
        """The context that binds a sealed column to the identity's row."""
        return self.identity.sealing_context(column)


class DocumentReading(Timestamped):
    """One reading of a person's documents, without anything of their content."""

    identity = models.ForeignKey(
        LinkedIdentity, on_delete=models.CASCADE, related_name="document_readings"
    )
    read_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    scope = models.CharField(_("scope"), max_length=64)
    document_types = models.JSONField(_("documents"), default=list)
    view = models.CharField(_("view"), max_length=255)

    class Meta:
        verbose_name = _("reading of documents")
        verbose_name_plural = _("readings of documents")

    def __str__(self) -> str:
        return f"reading #{self.pk}"


class StoredClaim(Timestamped):
    """One claim. The credential proves it if ``valid_until`` is set; else it is only listed."""

    identity = models.ForeignKey(LinkedIdentity, on_delete=models.CASCADE, related_name="claims")
    claim_type = models.CharField(_("claim"), max_length=128)
    provider = models.CharField(_("provider"), max_length=128, blank=True)
    value = models.JSONField(_("value"), null=True)
    proof_hash = models.CharField(_("proof hash"), max_length=255, blank=True)
    issued_at = models.DateTimeField(_("issued"), null=True)
    expires_at = models.DateTimeField(_("expires"), null=True)
    valid_until = models.DateTimeField(_("valid until"), null=True)
    revoked = models.BooleanField(_("revoked"), default=False)

    class Meta:
        verbose_name = _("claim")
        verbose_name_plural = _("claims")
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["identity", "claim_type", "provider"], name="identity_claim_once"
            )
        ]

    def __str__(self) -> str:
        return self.claim_type
