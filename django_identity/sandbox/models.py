"""The tables of the service (spec: Resources and their fields).

The OAuth tables extend django-oauth-toolkit's, which compare with real time. These set and compare
their expiry with ``clock``.
"""
# The toolkit has no type hints, so the plugin cannot see the managers its models get.
# mypy: disable-error-code="django-manager-missing"

import re
import uuid
from datetime import timedelta
from typing import Any, ClassVar, Self

from django.contrib.auth.models import AbstractBaseUser, BaseUserManager
from django.db import models
from oauth2_provider.models import (
    AbstractAccessToken,
    AbstractApplication,
    AbstractGrant,
    AbstractRefreshToken,
)

from django_identity.sandbox import clock
from django_identity.sandbox.titles import CLAIM_TITLES, COUNTRIES

ACCESS_TOKEN_LIFETIME = timedelta(hours=1)
CONNECT_CODE_LIFETIME = timedelta(minutes=10)
CREDENTIAL_LIFETIME_SECONDS = 24 * 60 * 60
_WEB_ORIGIN = re.compile(r"https?://[^/?#\s]+")


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


class Row(models.Model):
    """A table of the sandbox, in the order in which rows were made."""

    class Meta:
        abstract = True
        ordering: ClassVar = ["pk"]

    def __str__(self) -> str:
        return f"{type(self).__name__} #{self.pk}"


class User(AbstractBaseUser):
    """A person with an account at the service.

    ``rejected_for``: why the last verification was rejected, if it was. ``shows_email``: whether a
    profile has the e-mail address. ``is_cast``: one of those whom the sign-in page offers as
    buttons, so nobody needs a password.
    """

    subject = models.CharField(max_length=255, unique=True, default=new_subject)
    environment = models.CharField(
        max_length=4,
        choices=Environment,
        default=Environment.TEST,
    )
    email = models.EmailField(unique=True)
    first_name = models.CharField(max_length=100)
    last_name = models.CharField(max_length=100)
    country = models.CharField(max_length=2, default="NG", choices=COUNTRIES)
    date_of_birth = models.DateField()
    risk_score = models.IntegerField(default=12)
    photo_url = models.URLField(blank=True)
    kyc_status = models.CharField(
        max_length=10,
        choices=KycStatus,
        default=KycStatus.UNVERIFIED,
    )
    kyc_verified_at = models.DateTimeField(null=True)
    rejected_for = models.CharField(max_length=20, blank=True)
    deletion_requested_at = models.DateTimeField(null=True)
    address_proved_at = models.DateTimeField(null=True)
    credential_seconds = models.PositiveIntegerField(
        default=CREDENTIAL_LIFETIME_SECONDS,
    )
    shows_email = models.BooleanField(default=True)
    is_cast = models.BooleanField(default=False)

    USERNAME_FIELD = "email"
    objects: ClassVar[BaseUserManager[Self]] = BaseUserManager()

    def __str__(self) -> str:
        return f"{self.full_name} ({self.email})"

    @property
    def is_verified(self) -> bool:
        """Whether the person passed the verification, and it was not taken back."""
        return self.kyc_status == KycStatus.VERIFIED

    @property
    def has_proof_of_age(self) -> bool:
        """Whether a claim that is not revoked says so."""
        return self.claim_set.filter(claim_type="age_over_18", revoked=False).exists()

    @property
    def kyc_level(self) -> KycLevel:
        """``level_2`` once verified; the specification names no level below ``level_1``."""
        if self.is_verified:
            return KycLevel.LEVEL_2
        return KycLevel.LEVEL_1

    @property
    def is_active(self) -> bool:  # type: ignore[override]  # a constant in the base class
        """Whether the account can be used. A deletion request closes it."""
        return self.deletion_requested_at is None

    @property
    def full_name(self) -> str:
        """First and last name."""
        return f"{self.first_name} {self.last_name}".strip()


class Claim(Row):
    """A verified statement about a person."""

    user = models.ForeignKey(User, models.CASCADE)
    claim_type = models.CharField(max_length=40, choices=CLAIM_TITLES)
    provider = models.CharField(max_length=100)
    value = models.JSONField()
    proof_hash = models.CharField(max_length=64)
    issued_at = models.DateTimeField()
    expires_at = models.DateTimeField(null=True)
    revoked = models.BooleanField(default=False)

    class Meta(Row.Meta):
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["user", "claim_type"],
                name="claim_per_type",
            ),
        ]


class Application(Row):
    """A registered application. Its two credential sets are its clients."""

    app_id = models.UUIDField(unique=True, default=uuid.uuid4)
    name = models.CharField(max_length=200)
    connect_kyc_level = models.CharField(
        max_length=10,
        choices=KycLevel,
        default=KycLevel.LEVEL_1,
    )
    connect_proof_of_address = models.BooleanField(default=False)
    # The key exchange is the approval for the trusted tier (spec: Scopes). Empty: standard tier.
    document_key = models.JSONField(null=True)


