"""The row that an event and an arrival of one subject lock first."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from django_identity import database
from django_identity.models.choices import DIGEST_LENGTH


class SubjectLock(models.Model):
    """A subject whom something is about just now. The row has a meaning inside a transaction alone.

    An event and a first sign-in have only this row in common. Each would miss the other if it were
    left out. The row stays after its transaction. Under PostgreSQL's REPEATABLE READ the
    transaction that waited for the row fails then, and is tried again; without the row it would go
    on with what it saw before.
    """

    # An upsert on another unique column may deadlock on InnoDB.
    digest = models.CharField(max_length=DIGEST_LENGTH, primary_key=True)
    held_at = models.DateTimeField(_("received"), db_index=True)

    objects: ClassVar[database.Manager[SubjectLock]] = database.Manager()

    class Meta:
        verbose_name = _("subject")
        verbose_name_plural = _("subjects")
        base_manager_name = "objects"
        default_permissions = ()

    def __str__(self) -> str:
        return self.digest

    @classmethod
    def hold(cls, digest: str) -> None:
        """Lock the subject until the transaction ends. One statement, whether the row is there."""
        cls.objects.bulk_create(
            [cls(digest=digest, held_at=timezone.now())],
            update_conflicts=True,
            update_fields=["held_at"],
            unique_fields=database.conflict_columns("digest"),
        )
