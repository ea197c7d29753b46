"""Log lines with fields, and OpenTelemetry: what leaves the process, and what never does."""

from __future__ import annotations

import json
import logging
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from django_identity import background, tasks, telemetry
from django_identity.background import TaskName
from django_identity.lifecycle.erasure import erasure
from django_identity.lifecycle.upkeep import jobs
from django_identity.models import WebhookEvent
from django_identity.telemetry import (
    COUNTED,
    DURATION,
    SECONDS,
    SNAPSHOT_SECONDS,
    Gauge,
    Operation,
)
from tests.deliveries import SECRET, event_body, post
from tests.faces.conftest import sign_in
from tests.hostile import HostileService, hostile_service
from tests.records import make_identity, make_user

pytestmark = pytest.mark.django_db(transaction=True)

DOCS = Path(__file__).parent.parent / "docs" / "telemetry.md"
PEOPLE = ("subject-1", "ada@example.org", "Obi", "at-secret", "192.0.2.1")


@pytest.fixture(scope="module")
def collected() -> tuple[InMemorySpanExporter, InMemoryMetricReader]:
    """OpenTelemetry takes one provider a process, so the tests of this file share it."""
    spans, read = InMemorySpanExporter(), InMemoryMetricReader()
    tracing = TracerProvider()
    tracing.add_span_processor(SimpleSpanProcessor(spans))
    trace.set_tracer_provider(tracing)
    metrics.set_meter_provider(MeterProvider([read]))
    return spans, read


@pytest.fixture
def spans(collected: tuple[InMemorySpanExporter, Any]) -> InMemorySpanExporter:
    collected[0].clear()
    return collected[0]


@pytest.fixture
def points(collected: tuple[Any, InMemoryMetricReader]) -> Any:
    """Metric -> its attributes and values, cumulated over this file."""

    def read() -> dict[str, list[tuple[dict[str, Any], Any]]]:
        data = json.loads(collected[1].get_metrics_data().to_json())
        return {
            metric["name"]: [
                (point["attributes"], point.get("value", point.get("count")))
                for point in metric["data"]["data_points"]
            ]
            for resource in data["resource_metrics"]
            for scope in resource["scope_metrics"]
            for metric in scope["metrics"]
        }

    return read


@pytest.fixture
def service(settings: Any) -> Iterator[HostileService]:
    with hostile_service() as running:
        settings.DJANGO_IDENTITY = {"default": running.settings(WEBHOOK_SECRETS=[SECRET])}
        yield running


def names_of(spans: InMemorySpanExporter) -> list[str]:
    return [span.name for span in spans.get_finished_spans()]


# Log lines


def test_an_event_names_its_type_outcome_and_row(caplog: pytest.LogCaptureFixture) -> None:
    """In the text and in fields; a repeat has no row, and an unknown type no name."""
    caplog.set_level(logging.INFO, "django_identity")
    body = event_body("kyc.verified")
    post(body)
    post(body)
    post(event_body("ada@example.org"))
    lines = [each for each in caplog.records if each.name == "django_identity"]
    row, other = WebhookEvent.objects.order_by("pk").values_list("pk", flat=True)
    assert [(each.type, each.outcome, each.row) for each in lines] == [  # type: ignore[attr-defined]
        ("kyc.verified", "ignored", row), ("kyc.verified", "repeated", None),
        ("other", "ignored", other),
    ]  # fmt: skip
    said = (
        f"identity.event.received application=default type=kyc.verified outcome=ignored row={row}"
    )
    assert lines[0].getMessage() == said
    assert {each.event for each in lines} == {"identity.event.received"}  # type: ignore[attr-defined]
    assert not [name for name in PEOPLE if name in caplog.text]


def test_a_refusal_has_its_reference_as_a_field(
    service: HostileService, caplog: pytest.LogCaptureFixture
) -> None:
    """The one on the person's page."""
    service.token = {"scope": ""}
    response = sign_in(Client())
    (line,) = [each for each in caplog.records if each.name == "django_identity"]
    error = response.context["error"]
    assert (line.reference, line.code) == (error.reference, error.code)  # type: ignore[attr-defined]


def test_the_json_formatter_writes_all_fields() -> None:
    """One object a line; a traceback only where the record has one."""
    record = logging.makeLogRecord(
        {"name": "django_identity", "levelname": "INFO", "msg": "said %s", "args": ("so",),
         "application": "default", "row": 7}
    )  # fmt: skip
    line = json.loads(telemetry.JSONFormatter().format(record))
    assert (line["message"], line["application"], line["row"]) == ("said so", "default", 7)
    assert {"time", "level", "logger"} < line.keys()
    assert "args" not in line


# OpenTelemetry


