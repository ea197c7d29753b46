"""Webhook events and erasure receipts."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from django_identity.models.choices import (
    DIGEST_LENGTH,
    SUBJECT_LENGTH,
    AccountKept,
    Environment,
    EventOutcome,
    Retained,
    Timestamped,
)
from django_identity.models.querysets import WebhookEventManager


class WebhookEvent(Timestamped):
    """The content of one webhook delivery. The purge keeps the digest and empties the rest."""

    application = models.CharField(_("application"), max_length=64)
    event_id = models.CharField(_("event id"), max_length=255, blank=True)
    event_digest = models.CharField(max_length=DIGEST_LENGTH)
    body_digest = models.CharField(max_length=DIGEST_LENGTH, blank=True)
    event_type = models.CharField(_("type"), max_length=64, blank=True)
    occurred_at = models.DateTimeField(_("occurred"))
    received_at = models.DateTimeField(_("received"))
    kept = models.PositiveSmallIntegerField(choices=Retained, default=Retained.EVERYTHING)
    subject = models.CharField(_("subject"), max_length=SUBJECT_LENGTH, blank=True)
    subject_digest = models.CharField(max_length=DIGEST_LENGTH, blank=True)
    payload = models.JSONField(_("payload"), null=True)
    outcome = models.CharField(_("outcome"), max_length=10, choices=EventOutcome)
    handled_at = models.DateTimeField(_("handled"), null=True)
    handled_by = models.JSONField(
        default=list, help_text=_("The names of the site's handlers that are done with it.")
    )
    attempts = models.PositiveSmallIntegerField(_("attempts"), default=0)
    next_attempt_at = models.DateTimeField(_("next attempt"), null=True, db_index=True)
    error = models.CharField(_("error"), max_length=255, blank=True)
    history = models.JSONField(
        default=list, help_text=_("Earlier outcomes, oldest first: outcome, error, attempts, at.")
    )

    objects: ClassVar[WebhookEventManager[WebhookEvent]] = WebhookEventManager()

    class Meta:
        verbose_name = _("event")
        verbose_name_plural = _("events")
        # On PostgreSQL a unique column would get a second index, for LIKE.
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["event_digest"], name="identity_event_once")
        ]
        indexes: ClassVar = [
            models.Index(
                fields=["subject_digest", "event_type", "occurred_at"],
                name="identity_event_subject",
            ),
            models.Index(fields=["outcome", "received_at"], name="identity_event_outcome"),
            models.Index(fields=["kept", "received_at"], name="identity_event_purge"),
            models.Index(fields=["event_type", "application"], name="identity_event_type"),
        ]
        default_permissions = ("view",)
        permissions: ClassVar = [("replay_webhookevent", "Can replay the handlers of events")]

    def __str__(self) -> str:
        return f"{self.event_type} #{self.pk}"

    @property
    def is_emptied(self) -> bool:
        """Whether the purge or an erasure has deleted what a handler needs."""
        return self.kept != Retained.EVERYTHING or not self.event_id


class ErasureReceipt(Timestamped):
    """A record, without personal data, that an erasure was requested and done.

    ``subject_digest`` is keyed, so nobody without the site's key can look up a subject in it.
    """

    application = models.CharField(_("application"), max_length=64)
    environment = models.CharField(_("environment"), max_length=4, choices=Environment)
    subject = models.CharField(
        max_length=SUBJECT_LENGTH, blank=True, help_text=_("Empty once everything is erased.")
    )
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        related_name="+",
        help_text=_("Nobody once everything is erased."),
    )
    subject_digest = models.CharField(max_length=DIGEST_LENGTH, db_index=True)
    event_id = models.CharField(_("event id"), max_length=255, blank=True)
    requested_at = models.DateTimeField(_("requested"))
    erased_at = models.DateTimeField(_("erased"), null=True)
    account_made = models.BooleanField(
        default=False, help_text=_("The account was made for the identity.")
    )
    counts = models.JSONField(_("counts"), default=dict)
    account_kept = models.CharField(
        _("account kept"), max_length=16, choices=AccountKept, blank=True
    )
    attempts = models.PositiveSmallIntegerField(_("attempts"), default=0)
    next_attempt_at = models.DateTimeField(_("next attempt"), null=True, db_index=True)
    error = models.CharField(_("error"), max_length=255, blank=True)

    class Meta:
        verbose_name = _("erasure receipt")
        verbose_name_plural = _("erasure receipts")
        indexes: ClassVar = [
            models.Index(fields=["environment", "application"], name="identity_receipt_place"),
            models.Index(fields=["erased_at"], name="identity_receipt_pending"),
            models.Index(fields=["requested_at", "id"], name="identity_receipt_order"),
        ]
        default_permissions = ("view",)

    def __str__(self) -> str:
        return str(_("erasure #%(number)s") % {"number": self.pk})
