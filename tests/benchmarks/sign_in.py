"""What one sign-in of a returning person costs us: CPU time and queries for begin and complete.

The service is an in-process stand-in: a thread that answers on loopback, whose own CPU time is not
counted (``time.thread_time``). Figures only; there is nothing to set it beside.
"""

from __future__ import annotations

import time
from statistics import median

from django.db import connection
from django.test import Client, override_settings
from django.test.utils import CaptureQueriesContext, setup_test_environment

from tests.benchmarks.runner import Result
from tests.faces.conftest import sign_in
from tests.hostile import hostile_service

ROUNDS = 100
TRANSACTION = ("BEGIN", "COMMIT", "SAVEPOINT", "RELEASE")


def run() -> Result:
    setup_test_environment()
    name = connection.creation.create_test_db(verbosity=0)
    try:
        with (
            hostile_service() as service,
            override_settings(DJANGO_IDENTITY={"default": service.settings()}),
        ):
            return _measured()
    finally:
        connection.creation.destroy_test_db(name, verbosity=0)


def _measured() -> Result:
    sign_in(Client())
    taken = []
    for _ in range(ROUNDS):
        browser = Client()
        started = time.thread_time()
        sign_in(browser)
        taken.append(time.thread_time() - started)
    with CaptureQueriesContext(connection) as captured:
        sign_in(Client())
    queries = sum(not query["sql"].startswith(TRANSACTION) for query in captured)
    figures = {"cpu_milliseconds": median(taken) * 1000, "queries": float(queries)}
    return Result("sign_in", {}, figures)
