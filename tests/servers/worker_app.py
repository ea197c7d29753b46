"""The Celery app of a site whose workers get killed: ``celery -A tests.servers.worker_app worker``.

Each process of the pool calls the stand-in under its own number, so that the stand-in's list of
calls says which process made them. With ``SPANS`` it writes its spans there, one JSON object for
each line.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from celery import Celery
from celery.signals import worker_process_init
from django.test import override_settings
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor

from tests.servers.stand_in import setting

app = Celery("site", broker=os.environ["CELERY_BROKER_URL"])
app.conf.task_default_queue = os.environ["WORKER_QUEUE"]
app.conf.worker_prefetch_multiplier = 1
# Celery ends a process that is not up within 4 seconds, so on a busy machine none would ever be.
app.conf.worker_proc_alive_timeout = 120.0
app.autodiscover_tasks(["django_identity"])


@worker_process_init.connect
def name_itself(**_kwargs: Any) -> None:
    identity = {"default": setting(os.environ["STAND_IN"], os.getpid(), TIMEOUT=20)}
    override_settings(DJANGO_IDENTITY=identity).enable()


@worker_process_init.connect
def trace_itself(**_kwargs: Any) -> None:
    if "SPANS" not in os.environ:
        return
    # Open until the process ends; no line waits in a buffer, for the process may be killed.
    out = Path(os.environ["SPANS"]).open("a", encoding="utf-8", buffering=1)  # noqa: SIM115
    exporter = ConsoleSpanExporter(
        out=out,
        formatter=lambda span: f"{span.to_json(indent=None)}\n",
    )
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
