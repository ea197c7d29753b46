"""``identity_doctor``: everything an operator can do something about, and nothing else."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from celery import Celery, current_app
from django.core.management import CommandError, call_command
from django.db import InterfaceError, OperationalError, connection
from django.test import override_settings
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from django_identity import background, conf, vault
from django_identity.admin.filters import FailingFilter
from django_identity.lifecycle.operators import overview_of
from django_identity.lifecycle.operators.doctor import Finding, Level, diagnose, findings
from django_identity.lifecycle.upkeep import key_sets, tokens
from django_identity.models import (
    ErasureReceipt,
    EventOutcome,
    LinkedIdentity,
    TokenGrant,
    WebhookEvent,
)
from django_identity.service.answers import TokenAnswer
from tests.credentials.issuer import OTHER_KEY, jwk
from tests.hostile import HostileService, answer, hostile_service, html
from tests.records import make_identity, make_user

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def service() -> Iterator[HostileService]:
    with (
        hostile_service() as running,
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


def test_a_healthy_site_needs_nobody(service: HostileService) -> None:
    """No problem, exit 0, and the key by name and thumbprint."""
    make_identity(make_user())
    assert problems() == []
    out = doctor()
    assert "PROBLEM" not in out
    assert '"k1" thumbprint ' in out


def test_json_is_for_programs() -> None:
    """One object with every finding."""
    said = json.loads(doctor("--json"))
    assert said["problems"] == 0
    assert {"check", "level", "message", "remedy"} == set(said["findings"][0])


def test_a_problem_ends_with_1(service: HostileService) -> None:
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


def test_a_setting_that_works_and_is_wrong_is_said(service: HostileService) -> None:
    """What the system checks say, errors and warnings apart."""
    changed = service.settings(POLICY="nowhere.Policy")
    with override_settings(DJANGO_IDENTITY={"default": changed}, ALLOWED_HOSTS=["*"]):
        assert any("E010" in said for said in found("settings", Level.PROBLEM))
        assert any("W001" in said for said in found("settings", Level.WARNING))


# The key set


def test_an_unreachable_key_set_is_a_problem(service: HostileService) -> None:
    """Why it cannot be had, and what is held meanwhile."""
    key_sets.current(conf.application())
    service.answers["jwks"] = answer([])
    [said] = found("key_set", Level.PROBLEM)
    assert "malformed_answer" in said
    assert "the held set is 0 s old" in said


def test_odd_keys_are_warned_of(service: HostileService) -> None:
    """Two names of one key, a private part; no usable key at all is a problem."""
    service.answers["jwks"] = {"keys": [jwk("a"), jwk("b"), jwk("c", OTHER_KEY, d="AAAA")]}
    said = found("key", Level.WARNING)
    assert any("one and the same key" in line for line in said)
    assert any("private part" in line for line in said)
    service.answers["jwks"] = {"keys": [jwk("a", use="enc")]}
    assert any("no key is usable" in line for line in found("key", Level.PROBLEM))


def test_each_origin_is_asked_once(service: HostileService) -> None:
    """Two applications of one origin have one key set."""
    setting = {"default": service.settings(), "second": service.settings(CLIENT_ID="client-2")}
    with override_settings(DJANGO_IDENTITY=setting):
        assert len(found("key_set")) == 1
    assert service.calls("jwks") == 1


# Broker and cache


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Put a Celery application in place of the site's and of the environment's."""
    monkeypatch.delenv("CELERY_BROKER_URL", raising=False)
    monkeypatch.setattr(findings, "SILENCE", 0.3)
    before = current_app._get_current_object()

    def use(url: str, **options: Any) -> None:
        app = Celery("site", broker=url)
        app.conf.broker_transport_options = options
        background.remember_app()

    yield use
    before.set_current()
    background.remember_app()


def test_a_site_without_a_broker_is_told_what_to_run(broker: Any) -> None:
    """A time-out that a broker lacks is a system check's and stands among the settings."""
    broker("")
    assert "identity_upkeep" in found("broker", Level.WARNING)[0]
    broker("redis://127.0.0.1:1/0")
    assert "does not answer" in found("broker", Level.PROBLEM)[0]
    assert any("W002" in said for said in found("settings", Level.WARNING))
    broker("redis://127.0.0.1:1/0", socket_timeout=5)
    assert not any("W002" in said for said in found("settings"))
    broker("memory://")
    assert found("broker") == ["it answers"]


def test_a_cache_of_one_process_is_warned_of() -> None:
    """The key set and the budget are to be shared."""
    assert found("cache", Level.WARNING)
    shared = {"default": {"BACKEND": "tests.clock_cache.ClockCache"}}
    with override_settings(CACHES=shared):
        assert found("cache", Level.FINE)


