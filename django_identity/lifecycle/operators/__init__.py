"""Everything for the site's operators.

- ``overview``: figures of an application, and for metrics
- ``timeline``: the state and the history of one identity
- ``search``: finds identities and events
- ``interventions``: the actions of an operator, and the check of a credential
- ``doctor``: finds problems of the installation
"""

from django_identity.lifecycle.operators.doctor import Level, diagnose, is_ready
from django_identity.lifecycle.operators.interventions import (
    check,
    check_credential,
    erase,
    erasure_preview,
    refetch_now,
    revoke,
)
from django_identity.lifecycle.operators.overview import (
    NEWEST_EVENTS,
    ApplicationFigures,
    gauges,
    overview_of,
)
from django_identity.lifecycle.operators.search import (
    find_events,
    find_identities,
    with_grant,
    without_grant,
)
from django_identity.lifecycle.operators.timeline import (
    Happening,
    Kind,
    activity_of,
    report_on,
)

__all__ = [
    "NEWEST_EVENTS",
    "ApplicationFigures",
    "Happening",
    "Kind",
    "Level",
    "activity_of",
    "check",
    "check_credential",
    "diagnose",
    "erase",
    "erasure_preview",
    "find_events",
    "find_identities",
    "gauges",
    "is_ready",
    "overview_of",
    "refetch_now",
    "report_on",
    "revoke",
    "with_grant",
    "without_grant",
]
