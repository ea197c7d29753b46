"""What the service keeps: people, applications, tokens and codes, claims, consents, notices, keys.

The OAuth tables extend django-oauth-toolkit's, because its own compare with real time: here each
row takes its expiry from ``clock`` when it is made and compares with ``clock`` when it is asked.
"""
# The toolkit has no type hints, so the plugin cannot see the managers its models get.
# mypy: disable-error-code="django-manager-missing"

import uuid
from datetime import timedelta
from typing import ClassVar, Self

from django.contrib.auth.models import AbstractBaseUser, BaseUserManager
from django.db import models
from oauth2_provider.models import (
    AbstractAccessToken,
    AbstractApplication,
    AbstractGrant,
    AbstractRefreshToken,
)

from django_identity.sandbox import (
    clock,
    webhook_models,  # noqa: F401 -- registers its tables
)

CODE_LIFETIME = timedelta(minutes=1)
ACCESS_TOKEN_LIFETIME = timedelta(hours=1)
REFRESH_TOKEN_LIFETIME = timedelta(days=30)
CONNECT_CODE_LIFETIME = timedelta(minutes=10)


class Environment(models.TextChoices):
    """The two worlds that never mix."""

    LIVE = "live"
    TEST = "test"


class KycLevel(models.TextChoices):
    """How far a person is verified, the lowest first."""

    LEVEL_1 = "level_1"
    LEVEL_2 = "level_2"


class KycStatus(models.TextChoices):
    """Where a person stands with identity verification."""

    UNVERIFIED = "unverified"
    VERIFIED = "verified"
    REJECTED = "rejected"


def new_subject() -> str:
    """Return a fresh user identifier."""
    return str(uuid.uuid4())


class User(AbstractBaseUser):
    """A person with an account at the service."""

    subject = models.CharField(max_length=255, unique=True, default=new_subject)
    environment = models.CharField(max_length=4, choices=Environment, default=Environment.TEST)
    email = models.EmailField(unique=True)
    first_name = models.CharField(max_length=100)
    last_name = models.CharField(max_length=100)
    country = models.CharField(max_length=2, default="NG")
    date_of_birth = models.DateField()
    risk_score = models.IntegerField(default=12)
    photo_url = models.URLField(blank=True)
    kyc_status = models.CharField(max_length=10, choices=KycStatus, default=KycStatus.UNVERIFIED)
    kyc_verified_at = models.DateTimeField(null=True)
    deletion_requested_at = models.DateTimeField(null=True)
    address_proved_at = models.DateTimeField(null=True)

    USERNAME_FIELD = "email"
    objects: ClassVar[BaseUserManager[Self]] = BaseUserManager()

    def __str__(self) -> str:
        return f"User #{self.pk}"

    @property
    def kyc_level(self) -> KycLevel:
        """``level_2`` once verified; the specification names no level below ``level_1``."""
        verified = self.kyc_status == KycStatus.VERIFIED
        return KycLevel.LEVEL_2 if verified else KycLevel.LEVEL_1

    @property
    def is_active(self) -> bool:  # type: ignore[override]  # a constant in the base class
        """Whether the account can be used: until its owner asks for deletion."""
        return self.deletion_requested_at is None

    @property
    def full_name(self) -> str:
        """First and last name as one."""
        return f"{self.first_name} {self.last_name}".strip()


class Application(models.Model):
    """A registered application; its two credential sets are its clients."""

    app_id = models.UUIDField(unique=True, default=uuid.uuid4)
    name = models.CharField(max_length=200)
    connect_kyc_level = models.CharField(max_length=10, choices=KycLevel, default=KycLevel.LEVEL_1)
    connect_proof_of_address = models.BooleanField(default=False)

    def __str__(self) -> str:
        return self.name


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
            models.UniqueConstraint(fields=["registered", "environment"], name="client_per_mode"),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.environment})"

    def redirect_uri_allowed(self, uri: str) -> bool:
        """Compare exactly; the toolkit would accept any port on a loopback address."""
        return uri in self.redirect_uris.split()


class Grant(AbstractGrant):
    """An authorization code."""

    objects: ClassVar[models.Manager[Self]] = models.Manager()

    def save(self, *args: object, **kwargs: object) -> None:
        """Take the expiry from the sandbox's clock when the code is made."""
        if self._state.adding:
            self.expires = clock.now() + CODE_LIFETIME
        super().save(*args, **kwargs)

    def is_expired(self) -> bool:
        """Compare with the sandbox's clock."""
        return bool(clock.now() >= self.expires)


class AccessToken(AbstractAccessToken):
    """An access token; only its digest is stored."""

    objects: ClassVar[models.Manager[Self]] = models.Manager()

    def save(self, *args: object, **kwargs: object) -> None:
        """Take the expiry from the sandbox's clock when the token is made."""
        if self._state.adding:
            self.expires = clock.now() + ACCESS_TOKEN_LIFETIME
        super().save(*args, **kwargs)

    def is_expired(self) -> bool:
        """Compare with the sandbox's clock."""
        return bool(clock.now() >= self.expires)


class RefreshToken(AbstractRefreshToken):
    """A refresh token; only its digest is stored."""

    expires = models.DateTimeField()
    objects: ClassVar[models.Manager[Self]] = models.Manager()

    def save(self, *args: object, **kwargs: object) -> None:
        """Take the expiry from the sandbox's clock when the token is made."""
        if self._state.adding:
            self.expires = clock.now() + REFRESH_TOKEN_LIFETIME
        super().save(*args, **kwargs)

    def is_expired(self) -> bool:
        """Compare with the sandbox's clock."""
        return bool(clock.now() >= self.expires)


class Claim(models.Model):
    """A verified statement about a person."""

    user = models.ForeignKey(User, models.CASCADE)
    claim_type = models.CharField(max_length=40)
    provider = models.CharField(max_length=100)
    value = models.JSONField()
    proof_hash = models.CharField(max_length=64)
    issued_at = models.DateTimeField()
    expires_at = models.DateTimeField(null=True)
    revoked = models.BooleanField(default=False)

    class Meta:
        ordering: ClassVar = ["pk"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["user", "claim_type"], name="claim_per_type"),
        ]

    def __str__(self) -> str:
        return self.claim_type


class Consent(models.Model):
    """A person's permission for one credential set of an application."""

    user = models.ForeignKey(User, models.CASCADE)
    client = models.ForeignKey(Client, models.CASCADE)
    scopes = models.JSONField(default=list)
    granted_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True)

    class Meta:
        ordering: ClassVar = ["-granted_at"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["user", "client"], name="consent_per_client"),
        ]

    def __str__(self) -> str:
        return f"Consent #{self.pk}"


class ConnectCode(models.Model):
    """A one-time code that a person made; ``refusal`` says why it gave an application nothing."""

    user = models.ForeignKey(User, models.CASCADE)
    code = models.CharField(max_length=13, unique=True)
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)
    used_by = models.ForeignKey(Client, models.CASCADE, null=True)
    refusal = models.CharField(max_length=40, blank=True)

    class Meta:
        ordering: ClassVar = ["-pk"]

    def __str__(self) -> str:
        return f"Connect code #{self.pk}"


class Notice(models.Model):
    """What a person is told on their account page: an application received their information."""

    user = models.ForeignKey(User, models.CASCADE)
    client = models.ForeignKey(Client, models.CASCADE)
    scopes = models.JSONField(default=list)
    created_at = models.DateTimeField()

    class Meta:
        ordering: ClassVar = ["-pk"]

    def __str__(self) -> str:
        return f"Notice #{self.pk}"


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