# The records


def test_values_that_no_key_opens_are_a_problem(service: HostileService) -> None:
    """Counted by column; an identity of a removed application is among them."""
    identity = make_identity(make_user())
    with override_settings(
        DJANGO_IDENTITY={"default": service.settings(ENCRYPTION_KEYS=["a key that was lost"])}
    ):
        site = conf.application()
        tokens.store(site, identity, TokenAnswer("at", "rt", 3600.0, (), None))
        identity.credential = vault.seal(
            "text", keys=site.encryption_keys, context=identity.sealing_context("credential")
        )
        identity.save()
    said = found("sealed_values", Level.PROBLEM)
    assert [line.split(":")[0] for line in said] == [
        "LinkedIdentity.credential", "TokenGrant.access_token", "TokenGrant.refresh_token",
    ]  # fmt: skip


def test_an_erasure_that_is_not_done_is_a_problem() -> None:
    """One that was asked for a moment ago is not."""
    asked = {"application": "default", "environment": "test", "subject_digest": "d"}
    now = timezone.now()
    ErasureReceipt.objects.create(**asked, requested_at=now)
    ErasureReceipt.objects.create(**asked, requested_at=now, erased_at=now)
    assert found("erasures") == []
    ErasureReceipt.objects.create(**asked, requested_at=now - timedelta(days=2))
    assert "1 not done" in found("erasures", Level.PROBLEM)[0]


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


def test_rows_that_nobody_takes_are_a_problem() -> None:
    """Is a worker running? A row that fell due a moment ago is not overdue."""
    now = timezone.now()
    for n, minutes in enumerate((-60, 1, 16)):
        make_identity(
            make_user(f"user-{n}"),
            subject=f"s-{n}",
            refetch_due_at=now - timedelta(minutes=minutes),
        )
    [said] = found("due_rows", Level.PROBLEM)
    assert said.startswith("1 row(s) due")


def test_identities_of_a_removed_application_are_listed() -> None:
    """Nothing re-fetches, purges or shows them otherwise."""
    for number, place in enumerate(({}, {"application": "renamed"}, {"environment": "live"})):
        make_identity(make_user(f"user-{number}"), subject=f"s-{number}", **place)
    said = found("applications", Level.WARNING)
    assert [line.split(",")[0] for line in said] == [
        "1 identities of default/live",
        "1 identities of renamed/test",
    ]


def test_failed_events_are_a_problem() -> None:
    """They wait for somebody to replay them."""
    now = timezone.now()
    for outcome in EventOutcome:
        WebhookEvent.objects.create(
            application="default",
            event_id=outcome.value,
            event_digest=outcome.value,
            occurred_at=now,
            received_at=now,
            outcome=outcome,
        )
    [said] = found("events", Level.PROBLEM)
    assert said.startswith("1 event(s) failed")


def test_grants_that_wait_for_their_person_are_said() -> None:
    """The operator can do nothing about them but know; a revoked one is over."""
    for n, consent in enumerate(("granted", "revoked")):
        identity = make_identity(make_user(f"user-{n}"), subject=f"s-{n}", consent=consent)
        TokenGrant.objects.create(
            identity=identity, access_expires_at=timezone.now(), needs_reauthorization=True
        )
    [said] = found("grants", Level.WARNING)
    assert said.startswith("1 grant(s) wait")


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


def test_a_database_without_tables_is_a_problem_and_no_traceback(service: HostileService) -> None:
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


def test_a_row_in_a_workers_hands_is_not_failing() -> None:
    """A worker counts a failure before it begins. One that died has failed."""
    now = timezone.now()
    for n, until in enumerate((now + timedelta(minutes=5), now - timedelta(minutes=5))):
        make_identity(
            make_user(f"user-{n}"), subject=f"s-{n}", refetch_failures=1, refetch_started=True,
            refetch_taken_until=until, last_error="worker_lost" if n else "",
        )  # fmt: skip
    assert found("refetches") == ["1 failing: worker_lost"]
    seen = overview_of(application="default", environment="test")
    assert dict(seen.failures) == {"worker_lost": 1}
    assert [row.subject for row in seen.attention.failing.rows] == ["s-1"]
    for choice, subject in (("yes", "s-1"), ("no", "s-0")):
        choices = FailingFilter.choices_of_rows(None)  # type: ignore[arg-type]
        [condition] = [condition for value, _label, condition in choices if value == choice]
        assert LinkedIdentity.objects.get(condition).subject == subject
