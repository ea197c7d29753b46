"""The database tables: columns, constraints, indexes and named queries. ``lifecycle/`` has rules.

``identity``: linked identities, former links, grants, claims, readings of documents ·
``events``: events and erasure receipts · ``tally``: counts for each day, runs of jobs ·
``flows``: started sign-ins, turns to sign up, redemptions of Connect codes ·
``choices``: lengths and choices of columns · ``querysets``: named queries
"""

from django_identity.models.choices import (
    DIGEST_LENGTH,
    KID_LENGTH,
    NEVER,
    SIGNS_IN,
    SUBJECT_LENGTH,
    AccountKept,
    Consent,
    Environment,
    EventOutcome,
    Job,
    LinkedVia,
    Purpose,
    Retained,
    RevokedBy,
    TallyName,
)
from django_identity.models.events import ErasureReceipt, WebhookEvent
from django_identity.models.flows import AuthorizationRequest, ConnectRedemption, SignUpTurn
from django_identity.models.identity import (
    DocumentReading,
    FormerLink,
    LinkedIdentity,
    Overview,
    StoredClaim,
    TokenGrant,
)
from django_identity.models.querysets import digest, disabled_account, failing, under
from django_identity.models.tally import DailyTally, JobRun

__all__ = [
    "DIGEST_LENGTH",
    "KID_LENGTH",
    "NEVER",
    "SIGNS_IN",
    "SUBJECT_LENGTH",
    "AccountKept",
    "AuthorizationRequest",
    "ConnectRedemption",
    "Consent",
    "DailyTally",
    "DocumentReading",
    "Environment",
    "ErasureReceipt",
    "EventOutcome",
    "FormerLink",
    "Job",
    "JobRun",
    "LinkedIdentity",
    "LinkedVia",
    "Overview",
    "Purpose",
    "Retained",
    "RevokedBy",
    "SignUpTurn",
    "StoredClaim",
    "TallyName",
    "TokenGrant",
    "WebhookEvent",
    "digest",
    "disabled_account",
    "failing",
    "under",
]
