"""Named queries. An index serves each of them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from datetime import datetime
from itertools import product
from typing import TYPE_CHECKING, Any

from django.contrib.auth import get_user_model
from django.db import models
from django.db.models import Case, F, Value, When

from django_identity import conf, database
from django_identity.conf import Application
from django_identity.models.choices import Environment

if TYPE_CHECKING:
    from django_identity.models import LinkedIdentity, WebhookEvent
    from django_identity.service.webhooks import Event

#: A larger number of rows tells an operator nothing more, and would take longer to count.
MOST_COUNTED = 100_000
#: The columns of an identity that its digest is made of.
IN_DIGEST = frozenset({"application", "environment", "subject"})


def digest(*parts: str) -> str:
    """SHA-256 (hex) over ``parts`` with their lengths: equal only if all parts are equal.

    Databases compare text by a collation. A digest is compared exactly on every database.
    """
    hashed = hashlib.sha256()
    for part in parts:
        hashed.update(len(part.encode()).to_bytes(4) + part.encode())
    return hashed.hexdigest()


def disabled_account(path: str = "user") -> models.Q:
    """The condition that the account at ``path`` is disabled.

    A user model without a column ``is_active`` has no disabled accounts.
    """
    if "is_active" not in database.field_names(get_user_model()):
        return models.Q(pk__in=())
    return models.Q(**{f"{path}__is_active": False})


def number_of(rows: models.QuerySet[Any]) -> int:
    """How many they are, at most ``MOST_COUNTED``."""
    return rows[:MOST_COUNTED].count()


class Changes:
    """The changes of identities by this process: what was read before the newest is out of date."""

    newest: object = object()

    @classmethod
    def note(cls) -> None:
        """Note that an identity, or a claim of one, is changed now."""
        cls.newest = object()


class LinkedIdentityQuerySet(models.QuerySet["LinkedIdentity"]):
    def under(self, application: Application) -> LinkedIdentityQuerySet:
        """The identities under ``application``, in its environment."""
        return self.filter(
            application=application.alias, environment=application.environment
        )

    def served(self) -> LinkedIdentityQuerySet:
        """The identities under any application of the settings."""
        condition = models.Q(pk__in=())
        for site in conf.applications():
            condition |= models.Q(application=site.alias, environment=site.environment)
        return self.filter(condition)

    def of_subject(
        self, alias: str, environment: str, subject: str
    ) -> LinkedIdentityQuerySet:
        """The identity of the subject, if it is linked."""
        return self.filter(subject_digest=digest(alias, environment, subject))

    def of_subject_anywhere(self, subject: str) -> LinkedIdentityQuerySet:
        """Those of the subject under each application of the settings, in both environments."""
        places = product(conf.aliases(), Environment.values)
        digests = [digest(alias, kind, subject) for alias, kind in places]
        return self.filter(subject_digest__in=digests)

    def locked(self, subject_digest: str) -> LinkedIdentity | None:
        """The identity of the subject, locked with all others of its user; None if there is none.

        Whatever ends a session writes all of them. There is one order of locks: the identities by
        their keys, the user, the event. Two requests that took them in another one would deadlock.
        """
        if not subject_digest:
            return None
        if len(conf.aliases()) == 1:
            # Then no event and no sign-in is about another identity of the user.
            found = self.select_for_update().filter(subject_digest=subject_digest)
            return next(iter(found), None)
        return self._locked_by("subject_digest", subject_digest)

    def locked_with_user(self, subject_digest: str) -> LinkedIdentity | None:
        """The same with the row of its user, which the statement locks after it."""
        return self.select_related("user").locked(subject_digest)

    def locked_beside(self, identity: LinkedIdentity) -> LinkedIdentity | None:
        """The row of ``identity``, locked as ``locked`` does, or None if it is gone.

        An operator may have moved it to another account since ``identity`` was read.
        """
        return self._locked_by("pk", identity.pk)

    def _locked_by(self, column: str, value: Any) -> LinkedIdentity | None:
        """The row with this value, locked with all others of its user."""
        owner = self.model.objects.filter(**{column: value}).values("user_id")
        for row in self.lock_those_of(owner[:1]):
            if getattr(row, column) == value:
                return row
        return None

    def lock_those_of(self, user_id: Any) -> list[LinkedIdentity]:
        """All identities of the user, locked in the order of their keys until the transaction ends.

        ``user_id``: a key, or a query for one.
        """
        return list(self.select_for_update().filter(user_id=user_id).order_by("pk"))

    def bulk_create(
        self, objs: Iterable[LinkedIdentity], *args: Any, **kwargs: Any
    ) -> list[LinkedIdentity]:
        """Insert them, each with its digest."""
        rows = list(objs)
        for row in rows:
            row.subject_digest = row.own_digest
        return super().bulk_create(rows, *args, **kwargs)

    def update(self, **columns: Any) -> int:
        """Update these columns. An identity that moves to another user did not make that account.

        Only a site's own code moves one, when it merges accounts. With another application,
        environment or subject save each identity instead: one statement makes no digest for each
        row, and without it the row opens nothing.
        """
        for name in ("user", "user_id"):
            if name in columns:
                is_still_theirs = When(user=columns[name], then="account_made")
                # MySQL compares after it has set what stands before.
                made = {"account_made": Case(is_still_theirs, default=Value(False))}
                columns = made | columns
        return super().update(**columns)

    def change(self, **columns: Any) -> int:
        """Update these columns and raise ``version``. Returns the number of rows."""
        rows = self.update(**{"version": F("version") + 1, **columns})
        Changes.note()
        return rows

    def change_unchanged(self, identity: LinkedIdentity, **columns: Any) -> int:
        """The same for the row of ``identity``, if nobody has changed it since it was read."""
        row = self.filter(pk=identity.pk, version=identity.version)
        # The number that the condition names: an expression takes Django longer to write.
        return row.change(version=identity.version + 1, **columns)


class WebhookEventQuerySet(models.QuerySet["WebhookEvent"]):
    def stored(self, application: Application, event: Event) -> WebhookEvent:
        """Insert the event. A repeat changes nothing.

        One statement for both, and no error in the database, whose log would contain the event.
        (``ignore_conflicts`` would hide cut texts and lost NULLs on MariaDB.)
        """
        row = self.model.of(application, event)
        self.bulk_create(
            [row],
            update_conflicts=True,
            update_fields=["event_digest"],
            unique_fields=database.conflict_columns("event_digest"),
        )
        return row

    def of_subject_since(
        self, subject_digest: str, moment: datetime
    ) -> WebhookEventQuerySet:
        """The subject's events that were received at ``moment`` or later."""
        return self.filter(subject_digest=subject_digest, received_at__gte=moment)


LinkedIdentityManager = database.Manager.from_queryset(LinkedIdentityQuerySet)
WebhookEventManager = database.Manager.from_queryset(WebhookEventQuerySet)
