"""Named queries. An index serves each of them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from django.contrib.auth import get_user_model
from django.db import models
from django.db.models import F

from django_identity import conf, database
from django_identity.models.subjects import SubjectLock

if TYPE_CHECKING:
    from django_identity.event_types import Event
    from django_identity.models import LinkedIdentity, WebhookEvent
    from django_identity.strict_json import JSONObject

#: A larger number of rows tells an operator nothing more, and would take longer to count.
MOST_COUNTED = 100_000
#: The columns of an identity that its digest is made of.
IN_DIGEST = frozenset({"environment", "subject"})


def digest(*parts: str) -> str:
    """SHA-256 (hex) over ``parts`` with their lengths: equal only if all parts are equal.

    Databases compare text by a collation. A digest is compared exactly on every database.
    """
    hashed = hashlib.sha256()
    for part in parts:
        octets = part.encode()
        hashed.update(len(octets).to_bytes(4) + octets)
    return hashed.hexdigest()


def disabled_account(path: str = "user") -> models.Q:
    """The condition that the account at ``path`` is disabled.

    In a user model without a column ``is_active`` all accounts are active.
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
    def served(self) -> LinkedIdentityQuerySet:
        """The identities of the settings' environment."""
        return self.filter(environment=conf.application().environment)

    def of_user(self, user_id: Any) -> LinkedIdentity | None:
        """The identity of the user, if it counts here (``is_served``)."""
        found = self.filter(user_id=user_id).first()
        if found is None or not found.is_served:
            return None
        return found

    def locked(self, subject_digest: str) -> LinkedIdentity | None:
        """The identity of the subject, locked, or None.

        There is one order of locks: the subject, the identity, the user, the event. Two requests
        that took them in another one would deadlock.
        """
        if not subject_digest:
            return None
        found = self.select_for_update().filter(subject_digest=subject_digest)
        # Not ``first``, which would have the one row sorted.
        return next(iter(found), None)

    def locked_or_held(self, subject_digest: str) -> LinkedIdentity | None:
        """The same. If it is missing, this waits for whoever links the subject meanwhile.

        It is the first statement of its transaction.
        """
        found = self.locked(subject_digest)
        if found is None and subject_digest:
            SubjectLock.hold(subject_digest)
            found = self.locked(subject_digest)
        return found

    def with_user(self) -> LinkedIdentityQuerySet:
        """With the row of the user, which a lock locks after the identity.

        ``is_shown``: whether the site's default manager shows the user.
        """
        rows = self.select_related("user")
        users = database.users()
        if not users.query.where:
            # The manager hides nobody, as most do.
            return rows
        shown = models.Q(user__in=users)
        said = {"is_shown": models.ExpressionWrapper(shown, models.BooleanField())}
        return rows.annotate(**said)

    def locked_row(self, identity: LinkedIdentity) -> LinkedIdentity | None:
        """The row of ``identity`` as it is now, locked, or None if it is gone."""
        return next(iter(self.select_for_update().filter(pk=identity.pk)), None)

    def locked_of_user(self, user_id: Any) -> LinkedIdentity | None:
        """The identity of the user, locked, of either environment."""
        return next(iter(self.select_for_update().filter(user_id=user_id)), None)

    def bulk_create(
        self,
        objs: Iterable[LinkedIdentity],
        *args: Any,
        **kwargs: Any,
    ) -> list[LinkedIdentity]:
        """Insert them, each with its digest."""
        rows = list(objs)
        for row in rows:
            row.subject_digest = row.own_digest
        return super().bulk_create(rows, *args, **kwargs)

    def update(self, **columns: Any) -> int:
        """Update these columns. Rows that move to another user raise ``version``.

        With another environment or subject save each identity instead: one statement makes no
        digest for each row, and without it the row opens nothing.
        """
        if not columns.keys().isdisjoint(("user", "user_id")):
            columns = {"version": F("version") + 1, **columns}
            Changes.note()
        return super().update(**columns)

    def change(self, **columns: Any) -> int:
        """Update these columns and raise ``version``. Returns the number of rows."""
        next_version = {"version": F("version") + 1}
        rows = self.update(**next_version | columns)
        Changes.note()
        return rows

    def change_unchanged(self, identity: LinkedIdentity, **columns: Any) -> int:
        """The same for the row of ``identity``, if nobody has changed it since it was read."""
        row = self.filter(pk=identity.pk, version=identity.version)
        # The number that the condition names: an expression takes Django longer to write.
        return row.change(version=identity.version + 1, **columns)


class WebhookEventQuerySet(models.QuerySet["WebhookEvent"]):
    def stored(self, event: Event, payload: JSONObject | None) -> WebhookEvent:
        """Insert the event with ``payload``. A repeat leaves the row as it is.

        One statement does both: an error would bring the event into the database's log.
        (``ignore_conflicts`` would hide cut texts and lost NULLs on MariaDB.)
        """
        row = self.model.of(event, payload)
        self.bulk_create(
            [row],
            update_conflicts=True,
            update_fields=["event_digest"],
            unique_fields=database.conflict_columns("event_digest"),
        )
        return row


LinkedIdentityManager = database.Manager.from_queryset(LinkedIdentityQuerySet)
WebhookEventManager = database.Manager.from_queryset(WebhookEventQuerySet)
