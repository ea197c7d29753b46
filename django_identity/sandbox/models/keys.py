"""The keys that sign credentials and tokens."""

from typing import ClassVar

from django.db import models


class SigningKey(models.Model):
    """A key pair that signs, or has signed, credentials."""

    kid = models.CharField(max_length=64, unique=True)
    private_jwk = models.JSONField()
    created_at = models.DateTimeField()
    superseded_at = models.DateTimeField(null=True)
    withdrawn = models.BooleanField(default=False)

    class Meta:
        ordering: ClassVar = ["-pk"]

    def __str__(self) -> str:
        return self.kid
