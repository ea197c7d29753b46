"""Spans and metrics for OpenTelemetry (extra ``otel``). Without the package nothing happens.

Attributes are codes and names: no subject, no user, no address. Messages of exceptions are not
recorded, because they may contain personal data.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from typing import Any

from django_identity.exceptions import IdentityError

try:
    from opentelemetry import context, metrics, propagate, trace
except ImportError:  # the extra is not installed
    _is_installed = False
else:
    _is_installed = True

NAME = "django_identity"
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


class Count(StrEnum):
    """What only a counter counts. Log lines of the same events increase them."""

    SIGN_IN = "identity.sign_in"
    CONNECT = "identity.connect"
    GRANT_LOST = "identity.grant.lost"


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


def is_installed() -> bool:
    return _is_installed


@contextmanager
def measured(operation: Operation, **attributes: str) -> Iterator[Measurement]:
    """Measure the body: one span, one count, one duration. An exception's code is the outcome."""
    measurement = Measurement(attributes=attributes)
    if not _is_installed:
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


def count(name: Count, **attributes: str) -> None:
    """Increase a counter by one."""
    if _is_installed:
        _counter(name.value).add(1, attributes)


def carried() -> Carrier:
    """The current trace, for the headers of a message."""
    carrier: Carrier = {}
    if _is_installed:
        propagate.inject(carrier)
    return carrier


def carrier_names() -> Iterable[str]:
    """The names under which a message may carry a trace."""
    return propagate.get_global_textmap().fields if _is_installed else ()


@contextmanager
def continued(carrier: Carrier, *, task: str) -> Iterator[None]:
    """Run the body as part of the trace of a message, in a span with the task's name."""
    if not _is_installed:
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
    if not _is_installed:
        return
    meter, snapshot = metrics.get_meter(NAME), _Snapshot(figures)
    for gauge in Gauge:
        meter.create_observable_gauge(
            gauge.value, [_reader(gauge, snapshot)], unit="s" if gauge in SECONDS else ""
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


def _reader(gauge: Gauge, snapshot: _Snapshot) -> Callable[[Any], list[Any]]:
    def read(_options: object) -> list[Any]:
        return [
            metrics.Observation(value, dict(attributes))
            for name, value, attributes in snapshot.current()
            if name is gauge
        ]

    return read


@cache
def _counter(name: str) -> Any:
    return metrics.get_meter(NAME).create_counter(name)


@cache
def _histogram(name: str) -> Any:
    return metrics.get_meter(NAME).create_histogram(name, unit="s")
