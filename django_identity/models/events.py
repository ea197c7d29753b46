"""Webhook events and erasure receipts."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import ClassVar

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from django_identity import conf
from django_identity.event_types import KINDS, Event
from django_identity.models.choices import (
    DIGEST_LENGTH,
    SUBJECT_LENGTH,
    AccountKept,
    AttemptedRecord,
    EventOutcome,
    WhyIgnored,
)
from django_identity.models.querysets import WebhookEventManager, digest
from django_identity.strict_json import JSONObject

NOT_APPLIED_IS_DUE_AFTER = timedelta(minutes=1)
#: By how much an event's time may be after its receipt: the skew of two clocks.
FURTHEST_AHEAD = timedelta(minutes=5)


class WebhookEvent(AttemptedRecord):
    """The content of one webhook delivery. About a subject that is not linked it has no content."""

    event_id = models.CharField(_("event id"), max_length=255, blank=True)
    # What finds a repeat: environment, id, type, and whom it is about. A service that uses an id
    # twice has two events. ``said.events`` has what a repeat does.
    event_digest = models.CharField(max_length=DIGEST_LENGTH)
    event_type = models.CharField(_("type"), max_length=64, blank=True)
    occurred_at = models.DateTimeField(_("occurred"))
    received_at = models.DateTimeField(_("received"))
    subject = models.CharField(_("subject"), max_length=SUBJECT_LENGTH, blank=True)
    subject_digest = models.CharField(max_length=DIGEST_LENGTH, blank=True)
    payload = models.JSONField(_("payload"), blank=True, null=True)
    # What became of the event. Empty until it is applied.
    outcome = models.CharField(
        _("outcome"),
        max_length=10,
        choices=EventOutcome,
        blank=True,
    )
    handled_at = models.DateTimeField(_("handled"), blank=True, null=True)
    # The names of the site's handlers that are done with it.
    handled_by = models.JSONField(blank=True, default=list)

    # Of a deletion request that was read to be applied (``events.apply``).
    others_have_content: bool

    objects: ClassVar[WebhookEventManager[WebhookEvent]] = WebhookEventManager()

    class Meta:
        verbose_name = _("event")
        verbose_name_plural = _("events")
        # On PostgreSQL a unique column would get a second index, for LIKE.
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["event_digest"],
                name="identity_event_once",
            ),
        ]
        indexes: ClassVar = [
            models.Index(
                fields=["subject_digest", "event_type", "occurred_at"],
                name="identity_event_subject",
            ),
            models.Index(
                fields=["outcome", "received_at"],
                name="identity_event_outcome",
            ),
            models.Index(fields=["received_at"], name="identity_event_purge"),
            models.Index(
                fields=["event_type", "received_at"],
                name="identity_event_type",
            ),
        ]
        default_permissions = ("view",)
        permissions: ClassVar = [
            ("replay_webhookevent", "Can replay the handlers of events"),
        ]

    def __str__(self) -> str:
        return f"{self.event_type} #{self.pk}"

    @classmethod
    def of(cls, event: Event, payload: JSONObject | None) -> WebhookEvent:
        """The row of ``event``, until it is applied. It is due after a minute, in case of a crash.

        ``payload``: what is kept of its data. If the event names nobody, it has type, times and
        digest alone.
        """
        now = timezone.now()
        environment = conf.application().environment
        what = (event.event_id, event.event_type, event.subject)
        row = cls(
            event_digest=digest(environment, *what),
            event_type=event.event_type,
            occurred_at=min(event.occurred_at, now + FURTHEST_AHEAD),
            received_at=now,
            next_attempt_at=now + NOT_APPLIED_IS_DUE_AFTER,
        )
        if event.subject:
            row.subject = event.subject
            row.subject_digest = digest(environment, event.subject)
            row.event_id = event.event_id
            row.payload = payload
        return row

    @property
    def counts_from(self) -> datetime:
        """When it occurred, by a clock of this site. A time from the future counts as received."""
        return min(self.occurred_at, self.received_at)

    @property
    def why_ignored(self) -> WhyIgnored | None:
        """The reason of an ignored event."""
        if self.outcome != EventOutcome.IGNORED:
            return None
        if self.event_type not in KINDS:
            return WhyIgnored.UNKNOWN_TYPE
        if not self.subject_digest:
            return WhyIgnored.NAMES_NOBODY
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

    The rows of this package are erased in the transaction that writes it. While it is pending, the
    account waits for the site's part, or a row of the site holds the identity.
    """

    # The key of the account that waits, as text: neither a move nor a deletion by the site changes
    # it. Empty once the erasure is done.
    account = models.CharField(max_length=255, blank=True, null=True)  # noqa: DJ001  it is unique
    # The subject of an identity that the site's own code holds: it is emptied, and deleted later.
    subject_digest = models.CharField(max_length=DIGEST_LENGTH, blank=True)
    # The account came with the identity.
    account_made = models.BooleanField(_("account made for it"), default=False)
    requested_at = models.DateTimeField(_("requested"))
    # The end of the erasure. Empty while it is pending.
    erased_at = models.DateTimeField(_("erased"), blank=True, null=True)
    # The number of deleted rows by table.
    counts = models.JSONField(_("counts"), blank=True, default=dict)
    account_kept = models.CharField(
        _("account kept"),
        max_length=16,
        choices=AccountKept,
        blank=True,
    )
    # The site had deleted the account already, so ``erase_user`` of the policy did not run.
    account_was_gone = models.BooleanField(_("account deleted before"), default=False)

    class Meta:
        verbose_name = _("erasure receipt")
        verbose_name_plural = _("erasure receipts")
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["account"],
                name="identity_receipt_account",
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["erased_at"], name="identity_receipt_pending"),
        ]
        default_permissions = ("view",)

    def __str__(self) -> str:
        return str(_("erasure #%(number)s") % {"number": self.pk})

    def store(self) -> None:
        """Insert or update the row by statements.

        They send no signal: a receiver of the site that raises would undo the erasure.
        """
        receipts = ErasureReceipt.objects.all()
        if self.pk is not None:
            columns = [field.attname for field in self._meta.concrete_fields[1:]]
            changed = {name: getattr(self, name) for name in columns}
            receipts.filter(pk=self.pk).update(**changed)
            return
        receipts.bulk_create([self])
        if self.pk is None:
            # MySQL tells no key. Whoever waits is there once; others differ by their times.
            written = receipts.filter(
                account=self.account,
                subject_digest=self.subject_digest,
                requested_at=self.requested_at,
                erased_at=self.erased_at,
            )
            self.pk = written.latest("pk").pk
