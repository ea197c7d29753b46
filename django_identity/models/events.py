"""Webhook events and erasure receipts."""

from __future__ import annotations

from datetime import timedelta
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from django_identity import conf
from django_identity.event_types import KINDS
from django_identity.models.choices import (
    DIGEST_LENGTH,
    SUBJECT_LENGTH,
    AccountKept,
    AttemptedRecord,
    EventOutcome,
    WhyIgnored,
)
from django_identity.models.querysets import WebhookEventManager, digest
from django_identity.models.service_fields import ServiceJSON, ServiceText
from django_identity.service.webhooks import Event

NOT_APPLIED_IS_DUE_AFTER = timedelta(minutes=1)
#: The error of an event that names nobody. The names of the members that were there may follow.
NAMES_NOBODY = "names_nobody"


class WebhookEvent(AttemptedRecord):
    """The content of one webhook delivery. About a subject that is not linked it has no content."""

    event_id = ServiceText(_("event id"), max_length=255, blank=True)
    # What finds a repeat: see ``digest_of``.
    event_digest = models.CharField(max_length=DIGEST_LENGTH)
    event_type = ServiceText(_("type"), max_length=64, blank=True)
    occurred_at = models.DateTimeField(_("occurred"))
    received_at = models.DateTimeField(_("received"))
    subject = models.CharField(_("subject"), max_length=SUBJECT_LENGTH, blank=True)
    subject_digest = models.CharField(max_length=DIGEST_LENGTH, blank=True)
    payload = ServiceJSON(_("payload"), blank=True, null=True)
    # What became of the event. Empty until it is applied.
    outcome = models.CharField(
        _("outcome"), max_length=10, choices=EventOutcome, blank=True
    )
    handled_at = models.DateTimeField(_("handled"), blank=True, null=True)
    # The names of the site's handlers that are done with it.
    handled_by = models.JSONField(blank=True, default=list)

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
            models.Index(
                fields=["outcome", "received_at"], name="identity_event_outcome"
            ),
            models.Index(fields=["received_at"], name="identity_event_purge"),
            models.Index(fields=["event_type"], name="identity_event_type"),
        ]
        default_permissions = ("view",)
        permissions: ClassVar = [
            ("replay_webhookevent", "Can replay the handlers of events")
        ]

    def __str__(self) -> str:
        return f"{self.event_type} #{self.pk}"

    @classmethod
    def of(cls, event: Event) -> WebhookEvent:
        """The row of ``event``: type, times and digests. A time from the future counts as now.

        It is due after a minute, in case the process dies before the event is applied.
        """
        now = timezone.now()
        environment = conf.application().environment
        return cls(
            event_digest=cls.digest_of(event, subject=event.subject),
            event_type=event.event_type,
            occurred_at=min(event.occurred_at, now),
            received_at=now,
            subject_digest=event.subject and digest(environment, event.subject),
            next_attempt_at=now + NOT_APPLIED_IS_DUE_AFTER,
        )

    @staticmethod
    def digest_of(event: Event, *, subject: str) -> str:
        """What finds a repeat: environment, id and type, and whom it is about.

        A service that uses an id twice has two events, and an event that named nobody is not the
        same as the one that names its person.
        """
        return digest(
            conf.application().environment,
            event.event_id,
            event.event_type,
            subject,
        )

    @property
    def names_nobody(self) -> bool:
        """Whether the event is of a known type, and does not say whom it is about."""
        if self.outcome != EventOutcome.FAILED:
            return False
        return self.error.startswith(NAMES_NOBODY)

    @property
    def why_ignored(self) -> WhyIgnored | None:
        """The reason of an ignored event."""
        if self.outcome != EventOutcome.IGNORED:
            return None
        if self.event_type not in KINDS:
            return WhyIgnored.UNKNOWN_TYPE
        if not self.subject:
            # An event about nobody who is linked has no content.
            return WhyIgnored.NOT_LINKED
        return WhyIgnored.NOT_COVERED

    @property
    def outcome_in_words(self) -> str:
        """The outcome for operators: of an ignored event with its reason."""
        why = self.why_ignored
        if why is None:
            return self.get_outcome_display()
        return str(why.label)


class ErasureReceipt(AttemptedRecord):
    """A record, without personal data, that an erasure was requested and done.

    While it is pending it points at what is to be erased: the ``identity`` of a request that came
    from the service, with the account; or the ``user`` alone of a request at the site, with all of
    the user's identities. The site may delete either first.
    """

    identity = models.ForeignKey(
        "django_identity.LinkedIdentity",
        on_delete=models.SET_NULL,
        blank=True,
        null=True,
        related_name="+",
    )
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.SET_NULL,
        blank=True,
        null=True,
        related_name="+",
    )
    # The account is asked for, with all its identities, and not one subject.
    of_account = models.BooleanField(_("of the whole account"), default=False)
    # The account came with an identity that is asked for.
    account_made = models.BooleanField(_("account made for it"), default=False)
    requested_at = models.DateTimeField(_("requested"))
    # The end of the erasure. Empty while it is pending.
    erased_at = models.DateTimeField(_("erased"), blank=True, null=True)
    # The number of deleted rows by table.
    counts = models.JSONField(_("counts"), blank=True, default=dict)
    account_kept = models.CharField(
        _("account kept"), max_length=16, choices=AccountKept, blank=True
    )
    # The site had deleted the account already, so ``erase_user`` of the policy did not run.
    account_was_gone = models.BooleanField(_("account deleted before"), default=False)
    # The findings of the search afterwards, by model and field.
    audit = models.JSONField(_("audit"), blank=True, null=True)

    class Meta:
        verbose_name = _("erasure receipt")
        verbose_name_plural = _("erasure receipts")
        indexes: ClassVar = [
            models.Index(fields=["erased_at"], name="identity_receipt_pending")
        ]
        default_permissions = ("view",)

    def __str__(self) -> str:
        return str(_("erasure #%(number)s") % {"number": self.pk})
