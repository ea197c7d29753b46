"""``identity_doctor``: everything an operator can do something about, and nothing else."""

import io
import json
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import InterfaceError, OperationalError, connection
from django.test import override_settings
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from django_identity.lifecycle.operators.doctor import Finding, Level, diagnose
from django_identity.models import (
    ErasureReceipt,
    TokenGrant,
)
from tests.credentials.issuer import OTHER_KEY, jwk
from tests.factories import make_event, make_identity, make_user
from tests.fake_service import FakeService, answer, html, serving

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def service() -> Iterator[FakeService]:
    with (
        serving() as running,
        override_settings(DJANGO_IDENTITY={"default": running.settings()}),
    ):
        yield running


def found(check: str, level: Level | None = None) -> list[str]:
    return [
        finding.message
        for finding in diagnose()
        if finding.check == check and level in (None, finding.level)
    ]


def problems() -> list[Finding]:
    return [finding for finding in diagnose() if finding.level is Level.PROBLEM]


def doctor(*arguments: str) -> str:
    out = io.StringIO()
    call_command("identity_doctor", *arguments, stdout=out)
    return out.getvalue()


def test_a_healthy_site_needs_nobody(service: FakeService) -> None:
    """No problem, exit 0, and the number of keys."""
    make_identity(make_user())
    assert problems() == []
    out = doctor()
    assert "PROBLEM" not in out
    assert "1 usable key(s)" in out


def test_json_is_for_programs() -> None:
    """One object with every finding."""
    said = json.loads(doctor("--json"))
    assert said["problems"] == 0
    assert {"check", "level", "message", "remedy"} == set(said["findings"][0])


def test_the_figures_to_alert_on_are_in_the_json() -> None:
    """Counts and ages: of what is due, failing, waiting, and to be erased."""
    ago = timezone.now() - timedelta(minutes=2)
    identity = make_identity(make_user(), refetch_due_at=ago, refetch_failures=1)
    make_identity(make_user("b"), subject="b", application="gone", refetch_due_at=ago)
    make_event(identity, "claim.issued", next_attempt_at=ago)
    ErasureReceipt.objects.create(application="default", requested_at=ago)
    figures = json.loads(doctor("--json"))["figures"]
    ages = {name: figures.pop(name) for name in tuple(figures) if name.startswith("oldest_")}
    assert 59 < figures.pop("no_event_for") < 120
    assert figures == {"due": 1, "failing": 1, "waiting_events": 1, "pending_erasures": 1}
    assert all(119 < age < 180 for age in ages.values())
    assert len(ages) == 3


def test_a_problem_ends_with_1(service: FakeService) -> None:
    """So that a scheduler notices; the findings are printed all the same."""
    service.answers["jwks"] = html("500 Oops")
    out = io.StringIO()
    with pytest.raises(CommandError, match="1 finding") as caught:
        call_command("identity_doctor", "--json", stdout=out)
    assert caught.value.returncode == 1
    assert json.loads(out.getvalue())["problems"] == 1


def test_an_unusable_setting_is_said_and_ends_it() -> None:
    """Every mistake by its check's id; nothing else can be asked."""
    with override_settings(DJANGO_IDENTITY={"default": {"ENVIRONMENT": "life"}}):
        assert {finding.check for finding in diagnose()} == {"settings"}
        assert any("django_identity.E003" in said for said in found("settings", Level.PROBLEM))


def test_a_setting_that_works_and_is_wrong_is_said(service: FakeService) -> None:
    """What the system checks say, errors and warnings apart."""
    changed = service.settings(POLICY="nowhere.Policy")
    with override_settings(DJANGO_IDENTITY={"default": changed}, ALLOWED_HOSTS=["*"]):
        assert any("E010" in said for said in found("settings", Level.PROBLEM))
        assert any("W001" in said for said in found("settings", Level.WARNING))


# The key set


def test_an_unreachable_key_set_is_a_problem(service: FakeService) -> None:
    """Why it cannot be had."""
    service.answers["jwks"] = answer([])
    [said] = found("key_set", Level.PROBLEM)
    assert "malformed_answer" in said


def test_odd_keys_are_warned_of(service: FakeService) -> None:
    """They are not used; no usable key at all is a problem."""
    service.answers["jwks"] = {"keys": [7, "d", jwk("a"), jwk("c", OTHER_KEY, d="AAAA")]}
    assert "1 usable key(s)" in found("key_set", Level.FINE)[0]
    service.answers["jwks"] = {"keys": [jwk("a", use="enc")]}
    assert "every credential is rejected" in found("key_set", Level.PROBLEM)[0]


