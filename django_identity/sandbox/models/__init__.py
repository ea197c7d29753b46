"""The tables of the service (spec: Resources and their fields)."""

from django_identity.sandbox.models.applications import (
    ACCESS_TOKEN_LIFETIME,
    AccessToken,
    Application,
    Client,
    Grant,
    RefreshToken,
)
from django_identity.sandbox.models.deliveries import (
    Delivery,
    DeliveryAttempt,
    DeliveryState,
    attempts_for,
)
from django_identity.sandbox.models.keys import SigningKey
from django_identity.sandbox.models.people import (
    CONNECT_CODE_LIFETIME,
    CREDENTIAL_LIFETIME_SECONDS,
    Claim,
    ConnectCode,
    Consent,
    Environment,
    KycLevel,
    KycStatus,
    Notice,
    User,
    new_subject,
)

__all__ = [
    "ACCESS_TOKEN_LIFETIME",
    "CONNECT_CODE_LIFETIME",
    "CREDENTIAL_LIFETIME_SECONDS",
    "AccessToken",
    "Application",
    "Claim",
    "Client",
    "ConnectCode",
    "Consent",
    "Delivery",
    "DeliveryAttempt",
    "DeliveryState",
    "Environment",
    "Grant",
    "KycLevel",
    "KycStatus",
    "Notice",
    "RefreshToken",
    "SigningKey",
    "User",
    "attempts_for",
    "new_subject",
]
