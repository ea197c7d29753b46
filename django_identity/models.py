"""The records: shapes, constraints and indexes. What they mean stands in ``lifecycle/``."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from django_identity.managers import (
    AuthorizationRequestQuerySet,
    LinkedIdentityQuerySet,
    digest,
)

if TYPE_CHECKING:
    from django_identity.vault import Context

DIGEST_LENGTH = 64
SUBJECT_LENGTH = 255


class Environment(models.TextChoices):
    LIVE = "live", _("live")
    TEST = "test", _("test")


class Consent(models.TextChoices):
    GRANTED = "granted", _("granted")
    REVOKED = "revoked", _("revoked")


class LinkedVia(models.TextChoices):
    OAUTH = "oauth", _("sign-in")
    CONNECT = "connect", _("Connect code")


class Purpose(models.TextChoices):
    SIGN_IN = "sign_in", _("sign in")
    LINK = "link", _("link")
    RENEW = "renew", _("renew")


class EventOutcome(models.TextChoices):
    APPLIED = "applied", _("applied")
    IGNORED = "ignored", _("ignored")
    SUPERSEDED = "superseded", _("superseded")
    FAILED = "failed", _("failed")


class Timestamped(models.Model):
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    updated_at = models.DateTimeField(_("updated"), auto_now=True)

    class Meta:
        abstract = True


class AuthorizationRequest(Timestamped):
    """One started sign-in, claimed once by the conditional UPDATE of ``consumed_at``."""

    state_digest = models.CharField(max_length=DIGEST_LENGTH, unique=True)
    browser_digest = models.CharField(max_length=DIGEST_LENGTH)
    application = models.CharField(max_length=64)
    environment = models.CharField(max_length=4, choices=Environment)
    purpose = models.CharField(max_length=7, choices=Purpose)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        null=True,
        related_name="+",
        help_text=_("Who started it."),
    )
    completed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        null=True,
        related_name="+",
        help_text=_("Who was signed in or linked by it."),
    )
    next = models.TextField(blank=True)
    code_verifier = models.TextField(help_text=_("Sealed."))
    redirect_uri = models.TextField()
    scopes = models.JSONField(default=list)
    expires_at = models.DateTimeField(db_index=True)
    consumed_at = models.DateTimeField(null=True)
    outcome = models.CharField(max_length=64, blank=True)

    objects = AuthorizationRequestQuerySet.as_manager()

    class Meta:
        verbose_name = _("authorization request")
        verbose_name_plural = _("authorization requests")

    def __str__(self) -> str:
        return f"{self.purpose} ({self.outcome or 'open'})"

    def sealing_context(self) -> Context:
        """What the sealed ``code_verifier`` is bound to: this row and no other."""
        return (self.application, self.environment, self.state_digest, "code_verifier")


class LinkedIdentity(Timestamped):
    """One subject bound to one site user, under one application and environment."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="linked_identities"
    )
    application = models.CharField(_("application"), max_length=64)
    environment = models.CharField(_("environment"), max_length=4, choices=Environment)
    subject = models.CharField(_("subject"), max_length=SUBJECT_LENGTH)
    subject_digest = models.CharField(max_length=DIGEST_LENGTH, unique=True, editable=False)
    consent = models.CharField(_("consent"), max_length=7, choices=Consent)
    consent_changed_at = models.DateTimeField(_("consent changed"))
    linked_via = models.CharField(_("linked via"), max_length=7, choices=LinkedVia)
    scopes = models.JSONField(_("scopes"), default=list)
    kyc_level = models.CharField(_("KYC level"), max_length=64, blank=True)
    kyc_status = models.CharField(_("KYC status"), max_length=64, blank=True)
    kyc_provider = models.CharField(_("KYC provider"), max_length=255, blank=True)
    kyc_verified_at = models.DateTimeField(_("KYC verified"), null=True)
    credential = models.TextField(blank=True, help_text=_("Sealed."))
    credential_issued_at = models.DateTimeField(null=True)
    credential_expires_at = models.DateTimeField(_("credential valid until"), null=True)
    refetch_due_at = models.DateTimeField(_("re-fetch due"), null=True, db_index=True)
    refetch_failures = models.PositiveSmallIntegerField(default=0)
    last_error = models.CharField(max_length=255, blank=True)

    objects = LinkedIdentityQuerySet.as_manager()

    class Meta:
        verbose_name = _("linked identity")
        verbose_name_plural = _("linked identities")
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["user", "application", "environment"], name="identity_one_per_user"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.application}/{self.environment} #{self.pk}"

    def save(self, *args: object, **kwargs: object) -> None:
        self.subject_digest = digest(self.application, self.environment, self.subject)
        super().save(*args, **kwargs)  # type: ignore[arg-type]  # passed on as they came

    def sealing_context(self, column: str) -> Context:
        """What a sealed column of this identity is bound to."""
        return (self.application, self.environment, self.subject, column)


