"""What holds for a user now, why a gate is closed, and how to open it.

Every gate, DRF permission, filter and page asks here and gets the same answer. ``standing``
reads one user's standing with one query a request; ``explanation`` says it to an operator.
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
    affirmed,
    is_level,
    require_text,
    shortfall_of,
    standing_of,
    value_in_text,
)

__all__ = [
    "LEVEL",
    "UNASKED",
    "GateAnswer",
    "Reason",
    "Requirement",
    "Shortfall",
    "Standing",
    "Unasked",
    "affirmed",
    "is_level",
    "require_text",
    "shortfall_of",
    "standing_of",
    "value_in_text",
]