class Client(AbstractApplication):
    """One credential set of an application: ``client_id`` and secret for one environment."""

    registered = models.ForeignKey(Application, models.CASCADE)
    environment = models.CharField(max_length=4, choices=Environment)
    webhook_url = models.CharField(max_length=2000, blank=True)
    # Where the same application runs too, one address a line; each gets every event.
    webhook_copies = models.TextField(blank=True)
    webhook_secret = models.CharField(max_length=200, blank=True)
    webhook_held = models.BooleanField(default=False)
    objects: ClassVar[models.Manager[Self]] = models.Manager()

    class Meta(AbstractApplication.Meta):
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["registered", "environment"],
                name="client_per_mode",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.environment})"

    @property
    def site(self) -> str:
        """The origin of the first redirect address; nothing, if that is no web address."""
        found = _WEB_ORIGIN.match(self.redirect_uris)
        return found[0] if found else ""

    def redirect_uri_allowed(self, uri: str) -> bool:
        """Compare exactly; the toolkit would accept any port on a loopback address."""
        return uri in self.redirect_uris.split()


class _Expiring:
    """A row that expires by the sandbox's clock, ``lifetime`` after it was created."""

    lifetime: ClassVar[timedelta]

    def save(self: Any, *args: Any, **kwargs: Any) -> None:
        """Set the expiry when the row is created."""
        if self.pk is None:
            self.expires = clock.now() + self.lifetime
        stored: Any = super()
        stored.save(*args, **kwargs)

    def is_expired(self: Any) -> bool:
        """Compare with the sandbox's clock."""
        return bool(clock.now() >= self.expires)


class Grant(_Expiring, AbstractGrant):
    """An authorization code."""

    lifetime = timedelta(minutes=1)
    objects: ClassVar[models.Manager[Self]] = models.Manager()


class AccessToken(_Expiring, AbstractAccessToken):
    """An access token. Only its digest is stored."""

    lifetime = ACCESS_TOKEN_LIFETIME
    objects: ClassVar[models.Manager[Self]] = models.Manager()


class RefreshToken(_Expiring, AbstractRefreshToken):
    """A refresh token. Only its digest is stored, and the digest of its authorization code.

    ``scope``: what the person allowed. An access token may have less (RFC 6749, section 6).
    """

    lifetime = timedelta(days=30)
    expires = models.DateTimeField()
    scope = models.TextField(blank=True)
    code_digest = models.CharField(max_length=64, blank=True, db_index=True)
    objects: ClassVar[models.Manager[Self]] = models.Manager()


class Consent(Row):
    """A person's permission for one credential set of an application."""

    user = models.ForeignKey(User, models.CASCADE)
    client = models.ForeignKey(Client, models.CASCADE)
    scopes = models.JSONField(default=list)
    granted_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True)

    class Meta:
        ordering: ClassVar = ["-granted_at"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["user", "client"],
                name="consent_per_client",
            ),
        ]


class ConnectCode(Row):
    """A one-time code of a person. ``refusal``: why a redemption shared no data."""

    user = models.ForeignKey(User, models.CASCADE)
    code = models.CharField(max_length=13, unique=True)
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)
    used_by = models.ForeignKey(Client, models.CASCADE, null=True)
    refusal = models.CharField(max_length=40, blank=True)

    class Meta:
        ordering: ClassVar = ["-pk"]

    @property
    def state(self) -> str:
        """``valid``, ``used`` or ``expired``, by the sandbox's clock (spec: States)."""
        if self.used_at is not None:
            return "used"
        if self.expires_at > clock.now():
            return "valid"
        return "expired"


class Notice(Row):
    """A notice on the account page: an application received the person's data."""

    user = models.ForeignKey(User, models.CASCADE)
    client = models.ForeignKey(Client, models.CASCADE)
    scopes = models.JSONField(default=list)
    created_at = models.DateTimeField()

    class Meta:
        ordering: ClassVar = ["-pk"]


class SigningKey(Row):
    """A key pair that signs, or has signed, credentials."""

    kid = models.CharField(max_length=64, unique=True)
    private_jwk = models.JSONField()
    superseded_at = models.DateTimeField(null=True)
    withdrawn = models.BooleanField(default=False)

    class Meta:
        ordering: ClassVar = ["-pk"]


class DeliveryState(models.TextChoices):
    """The state of a delivery."""

    WAITING = "waiting"
    HELD = "held"
    DELIVERED = "delivered"
    FAILED = "failed"


class Delivery(Row):
    """One event for one credential set, with the exact text that is sent, and each attempt.

    It goes to ``copy_to``; if that is empty, to the address that is registered when it is sent.
    ``tries`` counts the attempts since the delivery was last ordered. ``next_attempt_at`` uses the
    sandbox's clock and is empty unless the delivery is waiting.
    """

    client = models.ForeignKey(Client, models.CASCADE)
    event_id = models.CharField(max_length=255)
    event_type = models.CharField(max_length=100)
    user_id = models.CharField(max_length=255)
    body = models.TextField()
    copy_to = models.CharField(max_length=2000, blank=True)
    created_at = models.DateTimeField()
    changed_at = models.DateTimeField(db_index=True)
    state = models.CharField(
        max_length=10,
        choices=DeliveryState,
        default=DeliveryState.WAITING,
    )
    tries = models.PositiveIntegerField(default=0)
    next_attempt_at = models.DateTimeField(null=True)
    attempts = models.JSONField(default=list)

    class Meta(Row.Meta):
        indexes: ClassVar = [
            models.Index(fields=["state", "next_attempt_at"], name="delivery_due"),
        ]

    def __str__(self) -> str:
        return self.body