class TokenGrant(Timestamped):
    """The access and refresh token of a linked identity; never shown anywhere."""

    identity = models.OneToOneField(LinkedIdentity, on_delete=models.CASCADE, related_name="grant")
    access_token = models.TextField(help_text=_("Sealed."))
    refresh_token = models.TextField(blank=True, help_text=_("Sealed."))
    scopes = models.JSONField(default=list)
    access_expires_at = models.DateTimeField()
    refresh_expires_at = models.DateTimeField(null=True, db_index=True)
    generation = models.PositiveIntegerField(default=1)
    lease_until = models.DateTimeField(null=True)
    needs_reauthorization = models.BooleanField(default=False)

    class Meta:
        verbose_name = _("grant")
        verbose_name_plural = _("grants")

    def __str__(self) -> str:
        return f"grant #{self.pk}, generation {self.generation}"


class StoredClaim(Timestamped):
    """One claim: proven by the credential if ``valid_until`` is set, only listed if it is not."""

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
            ),
        ]

    def __str__(self) -> str:
        return self.claim_type


class WebhookEvent(Timestamped):
    """One webhook delivery's content. The digest outlives the purged row's payload and subject."""

    application = models.CharField(_("application"), max_length=64)
    event_id = models.CharField(_("event id"), max_length=255, blank=True)
    event_digest = models.CharField(max_length=DIGEST_LENGTH, unique=True)
    event_type = models.CharField(_("type"), max_length=64, blank=True)
    occurred_at = models.DateTimeField(_("occurred"))
    received_at = models.DateTimeField(_("received"), db_index=True)
    subject = models.CharField(_("subject"), max_length=SUBJECT_LENGTH, blank=True)
    subject_digest = models.CharField(max_length=DIGEST_LENGTH, blank=True)
    payload = models.JSONField(_("payload"), null=True)
    outcome = models.CharField(_("outcome"), max_length=10, choices=EventOutcome)
    handled_at = models.DateTimeField(_("handled"), null=True)
    attempts = models.PositiveSmallIntegerField(_("attempts"), default=0)
    next_attempt_at = models.DateTimeField(_("next attempt"), null=True, db_index=True)
    error = models.CharField(_("error"), max_length=255, blank=True)

    class Meta:
        verbose_name = _("event")
        verbose_name_plural = _("events")
        indexes: ClassVar = [
            models.Index(
                fields=["subject_digest", "event_type", "occurred_at"],
                name="identity_event_subject",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.event_type} ({self.outcome})"


class ErasureReceipt(Timestamped):
    """What remains of an erased person: that it was done, and nothing about whom."""

    application = models.CharField(_("application"), max_length=64)
    environment = models.CharField(_("environment"), max_length=4, choices=Environment)
    subject_digest = models.CharField(max_length=DIGEST_LENGTH, db_index=True)
    event_id = models.CharField(_("event id"), max_length=255, blank=True)
    requested_at = models.DateTimeField(_("requested"))
    erased_at = models.DateTimeField(_("erased"), null=True)
    counts = models.JSONField(_("counts"), default=dict)

    class Meta:
        verbose_name = _("erasure receipt")
        verbose_name_plural = _("erasure receipts")

    def __str__(self) -> str:
        return f"erasure #{self.pk}"
