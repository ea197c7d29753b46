"""What operators see: log lines, and OpenTelemetry (extra ``otel``) where it is installed.

A line has codes, names, row ids and references, and never a person. Each fact stands in the text of
the line, and in a field of its own (``extra``) for formatters.

Attributes of spans and metrics are codes and names: no subject, no user, no address. Messages of
exceptions are not recorded, because they may contain personal data.
"""

import json
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from functools import cache, partial
from typing import Any

from django_identity.exceptions import IdentityError

try:
    from opentelemetry import context, metrics, propagate, trace
except ImportError:  # the extra is not installed
    is_installed = False
else:
    is_installed = True

NAME = "django_identity"
logger = logging.getLogger(NAME)
OK = "ok"
DURATION = ".duration"
SNAPSHOT_SECONDS = 1.0
#: What a message of a task carries of the trace, in its headers.
Carrier = dict[str, str]
Figures = Iterable[tuple["Gauge", float, Mapping[str, str]]]


class Operation(StrEnum):
    """Work that is measured: a span, a counter of the same name, and a histogram of seconds.

    The attribute ``outcome`` is ``ok`` or a code.
    """

    CALL = "identity.service.call"
    VERIFICATION = "identity.verification"
    EVENT = "identity.event"
    SWEEP = "identity.sweep"
    ERASURE = "identity.erasure"


class Gauge(StrEnum):
    """What is read from the database when metrics are collected."""

    DUE = "identity.due"
    FAILING = "identity.failing"
    LAG = "identity.sweep.lag"
    OLDEST = "identity.erasure.oldest"


SECONDS = (Gauge.LAG, Gauge.OLDEST)


@dataclass(slots=True)
class Measurement:
    """The measurement in progress. The body sets ``outcome``, and may add attributes."""

    outcome: str = OK
    attributes: dict[str, str] = field(default_factory=dict)


@contextmanager
def measured(operation: Operation, **attributes: str) -> Iterator[Measurement]:
    """Measure the body: one span, one count, one duration. An exception's code is the outcome."""
    measurement = Measurement(attributes=attributes)
    if not is_installed:
        yield measurement
        return
    began = time.monotonic()
    spans = trace.get_tracer(NAME).start_as_current_span(
        operation.value, record_exception=False, set_status_on_exception=False
    )
    with spans as span:
        try:
            yield measurement
        except BaseException as error:
            measurement.outcome = error.code if isinstance(error, IdentityError) else "error"
            span.set_status(trace.StatusCode.ERROR, measurement.outcome)
            raise
        finally:
            facts = {**measurement.attributes, "outcome": measurement.outcome}
            span.set_attributes(facts)
            _counter(operation.value).add(1, facts)
            _histogram(operation.value + DURATION).record(time.monotonic() - began, facts)


def carried() -> Carrier:
    """The current trace, for the headers of a message."""
    carrier: Carrier = {}
    if is_installed:
        propagate.inject(carrier)
    return carrier


def carrier_names() -> Iterable[str]:
    """The names under which a message may carry a trace."""
    return propagate.get_global_textmap().fields if is_installed else ()


@contextmanager
def continued(carrier: Carrier, *, task: str) -> Iterator[None]:
    """Run the body as part of the trace of a message, in a span with the task's name."""
    if not is_installed:
        yield
        return
    token = context.attach(propagate.extract(carrier))
    try:
        with trace.get_tracer(NAME).start_as_current_span(
            task,
            kind=trace.SpanKind.CONSUMER,
            record_exception=False,
            set_status_on_exception=False,
        ):
            yield
    finally:
        context.detach(token)


def observe(figures: Callable[[], Figures]) -> None:
    """Register the gauges. ``figures`` is called each time metrics are collected."""
    if not is_installed:
        return
    meter, snapshot = metrics.get_meter(NAME), _Snapshot(figures)
    for gauge in Gauge:
        meter.create_observable_gauge(
            gauge.value, [partial(_read, gauge, snapshot)], unit="s" if gauge in SECONDS else ""
        )


@dataclass(slots=True)
class _Snapshot:
    """The figures, read once for all gauges of a collection."""

    figures: Callable[[], Figures]
    read_at: float = 0.0
    values: tuple[tuple[Gauge, float, Mapping[str, str]], ...] = ()

    def current(self) -> Figures:
        now = time.monotonic()
        if now - self.read_at > SNAPSHOT_SECONDS:
            self.values, self.read_at = tuple(self.figures()), now
        return self.values