def test_a_sign_in_is_measured(
    service: HostileService, spans: InMemorySpanExporter, points: Any
) -> None:
    """A span for each call and for the verification; counters by outcome; nobody is named."""
    assert sign_in(Client()).status_code == 302
    assert names_of(spans).count(Operation.VERIFICATION) == 1
    calls = [span for span in spans.get_finished_spans() if span.name == Operation.CALL]
    endpoints = {span.attributes["endpoint"] for span in calls if span.attributes}
    assert {"token", "kyc", "claims"} <= endpoints
    found = points()
    here = {"application": "default", "outcome": "ok"}
    assert [value for facts, value in found["identity.sign_in"] if facts == here] == [1]
    assert found[Operation.CALL + DURATION]
    shown = repr([(span.name, dict(span.attributes or {})) for span in spans.get_finished_spans()])
    assert not [name for name in PEOPLE if name in shown + repr(found)]


def test_a_rejected_credential_is_counted_by_reason(service: HostileService, points: Any) -> None:
    """And the sign-in by its code."""
    service.payload = {"aud": "somebody else"}
    sign_in(Client())
    found = points()
    reasons = [facts.get("reason") for facts, _ in found[Operation.VERIFICATION]]
    assert "payload.aud" in reasons
    assert "credential_rejected" in [facts["outcome"] for facts, _ in found["identity.sign_in"]]


def test_events_sweeps_and_erasures_are_measured(
    service: HostileService, spans: InMemorySpanExporter, points: Any
) -> None:
    """By type and outcome; a refused delivery by its code."""
    post(event_body("data.deletion_requested"))
    post(event_body("kyc.verified"), signature="0" * 64)
    assert erasure.retry_pending() == 1
    jobs.sweep()
    assert {Operation.EVENT, Operation.ERASURE, Operation.SWEEP} <= {*names_of(spans)}
    events = [(facts.get("type"), facts["outcome"]) for facts, _ in points()[Operation.EVENT]]
    assert ("data.deletion_requested", "applied") in events
    assert (None, "signature_invalid") in events


def test_the_gauges_are_read_from_the_database(points: Any) -> None:
    """Due, failing, lag and the oldest pending erasure. A row in a worker's hands does not fail."""
    make_identity(
        make_user(), refetch_failures=1, refetch_started=True,
        refetch_taken_until=timezone.now() + timedelta(minutes=5),
    )  # fmt: skip
    post(event_body("data.deletion_requested"))
    time.sleep(SNAPSHOT_SECONDS)
    found = points()
    assert [value > 0 for _, value in found[Gauge.OLDEST]] == [True]
    here = {"application": "default", "environment": "test"}
    assert [found[gauge] for gauge in (Gauge.DUE, Gauge.FAILING, Gauge.LAG)] == [[(here, 0)]] * 3


def test_a_task_continues_the_trace_of_the_request(spans: InMemorySpanExporter) -> None:
    """The message carries the trace of whoever published it."""
    with trace.get_tracer("a site").start_as_current_span("a request") as request:
        work = background._Work(TaskName.PURGE, ())
    assert work.headers.keys() >= {"traceparent"}
    tasks.purge.push_request(**work.headers)
    try:
        tasks.purge()
    finally:
        tasks.purge.pop_request()
    (task,) = [span for span in spans.get_finished_spans() if span.name == TaskName.PURGE]
    assert task.context.trace_id == request.get_span_context().trace_id
    assert task.parent is not None
    assert task.parent.span_id == request.get_span_context().span_id


def test_it_is_off_unless_installed() -> None:
    """Without the package everything works, and nothing is imported."""
    program = """
import sys
sys.modules["opentelemetry"] = None
from django_identity import telemetry
assert not telemetry.is_installed
with telemetry.measured(telemetry.Operation.SWEEP) as measurement:
    measurement.outcome = "ok"
with telemetry.continued(telemetry.carried(), task="a task"):
    telemetry.observe(lambda: [])
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def prometheus_names() -> set[str]:
    """How Prometheus calls the metrics: dots become underscores, units and kinds are appended."""
    plain = {name.replace(".", "_") for name in (*Operation, *COUNTED.values(), *Gauge)}
    counters = {f"{name.replace('.', '_')}_total" for name in (*Operation, *COUNTED.values())}
    durations = {f"{operation.replace('.', '_')}_duration_seconds" for operation in Operation}
    seconds = {f"{gauge.replace('.', '_')}_seconds" for gauge in SECONDS}
    buckets = {f"{name}_{part}" for name in durations for part in ("bucket", "sum", "count")}
    return (plain - {gauge.replace(".", "_") for gauge in SECONDS}) | counters | buckets | seconds


def test_the_page_names_the_metrics_that_are_there() -> None:
    """Dashboard and alert rules ask for nothing else, and every metric is listed."""
    page = DOCS.read_text()
    asked = {
        name
        for block in re.findall(r"```(?:yaml|json|promql)\n(.*?)```", page, re.DOTALL)
        for name in re.findall(r"\bidentity_[a-z_]+", block)
    }
    assert asked
    assert asked <= prometheus_names(), asked - prometheus_names()
    listed = set(re.findall(r"`(identity\.[a-z_.]+)`", page))
    assert {*Operation, *COUNTED.values(), *Gauge} <= listed