def test_each_origin_is_asked_once(service: FakeService) -> None:
    """Two applications of one origin have one key set."""
    setting = {"default": service.settings(), "second": service.settings(CLIENT_ID="client-2")}
    with override_settings(DJANGO_IDENTITY=setting):
        assert len(found("key_set")) == 1
    assert service.calls("jwks") == 1


# The records


def test_failing_refetches_are_listed_by_reason() -> None:
    """A few are a warning; one that fails again and again is a problem."""
    for n, failures in enumerate((1, 2, 5)):
        reason = "service_timeout" if n else "malformed_answer"
        make_identity(
            make_user(f"user-{n}"),
            subject=f"s-{n}",
            refetch_failures=failures,
            last_error=reason,
        )
    assert found("refetches", Level.WARNING)[0] == "2 failing: service_timeout"
    assert found("refetches", Level.PROBLEM) == ["1 failed 5 times in a row or more"]


def test_identities_of_a_removed_application_are_listed() -> None:
    """Nothing re-fetches, purges or shows them otherwise."""
    for number, place in enumerate(({}, {"application": "renamed"}, {"environment": "live"})):
        make_identity(make_user(f"user-{number}"), subject=f"s-{number}", **place)
    said = found("applications", Level.WARNING)
    assert [line.split(",")[0] for line in said] == [
        "1 identities of default/live",
        "1 identities of renamed/test",
    ]


def test_grants_that_wait_for_their_person_are_said() -> None:
    """The operator can do nothing about them but know; a revoked one is over."""
    for n, consent in enumerate(("granted", "revoked")):
        identity = make_identity(make_user(f"user-{n}"), subject=f"s-{n}", consent=consent)
        TokenGrant.objects.create(
            identity=identity, access_expires_at=timezone.now(), needs_reauthorization=True
        )
    [said] = found("grants", Level.WARNING)
    assert said.startswith("1 grant(s) wait")


def test_an_erasure_that_left_something_is_warned_of_for_a_month() -> None:
    now = timezone.now()
    for audit, days in (({"hits": {"shop.Order.address": 1}}, 1), ({"hits": {}}, 1), (None, 1),
                        ({"hits": {"shop.Order.address": 1}}, 40)):  # fmt: skip
        at = now - timedelta(days=days)
        ErasureReceipt.objects.create(
            application="default", requested_at=at, erased_at=at, audit=audit
        )
    assert found("audits", Level.WARNING) == ["1 erasure(s) left something of the person"]


@pytest.mark.urls("tests.gates.asking")
def test_a_later_scope_for_which_no_gate_asks(service: FakeService) -> None:
    later = ["documents:read", "documents:metadata"]
    out = io.StringIO()
    given = service.settings(LATER_SCOPES=later, DOCUMENT_KEYS=[])
    with override_settings(DJANGO_IDENTITY={"default": given}), suppress(CommandError):
        call_command("identity_doctor", stdout=out)
    assert "no gate asks for documents:metadata" in out.getvalue()
    assert "no gate asks for documents:read" not in out.getvalue()


def test_the_number_of_queries_is_bounded() -> None:
    """However much is stored and wrong."""

    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            list(diagnose())
        return len(captured)

    few = queries()
    for n in range(20):
        make_identity(
            make_user(f"user-{n}"),
            subject=f"s-{n}",
            refetch_failures=n,
            last_error=f"reason-{n}",
            refetch_due_at=timezone.now() - timedelta(days=1),
        )
    assert queries() == few <= 26


def test_a_database_without_tables_is_a_problem_and_no_traceback(service: FakeService) -> None:
    """What could be asked is said; the rest is one finding."""

    def refuse(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        return execute("SELECT * FROM a_table_that_is_missing", None, many, context)

    with connection.execute_wrapper(refuse):
        findings = list(diagnose())
    assert findings[-1].check == "database"
    assert findings[-1].level is Level.PROBLEM


@pytest.mark.parametrize("error", [OperationalError, InterfaceError])
def test_a_dead_database_is_a_problem_and_no_traceback(error: type[Exception]) -> None:
    """Whichever error the driver raises for a connection that was cut."""

    def refuse(*_given: Any) -> Any:
        raise error

    with connection.execute_wrapper(refuse):
        found = list(diagnose())
    assert (found[-1].check, found[-1].level) == ("database", Level.PROBLEM)
    assert error.__name__ in found[-1].message


def test_nothing_of_a_person_is_said() -> None:
    """Neither names nor subjects."""
    make_identity(make_user("ada"), subject="subject-of-ada", refetch_failures=9)
    assert "ada" not in "\n".join(finding.message for finding in diagnose())
