"""The standing of a user: which gates are open now, and why the others are closed.

Every gate, DRF permission, filter and page uses this package. ``standing`` reads the standing of
one user with one query for each request; ``explanation`` explains it to an operator.
"""

from django_identity.lifecycle.standing.explanation import GateAnswer, shortfall_of_account
from django_identity.lifecycle.standing.standing import (
    UNASKED,
    VERIFIED,
    Reason,
    Requirement,
    Shortfall,
    Standing,
    Unasked,
    require_text,
    revocation_reason,
    shortfall_of,
    standing_of,
)
from django_identity.lifecycle.standing.values import said

__all__ = [
    "UNASKED",
    "VERIFIED",
    "GateAnswer",
    "Reason",
    "Requirement",
    "Shortfall",
    "Standing",
    "Unasked",
    "require_text",
    "revocation_reason",
    "said",
    "shortfall_of",
    "shortfall_of_account",
    "standing_of",
]
