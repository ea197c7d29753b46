"""The database tables: columns, constraints, indexes and named queries. ``lifecycle/`` has rules.

``identity``: linked identities, grants, claims · ``events``: events and erasure receipts ·
``flows``: started sign-ins and redemptions of Connect codes · ``tally``: counts for each day ·
``choices``: lengths and choices of columns · ``querysets``: named queries
"""

from django_identity.models.choices import (
    DIGEST_LENGTH,
    KID_LENGTH,
    NEVER,
    SUBJECT_LENGTH,
    AccountKept,
    Consent,
    Environment,
    EventOutcome,
    LinkedVia,
    Purpose,
    Retained,
    TallyName,
)
from django_identity.models.events import ErasureReceipt, WebhookEvent
from django_identity.models.flows import AuthorizationRequest, ConnectRedemption
from django_identity.models.identity import LinkedIdentity, Overview, StoredClaim, TokenGrant
from django_identity.models.querysets import digest, disabled_account
from django_identity.models.tally import DailyTally

__all__ = [
    "DIGEST_LENGTH",
    "KID_LENGTH",
    "NEVER",
    "SUBJECT_LENGTH",
    "AccountKept",
    "AuthorizationRequest",
    "ConnectRedemption",
    "Consent",
    "DailyTally",
    "Environment",
    "ErasureReceipt",
    "EventOutcome",
    "LinkedIdentity",
    "LinkedVia",
    "Overview",
    "Purpose",
    "Retained",
    "StoredClaim",
    "TallyName",
    "TokenGrant",
    "WebhookEvent",
    "digest",
    "disabled_account",
]
