"""What several tables share: lengths, choices with their labels, manager, time-stamps."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from django.db import models
from django.utils.translation import gettext_lazy as _

from django_identity import database

DIGEST_LENGTH = 64
SUBJECT_LENGTH = 255
KID_LENGTH = 255
# A date before every event. It means "not yet" in columns that queries compare.
NEVER = datetime(1970, 1, 1, tzinfo=UTC)


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
    """How the identity was linked. A ``CONNECT`` identity verifies and never signs in.

    The full sign-in from within the account's session turns the other two into ``OAUTH``.
    """

    OAUTH = "oauth", _("sign-in")
    #: The user of an existing account entered a code, which may be another person's code.
    CONNECT = "connect", _("Connect code")
    #: A code that made the account, where the site's policy lets codes sign people in.
    SIGN_UP = "sign_up", _("sign-up by Connect code")


#: An identity that was linked in one of these ways signs its person in.
SIGNS_IN = (LinkedVia.OAUTH, LinkedVia.SIGN_UP)


class Purpose(models.TextChoices):
    SIGN_IN = "sign_in", _("sign in")
    LINK = "link", _("link")
    RENEW = "renew", _("renew")


class Retained(models.IntegerChoices):
    """How much of a stored event is kept. The purge reduces an event in two steps."""

    EVERYTHING = 0, _("everything")
    NO_PAYLOAD = 1, _("all but the payload")
    DIGEST_ONLY = 2, _("a digest")


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


class TallyName(models.TextChoices):
    SIGNED_IN = "signed_in", _("signed in")
    REFETCHED = "refetched", _("re-fetched")
    REFETCH_FAILED = "refetch_failed", _("re-fetch failed")
    EVENT_CONFLICT = "event_conflict", _("event conflict")
    BAD_SIGNATURE = "bad_signature", _("delivery with a wrong signature")
    BAD_EVENT = "bad_event", _("unreadable delivery")


class Job(models.TextChoices):
    """The jobs of the upkeep. The sweep and the retries run each minute, the others each hour."""

    SWEEP = "sweep"
    RETRY_PENDING = "retry_pending"
    KEEP_ALIVE = "keep_alive"
    PURGE = "purge"


class Record(models.Model):
    """A table whose rows are read where they are written, along relations too."""

    objects = database.Manager()

    class Meta:
        abstract = True
        base_manager_name = "objects"


class Timestamped(Record):
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    updated_at = models.DateTimeField(_("updated"), auto_now=True)

    class Meta(Record.Meta):
        abstract = True

    def save_changes(self, before: Mapping[str, Any]) -> None:
        """Save the columns that differ from ``before``, an earlier copy of ``vars(self)``."""
        changed = [name for name, value in vars(self).items() if value != before.get(name)]
        if changed:
            self.save(update_fields=[*changed, "updated_at"])


def connect_only(
    *, by_code_at: datetime | None, signed_in_at: datetime, expires_at: datetime | None
) -> bool:
    """Whether only a Connect code verified an identity, so that it has no claims to re-fetch.

    ``expires_at`` is the credential's expiry. A sign-in after the code counts even if it brought no
    credential.
    """
    return by_code_at is not None and expires_at is None and signed_in_at < by_code_at
