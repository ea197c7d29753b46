"""The trace of a web request goes through a real broker into a worker of its own process."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from django.test import override_settings
from opentelemetry import context, propagate

from django_identity.background import TaskName
from django_identity.telemetry import Operation
from tests.deliveries import SECRET, event_body, post
from tests.records import make_grant, make_identity, make_user
from tests.servers.stand_in import StandIn, setting
from tests.servers.workers import PATIENCE, Workers

pytestmark = [
    pytest.mark.server,
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif("DATABASE_URL" not in os.environ, reason="a worker writes at the same time"),
]

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


def test_the_trace_of_a_webhook_goes_on_in_the_worker(
    service: StandIn, workers: Workers, tmp_path: Path
) -> None:
    """The task is a child of the request, and the task's calls of the service are of its trace."""
    identity = make_identity(make_user("ada"), subject="subject-1", scopes=["claims:read"])
    make_grant(identity, access_token="at-0-subject-1", refresh_token="rt-0-subject-1")
    spans = tmp_path / "spans.jsonl"
    workers.environment["SPANS"] = str(spans)
    workers.size = 1
    workers.start()
    # What a site's own instrumentation does with the header of a request.
    request = context.attach(propagate.extract({"traceparent": f"00-{TRACE}-{PARENT}-01"}))
    try:
        with override_settings(
            DJANGO_IDENTITY={"default": setting(service.origin, WEBHOOK_SECRETS=[SECRET])}
        ):
            assert post(event_body("claim.issued", subject="subject-1")).status_code == 200
    finally:
        context.detach(request)
    task = span_named(TaskName.REFETCH_ONE, spans, workers)
    assert task["context"]["trace_id"] == f"0x{TRACE}"
    assert task["parent_id"] == f"0x{PARENT}"
    call = span_named(Operation.CALL, spans, workers)
    assert call["context"]["trace_id"] == f"0x{TRACE}"


def span_named(name: str, spans: Path, workers: Workers) -> dict[str, Any]:
    """The first finished span of that name, when a worker has written it."""
    give_up_at = time.monotonic() + PATIENCE
    while time.monotonic() < give_up_at:
        assert workers.are_alive(), workers.log_end()
        for line in spans.read_text("utf-8").splitlines() if spans.exists() else ():
            span: dict[str, Any] = json.loads(line)
            if span["name"] == name:
                return span
        time.sleep(0.1)
    raise AssertionError(workers.log_end())
