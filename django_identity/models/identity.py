"""Linked identities. ``grants`` and ``claims`` have what goes with one."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, ClassVar

from django.conf import settings
from django.db import models, router
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from django_identity import conf, database
from django_identity.models.choices import (
    DIGEST_LENGTH,
    NEVER,
    SUBJECT_LENGTH,
    Columns,
    Consent,
    Environment,
    LinkedVia,
    Record,
    RevokedBy,
)
from django_identity.models.querysets import (
    IN_DIGEST,
    Changes,
    LinkedIdentityManager,
    digest,
)
from django_identity.vault import Context


class Version(models.PositiveIntegerField):  # type: ignore[type-arg]  # not at run time
    """A number that each save of a stored row raises in the database, whoever read it when."""

    def pre_save(self, model_instance: models.Model, add: bool) -> Any:
        number = super().pre_save(model_instance, add)
        if add:
            return number
        return models.F(self.attname) + 1


class LinkedIdentity(Record):
    """The link between one subject and one user, in one environment.

    Its writers lock the row, or write by one statement (``change_unchanged``, ``due``,
    ``revoke_listed``). They are:

    - a sign-in or a code: ``linking``, with the columns of ``arrivals``;
    - an event: ``effects``, and for the end of a consent ``withdrawal``;
    - a re-fetch: ``refetch``, with the columns of ``claims`` and ``kyc``; its dates: ``due``;
    - an answer that revokes claims: ``claims`` (its ``version``);
    - the end of the grant: ``grants``; of all sessions: ``sessions``;
    - a site that moves it to another user: ``save``. An operator uses the same functions.

    It is deleted by ``withdrawal`` (disconnected), ``dossier`` (erased), ``interventions`` (the
    links of an environment), and with its user.
    """

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        related_name="linked_identity",
    )
    environment = models.CharField(_("environment"), max_length=4, choices=Environment)
    subject = models.CharField(_("subject"), max_length=SUBJECT_LENGTH)
    subject_digest = models.CharField(max_length=DIGEST_LENGTH)
    consent = models.CharField(_("consent"), max_length=7, choices=Consent)
    # The begin of the newest full sign-in. What was said before it is late.
    signed_in_at = models.DateTimeField(_("signed in"), default=NEVER)
    # The end of the consent. Empty while it is granted, and of a link that never was.
    revoked_at = models.DateTimeField(_("revoked"), blank=True, null=True)
    revoked_by = models.CharField(
        _("revoked by"),
        max_length=6,
        choices=RevokedBy,
        blank=True,
    )
    linked_via = models.CharField(_("connected by"), max_length=7, choices=LinkedVia)
    # The key of the account that came with this link, as text. See ``made_its_account``.
    made_account = models.TextField(_("account made for it"), blank=True)
    # The scopes that the person has allowed: what the consent covers.
    scopes = models.JSONField(_("scopes"), blank=True, default=list)
    kyc_level = models.CharField(_("verification level"), max_length=64, blank=True)
    kyc_status = models.CharField(_("Verification"), max_length=64, blank=True)
    kyc_provider = models.CharField(_("verified by"), max_length=255, blank=True)
    kyc_verified_at = models.DateTimeField(_("Verified on"), blank=True, null=True)
    # The time of the service's newest answer about the level. No event changes it.
    kyc_said_at = models.DateTimeField(_("verification checked"), blank=True, null=True)
    # The dates of the newest verified credential. An older one is refused: ``said.claims``.
    credential_issued_at = models.DateTimeField(
        _("proofs confirmed"),
        blank=True,
        null=True,
    )
    credential_expires_at = models.DateTimeField(
        _("proofs valid until"),
        blank=True,
        null=True,
    )
    # The time from which the re-fetch is due. Empty: it never is. ``said.due`` has its writers.
    refetch_due_at = models.DateTimeField(_("re-fetch due"), blank=True, null=True)
    # The number of re-fetches in a row that failed.
    refetch_failures = models.PositiveSmallIntegerField(default=0)
    # The time of the newest of these failures.
    refetch_failed_at = models.DateTimeField(blank=True, null=True)
    # The code of the newest failure, or of what keeps a claim unproven. Empty: all is read.
    last_error = models.CharField(max_length=255, blank=True)
    # The date of the service's newest answer to a Connect code.
    connect_issued_at = models.DateTimeField(_("code issued"), blank=True, null=True)
    # The masked name of the code's owner, so that the account's owner sees whose it was.
    connect_person = models.CharField(
        _("owner of the code"),
        max_length=128,
        blank=True,
    )
    # The number in every session of the identity sign-in, which ends when it rises.
    session_epoch = models.PositiveIntegerField(default=0)
    # The number of changes. An answer that was asked for before the newest one is discarded.
    version = Version(default=0)

    objects: ClassVar[LinkedIdentityManager[LinkedIdentity]] = LinkedIdentityManager()
    # A sign-in or a code has just written it, so nothing else is stored of it.
    is_new = False
    # Asked by ``with_user`` alone.
    is_shown = True

    class Meta:
        verbose_name = _("linked identity")
        verbose_name_plural = _("linked identities")
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["subject_digest"], name="identity_once"),
            # Withdrawing a link by code deletes it. If it had made the account, the only way in
            # would go with it.
            models.CheckConstraint(
                condition=models.Q(made_account="")
                | models.Q(linked_via=LinkedVia.OAUTH),
                name="identity_made_by_sign_in",
            ),
        ]
        indexes: ClassVar = [
            models.Index(
                fields=["environment", "refetch_due_at", "id"],
                name="identity_refetch_due",
            ),
            # The admin's filters. The first has few different entries, which PostgreSQL stores once
            # each: a condition on any of its columns reads a few megabytes.
            models.Index(
                fields=["environment", "consent", "kyc_status", "kyc_level"],
                name="identity_facets",
            ),
            models.Index(fields=["credential_expires_at"], name="identity_expiry"),
            models.Index(
                fields=["created_at", "environment", "consent"],
                name="identity_created",
            ),
            # Few rows fail. MariaDB has no index for these alone.
            models.Index(
                fields=["refetch_failures", "last_error"],
                name="identity_failing",
            ),
        ]
        default_permissions = ("view",)
        permissions: ClassVar = [
            ("refetch_linkedidentity", "Can re-fetch linked identities"),
            ("revoke_linkedidentity", "Can revoke linked identities at this site"),
            ("erase_linkedidentity", "Can erase people with linked identities"),
        ]

    def __str__(self) -> str:
        return f"{self.environment} #{self.pk}"

    def save(
        self,
        *args: Any,
        update_fields: Iterable[str] | None = None,
        **kwargs: Any,
    ) -> None:
        """Insert the row, or save the columns ``update_fields`` and raise ``version``.

        Raises ``ValueError`` for a stored row without ``update_fields``: what another request has
        written since it was read, such as the end of a consent, would be undone. A copy in another
        database is saved whole.
        """
        if update_fields is None:
            self._require_new(**kwargs)
            self.subject_digest = self.own_digest
            super().save(*args, **kwargs)
        else:
            self._save_columns({*update_fields, "version"}, *args, **kwargs)
        Changes.note()

    def _require_new(
        self,
        *,
        using: str | None = None,
        force_insert: object = False,
        **_kwargs: Any,
    ) -> None:
        into = using or router.db_for_write(type(self), instance=self)
        if force_insert or into != database.alias() or self.pk is None:
            return
        raise ValueError(
            "A stored identity is saved with update_fields alone, such as"
            ' save(update_fields=["user"]).',
        )

    def _save_columns(self, names: set[str], *args: Any, **kwargs: Any) -> None:
        if not names.isdisjoint(IN_DIGEST):
            self.subject_digest = self.own_digest
            names.add("subject_digest")
        known = self.version
        super().save(*args, update_fields=names, **kwargs)
        # If it was read before somebody else's change, its own number stays behind the row's: what
        # it knows counts as out of date.
        self.version = known + 1

    def change(self, **columns: Any) -> None:
        """Update these columns of the row, and take them over with its next version."""
        LinkedIdentity.objects.filter(pk=self.pk).change(**columns)
        self.take_over(columns)

    def take_over(self, columns: Columns) -> None:
        """Take over what was just written of the row: these columns, and the next version."""
        self.set_columns(columns)
        self.version += 1

    def save_changes(self, before: LinkedIdentity) -> None:
        """Save the columns that differ from ``before``, the row as it was read under its lock."""
        names = [field.attname for field in self._meta.concrete_fields]
        self.save(
            update_fields=[
                name for name in names if getattr(self, name) != getattr(before, name)
            ],
        )

    @property
    def own_digest(self) -> str:
        """What ``subject_digest`` has to be: events find the row by it."""
        return digest(self.environment, self.subject)

    @property
    def made_its_account(self) -> bool:
        """Whether the account that it is linked to now came with it, and not an earlier one."""
        return self.made_account == database.key_text(self.user_id)

    @property
    def signs_in(self) -> bool:
        """Whether sessions may rest on it: it is granted, and linked by a full sign-in.

        A link by code gives no power to sign in: the code may be another person's.
        """
        is_granted = self.consent == Consent.GRANTED
        return is_granted and not self.connect_only and self.is_served

    @property
    def arrived_at(self) -> datetime:
        """When the newest sign-in began; for a link by code, when the newest answer was issued.

        Claims come by a sign-in alone, so a code leaves their age as it was.
        """
        if self.connect_only and self.connect_issued_at is not None:
            return self.connect_issued_at
        return self.signed_in_at

    @property
    def kyc_state(self) -> tuple[str, str]:
        """Level and status, of whose change the site is told (``signals.kyc_changed``)."""
        return (self.kyc_level, self.kyc_status)

    @property
    def is_due(self) -> bool:
        """Whether the re-fetch is due now."""
        if self.refetch_due_at is None:
            return False
        return self.refetch_due_at <= timezone.now()

    @property
    def connect_only(self) -> bool:
        """Whether a Connect code alone verified this identity. Then it lacks claims."""
        return self.linked_via == LinkedVia.CONNECT

    @property
    def is_served(self) -> bool:
        """Whether it counts here: of the settings' environment, and found by events.

        Others are there in a copy of another site's database, or where SQL has changed a row.
        """
        if self.environment != conf.application().environment:
            return False
        return self.subject_digest == self.own_digest

    def allows(self, *scopes: str) -> bool:
        """Whether the person's consent is granted and covers one of ``scopes``.

        Empty scopes cover nothing: a service may answer a code with ``"scope": ""`` (RFC 6749
        §3.3).
        """
        if self.consent != Consent.GRANTED:
            return False
        return not set(scopes).isdisjoint(self.scopes)

    def sealing_context(self, column: str) -> Context:
        """The context that binds a sealed column of its grant to this row."""
        return (self.environment, self.subject, column)
