"""``identity_doctor``: everything an operator can do something about, and nothing else."""

import json
import re
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from django_identity.checks import charset
from django_identity.instruments.signs import (
    Severity,
    charts,
    diagnose,
    figures,
    of_rows,
    table,
)
from django_identity.instruments.signs import site as site_signs
from django_identity.lifecycle.ground import runs
from django_identity.models import ErasureReceipt
from tests.commands import broken_setups as broken
from tests.commands.run_command import run
from tests.credentials.issuer import OTHER_KEY, jwk
from tests.databases import on_postgresql
from tests.factories import make_event, make_grant, make_identity, make_user

pytestmark = pytest.mark.django_db(transaction=True)

PROBLEM, WARNING = Severity.PROBLEM, Severity.WARNING


@pytest.mark.parametrize("setup", broken.SETUPS)
def test_what_is_broken_is_named(site, setup):
    break_it, *signs = broken.SETUPS[setup]

    break_it(site)
    found = [finding for finding in diagnose() if finding.level is not Severity.FINE]

    # On a busy machine any call may end with the short time-out of ``silent_service``.
    named = {check for check, *_ in signs}
    others = {finding for finding in found if finding.check not in named}
    assert all("no answer in time" in finding.message for finding in others), others
    for check, level, cause, remedy in signs:
        assert any(
            (finding.check, finding.level) == (check, level)
            and cause in finding.message
            and remedy in finding.remedy
            for finding in found
        ), (check, found)
    messages = "\n".join(finding.message for finding in found)
    assert not re.search(r"\bada\b|subject-", messages)


@pytest.mark.parametrize("failures", [1, 5])
@pytest.mark.parametrize("is_back", [True, False], ids=["back", "missing"])
def test_a_former_key_that_is_back_is_no_longer_asked_for(site, is_back, failures):
    """The rows that failed are tried again by themselves, within hours."""
    if not is_back:
        site.configure(ENCRYPTION_KEYS=["a key that is missing"])
    identity = make_identity(
        make_user(),
        refetch_failures=failures,
        last_error="sealed_value_unreadable",
        refetch_due_at=timezone.now() + timedelta(hours=6),
    )
    make_grant(identity)
    site.configure()
    asked = [each for each in diagnose() if "former key" in each.remedy]
    assert (asked == []) is is_back


def test_a_site_that_is_all_right_needs_nobody(site):
    """Keys of a type that is not used are no fault. Exit code 0."""
    site.service.answers["jwks"] = {
        "keys": [7, "d", jwk("a"), jwk("c", OTHER_KEY, d="AAAA")],
    }
    make_identity(make_user())
    found = list(diagnose())
    assert {finding.level for finding in found} == {Severity.FINE}
    assert "no event in 7 days" in found[-1].message
    assert f"{site.service.origin}: 1 usable key(s)" in {
        finding.message for finding in found
    }
    assert run("identity_doctor").code == 0


