"""What is counted of deliveries: refused ones by their reason, and which secret signed the rest."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.test.utils import CaptureQueriesContext

from django_identity.lifecycle.events import tallies
from django_identity.models import DailyTally
from tests.deliveries import SECRET, event_body, post, signed

pytestmark = pytest.mark.django_db(transaction=True)

OLDER = "the-webhook-secret-from-before"


@pytest.fixture(autouse=True)
def _anew(settings: Any) -> Iterator[None]:
    given = settings.DJANGO_IDENTITY["default"]
    settings.DJANGO_IDENTITY = {"default": {**given, "WEBHOOK_SECRETS": [SECRET, OLDER]}}
    tallies.forget()
    yield
    tallies.forget()


def counted() -> dict[str, int]:
    return dict(DailyTally.objects.values_list("name", "count"))


def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time for which a process collects is over."""
    monkeypatch.setattr(tallies, "COLLECTED_FOR", 0.0)


def test_refusals_are_counted_by_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    later(monkeypatch)
    assert post(event_body("kyc.verified"), signature="0" * 64).status_code == 401
    assert post(b"no event").status_code == 400
    names = counted()
    assert (names["bad_signature"], names["bad_event"]) == (1, 1)


def test_a_flood_costs_one_write(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first is counted at once; the others together, when the time is over."""
    with CaptureQueriesContext(connection) as queries:
        for _ in range(50):
            post(b"{}", signature="0" * 64)
    assert len([query for query in queries if "tally" in query["sql"]]) <= 3
    assert counted() == {"bad_signature": 1}
    later(monkeypatch)
    post(b"{}", signature="0" * 64)
    assert counted() == {"bad_signature": 51}


def test_the_secret_in_use_is_counted_and_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    later(monkeypatch)
    body = event_body("kyc.verified")
    assert post(body, signature=signed(body, secret=OLDER)).status_code == 200
    (name,) = counted()
    assert name == next(tallies.secret_names(OLDER))
    assert name != next(tallies.secret_names(SECRET))
    assert OLDER not in name


def test_one_secret_needs_no_count(settings: Any) -> None:
    """So that an event costs no statement more."""
    given = settings.DJANGO_IDENTITY["default"]
    settings.DJANGO_IDENTITY = {"default": {**given, "WEBHOOK_SECRETS": [SECRET]}}
    assert post(event_body("kyc.verified")).status_code == 200
    assert counted() == {}


def test_a_count_that_fails_is_no_error() -> None:
    """The service gets the same answer, and does not deliver again for it."""

    def failing(execute: Any, sql: str, *rest: Any) -> Any:
        if "tally" in sql:
            raise OperationalError
        return execute(sql, *rest)

    with connection.execute_wrapper(failing):
        assert post(b"{}", signature="0" * 64).status_code == 401
