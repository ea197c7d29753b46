"""What several tables share: lengths, choices with their labels, manager."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from django.core.exceptions import FieldDoesNotExist
from django.db import models
from django.utils.translation import gettext_lazy as _

from django_identity import database

DIGEST_LENGTH = 64
SUBJECT_LENGTH = 255
ERROR_LENGTH = 255
# A date before every event. It means "not yet" in columns that queries compare.
NEVER = datetime(1970, 1, 1, tzinfo=UTC)

#: The name of each column that changes, and its new value.
Columns = Mapping[str, Any]


class Environment(models.TextChoices):
    LIVE = "live", _("live")
    TEST = "test", _("test")


class Consent(models.TextChoices):
    GRANTED = "granted", _("granted")
    REVOKED = "revoked", _("revoked")


class RevokedBy(models.TextChoices):
    """Who ended the consent."""

    PERSON = "person", _("the person")
    SITE = "site", _("the site")


class LinkedVia(models.TextChoices):
    """How the identity was linked. A ``CONNECT`` identity verifies its account and never signs in.

    A full sign-in from within the account's session turns it into ``OAUTH``.
    """

    OAUTH = "oauth", _("sign-in")
    #: The user of an account entered a code, which may be another person's code.
    CONNECT = "connect", _("Connect code")


class Purpose(models.TextChoices):
    SIGN_IN = "sign_in", _("sign in")
    LINK = "link", _("link")
    RENEW = "renew", _("renew")


class AccountKept(models.TextChoices):
    """Why an erasure kept the site's account."""

    OLDER = "older", _("It is older than the link.")
    PRIVILEGED = "privileged", _("It belongs to staff.")
    POLICY = "policy", _("The site's policy keeps it.")


class EventOutcome(models.TextChoices):
    APPLIED = "applied", _("applied")
    IGNORED = "ignored", _("ignored")
    SUPERSEDED = "superseded", _("superseded")
    FAILED = "failed", _("failed")


class WhyIgnored(models.TextChoices):
    """Why an event had no effect."""

    UNKNOWN_TYPE = "unknown_type", _("ignored: its type is not known")
    NAMES_NOBODY = "names_nobody", _("ignored: it names nobody")
    NOT_LINKED = "not_linked", _("ignored: nobody is linked to its subject")
    NOT_COVERED = "not_covered", _("ignored: the consent does not cover the level")


class Record(models.Model):
    """A table whose rows are read where they are written, along relations too."""

    created_at = models.DateTimeField(_("created"), auto_now_add=True)

    objects = database.Manager()

    class Meta:
        abstract = True
        base_manager_name = "objects"

    def set_columns(self, columns: Columns) -> None:
        """Set the attributes of these columns. Raises ``FieldDoesNotExist`` for any other name."""
        known = {field.attname for field in self._meta.concrete_fields}
        for name, value in columns.items():
            if name not in known:
                raise FieldDoesNotExist(f"{self._meta.label} has no column {name!r}")
            setattr(self, name, value)


class AttemptedRecord(Record):
    """A row that is attempted until it succeeds, as ``lifecycle.ground.attempts`` says."""

    attempts = models.PositiveSmallIntegerField(_("attempts"), default=0)
    next_attempt_at = models.DateTimeField(
        _("next attempt"),
        blank=True,
        null=True,
        db_index=True,
    )
    error = models.CharField(_("error"), max_length=ERROR_LENGTH, blank=True)

    class Meta:
        abstract = True
