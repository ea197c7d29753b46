"""The database tables: columns, constraints, indexes and named queries. ``lifecycle/`` has rules.

- ``identity``: linked identities; ``grants``: their tokens; ``claims``: their claims
- ``events``: events and erasure receipts; ``subjects``: the lock of a subject
- ``flows``: started sign-ins, redemptions of Connect codes; ``upkeep``: the newest run
- ``choices``: lengths and choices of columns; ``querysets``: named queries
"""

from django_identity.models.choices import (
    AccountKept,
    Consent,
    Environment,
    EventOutcome,
    LinkedVia,
    Purpose,
    RevokedBy,
)
from django_identity.models.claims import StoredClaim
from django_identity.models.events import ErasureReceipt, WebhookEvent
from django_identity.models.flows import AuthorizationRequest, ConnectRedemption
from django_identity.models.grants import TokenGrant
from django_identity.models.identity import LinkedIdentity
from django_identity.models.querysets import digest
from django_identity.models.subjects import SubjectLock
from django_identity.models.upkeep import Overview, UpkeepRun

__all__ = [
    "AccountKept",
    "AuthorizationRequest",
    "ConnectRedemption",
    "Consent",
    "Environment",
    "ErasureReceipt",
    "EventOutcome",
    "LinkedIdentity",
    "LinkedVia",
    "Overview",
    "Purpose",
    "RevokedBy",
    "StoredClaim",
    "SubjectLock",
    "TokenGrant",
    "UpkeepRun",
    "WebhookEvent",
    "digest",
]
