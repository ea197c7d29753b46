"""Everything for the site's operators.

- ``overview``: figures of an application
- ``timeline``: the state and the history of one identity
- ``interventions``: the actions of an operator
- ``doctor``: finds problems of the installation
- ``rotation``: the rotation of the tokens to a new encryption key
"""

from django_identity.lifecycle.operators.doctor import Level, diagnose, figures, is_ready
from django_identity.lifecycle.operators.interventions import (
    TRIED_AT_ONCE,
    disconnect,
    erase,
    erasure_preview,
    refetch_now,
    revoke,
    try_erasures,
)
from django_identity.lifecycle.operators.overview import (
    DayCount,
    Figures,
    attention_of,
    figures_of,
    with_erasures,
)
from django_identity.lifecycle.operators.rotation import Batch, rotate_keys
from django_identity.lifecycle.operators.timeline import (
    GateAnswer,
    Happening,
    Kind,
    activity_of,
    report_on,
)

__all__ = [
    "TRIED_AT_ONCE",
    "Batch",
    "DayCount",
    "Figures",
    "GateAnswer",
    "Happening",
    "Kind",
    "Level",
    "activity_of",
    "attention_of",
    "diagnose",
    "disconnect",
    "erase",
    "erasure_preview",
    "figures",
    "figures_of",
    "is_ready",
    "refetch_now",
    "report_on",
    "revoke",
    "rotate_keys",
    "try_erasures",
    "with_erasures",
]
