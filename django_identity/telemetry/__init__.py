"""What the site's operators see from outside: log lines, and OpenTelemetry where it is installed.

``logs`` writes log lines with fields and has the JSON formatter · ``otel`` has the names of spans
and metrics
"""

from django_identity.telemetry.logs import (
    JSONFormatter,
    LogEvent,
    log,
    log_error,
    log_failure,
    log_refusal,
    log_trouble,
)
from django_identity.telemetry.otel import (
    Carrier,
    Gauge,
    Measurement,
    Operation,
    carried,
    carrier_names,
    continued,
    is_installed,
    measured,
    observe,
)

__all__ = [
    "Carrier",
    "Gauge",
    "JSONFormatter",
    "LogEvent",
    "Measurement",
    "Operation",
    "carried",
    "carrier_names",
    "continued",
    "is_installed",
    "log",
    "log_error",
    "log_failure",
    "log_refusal",
    "log_trouble",
    "measured",
    "observe",
]