@on_postgresql
@pytest.mark.parametrize(
    ("value", "is_told"),
    [("0", True), ("0ms", True), ("5s", False)],
)
def test_locks_that_are_waited_for_without_end(site, value, is_told):
    """The server is asked for the value that the connection really has."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('lock_timeout', %s, false)", [value])
        told = [each for each in diagnose() if "lock_timeout" in each.message]
        cursor.execute("RESET lock_timeout")
    assert [each.level for each in told] == [WARNING] * is_told


def test_the_figures_to_alert_on_are_in_the_json(site):
    ago = timezone.now() - timedelta(minutes=20)
    identity = make_identity(make_user(), refetch_due_at=ago, refetch_failures=1)
    make_identity(make_user("b"), subject="b", environment="live", refetch_due_at=ago)
    make_event(identity, "claim.issued", next_attempt_at=ago)
    ErasureReceipt.objects.create(requested_at=ago)
    make_grant(identity, needs_reauthorization=True, access_expires_at=ago)
    said = json.loads(run("identity_doctor", "--json").out)
    assert {"check", "level", "message", "remedy"} == set(said["findings"][0])
    figures = said["figures"]
    ages = {
        name: figures.pop(name) for name in [*figures] if name.startswith("oldest_")
    }
    assert 59 < figures.pop("no_event_for") < 120
    ones = ("due_rows", "failing", "grants", "handlers", "environment", "erasures")
    counted = {name: number for name, number in figures.items() if number}
    assert counted == dict.fromkeys(ones, 1)
    late = {name for name, age in ages.items() if 1199 < age < 1300}

    assert late == {"oldest_due_rows", "oldest_handlers", "oldest_erasures"}


def test_an_event_of_this_week_is_no_silence(site):
    week_ago = timezone.now() - timedelta(days=7, minutes=1)
    event = make_event(make_identity(make_user()), "claim.issued", received_at=week_ago)
    assert "webhook" in {finding.check for finding in diagnose()}
    assert 604_800 < figures()["no_event_for"] < 605_000
    event.received_at = timezone.now()
    event.save()
    assert "webhook" not in {finding.check for finding in diagnose()}


def test_a_problem_is_printed_with_its_remedy_and_exit_code_1(site):
    broken.wrong_secret(site)
    ran = run("identity_doctor")
    assert ran.code == 1
    assert ran.error == "1 finding(s) need a person."
    lines = ran.out.splitlines()
    [index] = [at for at, line in enumerate(lines) if line.startswith("PROBLEM")]
    assert lines[index + 1].strip().startswith("-> The service does not take")
    # Each level has its colour, and what is piped has none.
    coloured = run("identity_doctor", "--force-color").out
    assert "\x1b[" not in ran.out
    assert re.search("\x1b\\[[0-9;]*mPROBLEM +\x1b\\[0m client", coloured)


@pytest.mark.parametrize(
    "break_it",
    [broken.unusable_settings, broken.cut_connection],
    ids=["unusable settings", "a cut connection"],
)
def test_what_cannot_be_counted_has_no_figures(site, break_it):
    break_it(site)
    ran = run("identity_doctor", "--json")
    said = json.loads(ran.out)
    assert ran.code == 1
    assert said["problems"] == 1
    assert said["figures"] == {}


def test_a_live_application_is_asked_as_well(site):
    """With a token of nobody: a wrong secret is found before anybody signs in."""
    address = f"https://127.0.0.1:{site.closed_port()}"
    site.configure(ENVIRONMENT="live", BASE_URL=f"{address}/api/v1", AUTH_URL=address)
    found = [each.message for each in diagnose() if each.check == "address"]
    assert [message.split()[0] for message in found] == ["AUTH_URL", "BASE_URL"]


def test_a_silenced_check_is_silent(site):
    """An operator has looked at it. What keeps the doctor from looking further is told."""
    broken.no_webhook_secret(site)
    silenced = [f"django_identity.{number}" for number in ("W025", "E004")]
    site.settings.SILENCED_SYSTEM_CHECKS = silenced
    assert {finding.level for finding in diagnose()} == {Severity.FINE}
    broken.unusable_settings(site)
    assert [each.level for each in diagnose()] == [PROBLEM]


def test_the_most_frequent_reasons_are_named(site, monkeypatch):
    """Five of them, the most frequent first. A count that ended says so."""
    for number in range(20):
        reason = f"service_trouble_{number // 4}" if number < 18 else ""
        failing = {"refetch_failures": 1, "last_error": reason}
        make_identity(make_user(f"u-{number}"), subject=f"s-{number}", **failing)

    said = [each.message for each in diagnose() if each.check == "failing"]
    assert figures()["failing"] == 20
    monkeypatch.setattr(table, "MOST_COUNTED", 2)
    ended = [each.message for each in diagnose() if each.check == "failing"]

    counts = [re.search(r": (\d+), ", message)[1] for message in said]
    assert counts == ["4", "4", "4", "4", "2"]
    assert ": 2 or more, " in ended[0]


@pytest.mark.urls("tests.gates.scope_and_step_up_urls")
def test_a_later_scope_for_which_no_gate_asks_is_a_warning(site):
    site.configure(
        LATER_SCOPES=["documents:read", "documents:metadata"],
        DOCUMENT_KEYS=[],
    )
    out = run("identity_doctor").out
    assert "no gate of the map asks for documents:metadata" in out
    assert "unless a template or code of your own asks for it" in out
    assert "asks for documents:read" not in out


def test_a_database_that_lacks_characters_hides_nothing_else(site, monkeypatch):
    """It can be used all the same, so what its rows tell is told."""
    monkeypatch.setattr(charset, "lacking", lambda: "latin1")
    broken.erasures_left_undone(site)
    found = [finding.check for finding in diagnose() if finding.level is PROBLEM]
    assert found == ["database", "erasures"]


#: Of these tables an index serves every question: they grow with a site's people.
LARGE = ("linkedidentity", "webhookevent", "tokengrant", "erasurereceipt")


@pytest.mark.skipif(
    connection.vendor != "sqlite",
    reason="the others scan small tables",
)
def test_an_index_serves_every_question_about_rows(site):
    """So the doctor takes no longer because a site has more people who are well."""
    with CaptureQueriesContext(connection) as captured:
        list(of_rows())
        figures()
        charts.days()
    asked = [each["sql"] for each in captured if " WHERE " in each["sql"]]
    assert len(asked) > 40
    for sql in asked:
        with connection.cursor() as cursor:
            cursor.execute(f"EXPLAIN QUERY PLAN {sql}")
            plan = [str(step[-1]) for step in cursor.fetchall()]
        scanned = {step.split("_")[-1].split()[0] for step in plan if "SCAN" in step}
        assert not scanned & {*LARGE}, (sql, plan)


def test_the_sandbox_passes_every_check_of_the_service(
    client,
    identity_application,
    identity_sign_in,
):
    assert identity_sign_in(client).status_code == 302
    of_service = ("key_set", "clock", "client", "address")
    found = [finding for finding in diagnose() if finding.check in of_service]
    assert {finding.level for finding in found} == {Severity.FINE}
    answering = [finding.message for finding in found if finding.check == "address"]
    assert answering == ["AUTH_URL answers", "BASE_URL answers"]


def test_a_warning_about_the_database_hides_no_row(site, monkeypatch):
    """PostgreSQL's own default waits for locks without end."""
    ErasureReceipt.objects.create(requested_at=timezone.now() - timedelta(days=3))
    monkeypatch.setattr(site_signs, "_waits_without_end", lambda: True)
    assert "erasures" in {each.check for each in diagnose()}
    assert run("identity_doctor").code == 1


def test_a_former_key_that_went_too_early_is_missed(site):
    """The newest tokens are encrypted anew already, and the others are not."""
    hours = {"the former key, of another text": 1, "": 18}
    for key, due_in in hours.items():
        site.configure(**({"ENCRYPTION_KEYS": [key]} if key else {}))
        for number in range(20):
            due_at = timezone.now() + timedelta(hours=due_in)
            name = f"{due_in}-{number}"
            make_grant(
                make_identity(make_user(name), subject=name, refetch_due_at=due_at),
            )
    assert "keys" in {each.check for each in diagnose()}


def test_a_shorter_pause_leaves_the_longer_one(site):
    run("identity_refetch", "--pause", "72")
    said = run("identity_refetch", "--pause", "1").out
    assert f"{runs.newest().paused_until:%Y-%m-%d %H:%M}" in said
