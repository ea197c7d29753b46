"""Members of the circles."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models


class Membership(models.Model):
    """One user in one circle."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        related_name="+",
    )
    circle = models.SlugField()
    joined_at = models.DateTimeField(auto_now_add=True)

    objects: ClassVar[models.Manager[Membership]] = models.Manager()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["user", "circle"],
                name="circle_one_seat_each",
            ),
        ]

    def __str__(self) -> str:
        return self.circle
