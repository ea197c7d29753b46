"""The standing of a user: which gates are open now, and why the others are closed.

Every gate, DRF permission, filter and page uses this package. ``standing`` reads the standing of
one user with one query for each request; ``explanation`` explains it to an operator.
"""

from django_identity.lifecycle.standing.explanation import GateAnswer
from django_identity.lifecycle.standing.standing import (
    LEVEL,
    UNASKED,
    Reason,
    Requirement,
    Shortfall,
    Standing,
    Unasked,
    is_level,
    require_text,
    shortfall_of,
    standing_of,
)
from django_identity.lifecycle.standing.values import said

__all__ = [
    "LEVEL",
    "UNASKED",
    "GateAnswer",
    "Reason",
    "Requirement",
    "Shortfall",
    "Standing",
    "Unasked",
    "is_level",
    "require_text",
    "said",
    "shortfall_of",
    "standing_of",
]
