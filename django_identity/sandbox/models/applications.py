"""Applications, their credential sets, and their codes and tokens.

The OAuth tables extend django-oauth-toolkit's, which compare with real time. These tables set and
compare their expiry with ``clock``.
"""
# The toolkit has no type hints, so the plugin cannot see the managers its models get.
# mypy: disable-error-code="django-manager-missing"

import uuid
from datetime import timedelta
from typing import Any, ClassVar, Self

from django.db import models
from oauth2_provider.models import (
    AbstractAccessToken,
    AbstractApplication,
    AbstractGrant,
    AbstractRefreshToken,
)

from django_identity.sandbox.instruments import clock
from django_identity.sandbox.models.people import Environment, KycLevel

CODE_LIFETIME = timedelta(minutes=1)
ACCESS_TOKEN_LIFETIME = timedelta(hours=1)
REFRESH_TOKEN_LIFETIME = timedelta(days=30)


class Application(models.Model):
    """A registered application. Its two credential sets are its clients."""

    app_id = models.UUIDField(unique=True, default=uuid.uuid4)
    name = models.CharField(max_length=200)
    connect_kyc_level = models.CharField(max_length=10, choices=KycLevel, default=KycLevel.LEVEL_1)
    connect_proof_of_address = models.BooleanField(default=False)
    # The key exchange is the approval for the trusted tier (spec: Scopes).
    document_key = models.JSONField(null=True)

    def __str__(self) -> str:
        return self.name

    @property
    def is_trusted(self) -> bool:
        """Whether the application is approved for the trusted tier."""
        return self.document_key is not None


class Client(AbstractApplication):
    """One credential set of an application: ``client_id`` and secret for one environment."""

    registered = models.ForeignKey(Application, models.CASCADE)
    environment = models.CharField(max_length=4, choices=Environment)
    webhook_url = models.URLField(max_length=2000, blank=True)
    webhook_is_local = models.BooleanField(default=False)
    webhook_secret = models.CharField(max_length=200, blank=True)
    webhook_held = models.BooleanField(default=False)
    objects: ClassVar[models.Manager[Self]] = models.Manager()

    class Meta(AbstractApplication.Meta):
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["registered", "environment"], name="client_per_mode")
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.environment})"

    def redirect_uri_allowed(self, uri: str) -> bool:
        """Compare exactly; the toolkit would accept any port on a loopback address."""
        return uri in self.redirect_uris.split()


class _Expiring:
    """A row that expires by the sandbox's clock, ``lifetime`` after it was created."""

    lifetime: ClassVar[timedelta]

    def save(self: Any, *args: Any, **kwargs: Any) -> None:
        """Set the expiry when the row is created."""
        if self._state.adding:
            self.expires = clock.now() + self.lifetime
        stored: Any = super()
        stored.save(*args, **kwargs)

    def is_expired(self: Any) -> bool:
        """Compare with the sandbox's clock."""
        return bool(clock.now() >= self.expires)


class Grant(_Expiring, AbstractGrant):
    """An authorization code."""

    lifetime = CODE_LIFETIME
    objects: ClassVar[models.Manager[Self]] = models.Manager()


class AccessToken(_Expiring, AbstractAccessToken):
    """An access token. Only its digest is stored."""

    lifetime = ACCESS_TOKEN_LIFETIME
    objects: ClassVar[models.Manager[Self]] = models.Manager()


class RefreshToken(_Expiring, AbstractRefreshToken):
    """A refresh token. Only its digest is stored, and the digest of its authorization code."""

    lifetime = REFRESH_TOKEN_LIFETIME
    expires = models.DateTimeField()
    code_digest = models.CharField(max_length=64, blank=True, db_index=True)
    objects: ClassVar[models.Manager[Self]] = models.Manager()