def _read(gauge: Gauge, snapshot: _Snapshot, _options: object) -> list[Any]:
    return [
        metrics.Observation(value, dict(attributes))
        for name, value, attributes in snapshot.current()
        if name is gauge
    ]


@cache
def _counter(name: str) -> Any:
    return metrics.get_meter(NAME).create_counter(name)


@cache
def _histogram(name: str) -> Any:
    return metrics.get_meter(NAME).create_histogram(name, unit="s")


class LogEvent(StrEnum):
    SIGN_IN_COMPLETED = "identity.sign_in.completed"
    SIGN_IN_FAILED = "identity.sign_in.failed"
    CONNECT_REDEEMED = "identity.connect.redeemed"
    CONNECT_FAILED = "identity.connect.failed"
    REFETCH_FAILED = "identity.refetch.failed"
    USER_FIELDS_REFUSED = "identity.user_fields.refused"
    LINK_NOTICE_FAILED = "identity.link_notice.failed"
    DOCUMENTS_READ = "identity.documents.read"
    DOCUMENTS_FAILED = "identity.documents.failed"
    DISCONNECTED = "identity.disconnected"
    EVENT_RECEIVED = "identity.event.received"
    EVENT_REFUSED = "identity.event.refused"
    HANDLER_FAILED = "identity.event.handler_failed"
    EVENTS_NOT_HANDLED = "identity.event.not_handled"
    SERVICE_AWAY = "identity.service.away"
    SERVICE_BACK = "identity.service.back"
    GRANT_LOST = "identity.grant.lost"
    ERASED = "identity.erasure.done"
    ERASURE_FAILED = "identity.erasure.failed"


#: The counter that a line increases.
COUNTED = {
    LogEvent.SIGN_IN_COMPLETED: "identity.sign_in",
    LogEvent.SIGN_IN_FAILED: "identity.sign_in",
    LogEvent.CONNECT_REDEEMED: "identity.connect",
    LogEvent.CONNECT_FAILED: "identity.connect",
    LogEvent.GRANT_LOST: "identity.grant.lost",
}


def log(event: LogEvent, *, application: str, **facts: object) -> None:
    """Log a success: one line at INFO."""
    _write(logging.INFO, event, application, facts)


def log_refusal(event: LogEvent, *, application: str, **facts: object) -> None:
    """Log that something was left out of an otherwise successful event: one line at WARNING."""
    _write(logging.WARNING, event, application, facts)


def log_error(event: LogEvent, *, application: str, **facts: object) -> None:
    """Log something that an operator must look at: one line at ERROR."""
    _write(logging.ERROR, event, application, facts)


def log_failure(event: LogEvent, error: IdentityError, *, application: str) -> None:
    """Log a failure: one line at WARNING. The person's page shows the same reference."""
    facts = {"code": error.code, "stage": error.stage, "reference": error.reference,
             "detail": error}  # fmt: skip
    _write(logging.WARNING, event, application, facts)


def log_trouble(event: LogEvent, error: Exception, /, *, application: str, **facts: object) -> None:
    """Log that the site's code raised ``error``: one line at ERROR.

    The line has the class of the error but not its message, which may contain personal data.
    """
    _write(logging.ERROR, event, application, {"error": type(error).__name__, **facts})


def _write(level: int, event: LogEvent, application: str, facts: dict[str, object]) -> None:
    fields: dict[str, object] = {"event": event.value, "application": application}
    fields |= {name: str(fact) if isinstance(fact, Exception) else fact
               for name, fact in facts.items()}  # fmt: skip
    text = "".join(f" {name}={fact}" for name, fact in facts.items())
    logger.log(level, "%s application=%s%s", event, application, text, extra=fields)
    if is_installed and event in COUNTED:
        outcome = str(facts.get("code") or facts.get("reason") or OK)
        _counter(COUNTED[event]).add(1, {"application": application, "outcome": outcome})


class JSONFormatter(logging.Formatter):
    """One JSON object a line: time, level, logger and message, and all fields of the record."""

    def format(self, record: logging.LogRecord) -> str:
        own = vars(logging.makeLogRecord({})).keys() | {"message", "asctime"}
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= {name: value for name, value in vars(record).items() if name not in own}
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str, ensure_ascii=False)
