"""The records: shapes, constraints, indexes and named queries. Their rules stand in ``lifecycle/``.

``identity`` a linked identity, its grant, its claims · ``events`` events and erasure receipts ·
``flows`` sign-ins and Connect codes on their way · ``tally`` counts of a day · ``choices`` what
columns have in common · ``querysets`` queries that have a name
"""

from django_identity.models.choices import (
    DIGEST_LENGTH,
    KID_LENGTH,
    NEVER,
    SUBJECT_LENGTH,
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
from django_identity.models.querysets import digest
from django_identity.models.tally import DailyTally

__all__ = [
    "DIGEST_LENGTH",
    "KID_LENGTH",
    "NEVER",
    "SUBJECT_LENGTH",
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
]
