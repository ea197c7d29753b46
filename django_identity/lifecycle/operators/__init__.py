"""Everything for the site's operators.

- ``overview``: figures of an application
- ``identity_report`` and ``timeline``: the state and the history of one identity
- ``search``: finds identities and events
- ``interventions``: the actions of an operator
- ``credential_check``: verifies one credential and shows all checks
- ``gauges``: figures for metrics
- ``doctor``: finds problems of the installation
"""

from django_identity.lifecycle.operators.credential_check import ask_service, check
from django_identity.lifecycle.operators.doctor import Level, diagnose, is_ready
from django_identity.lifecycle.operators.gauges import gauges
from django_identity.lifecycle.operators.identity_report import Inspection, report_on
from django_identity.lifecycle.operators.interventions import (
    check_credential,
    erase,
    erasure_preview,
    refetch_now,
    revoke,
)
from django_identity.lifecycle.operators.overview import NEWEST_EVENTS, Overview, overview_of
from django_identity.lifecycle.operators.search import (
    find_events,
    find_identities,
    without_grant,
)
from django_identity.lifecycle.operators.timeline import Happening, Kind, activity_of

__all__ = [
    "NEWEST_EVENTS",
    "Happening",
    "Inspection",
    "Kind",
    "Level",
    "Overview",
    "activity_of",
    "ask_service",
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
    "without_grant",
]
