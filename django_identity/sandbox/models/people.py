"""People with their claims, consents, Connect codes and notices."""
# The toolkit has no type hints, so the plugin cannot see the managers its models get.
# mypy: disable-error-code="django-manager-missing"

import uuid
from datetime import timedelta
from typing import ClassVar, Self

from django.contrib.auth.models import AbstractBaseUser, BaseUserManager
from django.db import models

CONNECT_CODE_LIFETIME = timedelta(minutes=10)
CREDENTIAL_LIFETIME_SECONDS = 24 * 60 * 60


class Environment(models.TextChoices):
    """The two environments, which never mix."""

    LIVE = "live"
    TEST = "test"


class KycLevel(models.TextChoices):
    """The KYC levels, lowest first."""

    LEVEL_1 = "level_1"
    LEVEL_2 = "level_2"


class KycStatus(models.TextChoices):
    """The state of a person's verification."""

    UNVERIFIED = "unverified"
    VERIFIED = "verified"
    REJECTED = "rejected"


def new_subject() -> str:
    """Return a new user identifier."""
    return str(uuid.uuid4())


class User(AbstractBaseUser):
    """A person with an account at the service.

    ``is_cast``: one of those whom the sign-in page offers as buttons, so nobody needs a password.
    ``language``: the one in which they made their last Connect code, for e-mails.
    """

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
    credential_seconds = models.PositiveIntegerField(default=CREDENTIAL_LIFETIME_SECONDS)
    is_cast = models.BooleanField(default=False)
    language = models.CharField(max_length=10, default="en")

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
        """Whether the account can be used. A deletion request closes it."""
        return self.deletion_requested_at is None

    @property
    def full_name(self) -> str:
        """First and last name."""
        return f"{self.first_name} {self.last_name}".strip()


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
            models.UniqueConstraint(fields=["user", "claim_type"], name="claim_per_type")
        ]

    def __str__(self) -> str:
        return self.claim_type


class Consent(models.Model):
    """A person's permission for one credential set of an application."""

    user = models.ForeignKey(User, models.CASCADE)
    client = models.ForeignKey("sandbox.Client", models.CASCADE)
    scopes = models.JSONField(default=list)
    granted_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True)

    class Meta:
        ordering: ClassVar = ["-granted_at"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["user", "client"], name="consent_per_client")
        ]

    def __str__(self) -> str:
        return f"Consent #{self.pk}"


class ConnectCode(models.Model):
    """A one-time code of a person. ``refusal``: why a redemption shared no data."""

    user = models.ForeignKey(User, models.CASCADE)
    code = models.CharField(max_length=13, unique=True)
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)
    used_by = models.ForeignKey("sandbox.Client", models.CASCADE, null=True)
    refusal = models.CharField(max_length=40, blank=True)

    class Meta:
        ordering: ClassVar = ["-pk"]

    def __str__(self) -> str:
        return f"Connect code #{self.pk}"


class Notice(models.Model):
    """A notice on the account page: an application received the person's data."""

    user = models.ForeignKey(User, models.CASCADE)
    client = models.ForeignKey("sandbox.Client", models.CASCADE)
    scopes = models.JSONField(default=list)
    created_at = models.DateTimeField()

    class Meta:
        ordering: ClassVar = ["-pk"]

    def __str__(self) -> str:
        return f"Notice #{self.pk}"
