"""``identity_doctor``: everything an operator can do something about, and nothing else."""

import json
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from django_identity import conf
from django_identity.checks import charset
from django_identity.lifecycle.operators.doctor import (
    Level,
    diagnose,
    figures,
    finding,
    record_checks,
)
from django_identity.models import ErasureReceipt, TokenGrant, querysets
from tests.commands import broken_setups as broken
from tests.commands.broken_setups import BreakIt, Site
from tests.commands.run_command import run
from tests.credentials.issuer import OTHER_KEY, jwk
from tests.factories import make_event, make_grant, make_identity, make_user

pytestmark = pytest.mark.django_db(transaction=True)

PROBLEM, WARNING = Level.PROBLEM, Level.WARNING
# What is broken · the check · its level · the cause · the remedy
SETUPS = [
    ("wrong_secret", "credentials", PROBLEM, "invalid_client", "CLIENT_SECRET"),
    ("wrong_secret_in_the_envelope", "credentials", PROBLEM, "INVALID_CLIENT", "CLIENT_SECRET"),
    ("wrong_client_id", "credentials", PROBLEM, "unauthorized_client", "CLIENT_ID"),
    ("wrong_environment", "credentials", PROBLEM, "environment test", "ENVIRONMENT"),
    ("wrong_auth_path", "address", PROBLEM, "AUTH_URL is not usable", "path"),
    ("framework_at_auth_path", "address", PROBLEM, "AUTH_URL is not usable", "path"),
    ("forbidden_base_path", "address", PROBLEM, "BASE_URL is not usable", "BASE_URL"),
    ("wrong_base_path", "address", PROBLEM, "BASE_URL is not usable", "path"),
    ("busy_auth", "address", WARNING, "AUTH_URL is not usable: it asks for fewer calls", "Wait"),
    ("auth_that_is_down", "address", PROBLEM,
     "AUTH_URL is not usable: it answers HTTP 503", "down"),
    ("api_that_is_down", "address", PROBLEM, "BASE_URL is not usable: it answers HTTP 500", "down"),
    ("busy_key_set", "key_set", WARNING, "asks for fewer calls", "REFETCHES_PER_MINUTE"),
    ("key_set_that_is_down", "key_set", PROBLEM, "it answers HTTP 502", "down or overloaded"),
    ("malformed_key_set", "key_set", PROBLEM, "malformed_answer", "API_ORIGIN"),
    ("keys_of_no_use", "key_set", PROBLEM, "every credential is rejected", "Tell the service"),
    ("unknown_host", "key_set", PROBLEM, "host name is unknown", "resolver"),
    ("refused_connection", "key_set", PROBLEM, "nothing listens there", "port"),
    ("untrusted_certificate", "key_set", PROBLEM, "is not trusted", "SSL_CERT_FILE"),
    ("no_tls", "key_set", PROBLEM, "speaks no TLS", "scheme"),
    ("refusing_proxy", "key_set", PROBLEM, "the proxy refuses", "PROXY"),
    ("silent_service", "key_set", PROBLEM, "no answer in time", "firewall"),
    ("services_clock", "clock", WARNING, "the service is 9", "NTP"),
    ("unusable_settings", "settings", PROBLEM, "ENVIRONMENT is invalid", "live"),
    ("no_webhook_secret", "settings", WARNING, "no WEBHOOK_SECRETS", "Register"),
    ("never_migrated", "migrations", PROBLEM, "the first is 0001_initial", "migrate"),
    ("migration_pending", "migrations", PROBLEM, "1 migration(s)", "migrate"),
    ("read_only_database", "database", PROBLEM, "takes no writes", "read-only"),
    ("cut_connection", "database", PROBLEM, "OperationalError", "DATABASES"),
    ("closed_connection", "database", PROBLEM, "InterfaceError", "DATABASES"),
    ("no_tables", "database", PROBLEM, "does not answer", "migrate"),
    ("missing_table", "database", PROBLEM, "django_identity_storedclaim", "backup"),
    ("missing_column", "database", PROBLEM, "lack columns: django_identity_storedclaim", "backup"),
    ("dead_broker", "broker", PROBLEM, "does not answer", "CELERY_BROKER_URL"),
    ("silent_broker", "broker", PROBLEM, "does not answer", "CELERY_BROKER_URL"),
    ("broker_without_its_client", "broker", PROBLEM, "missing: No module named", "Install"),
    ("cron_alone", "broker", WARNING, "identity_upkeep every minute", ""),
    ("eager_tasks", "broker", WARNING, "tasks run inside requests", "Start a worker"),
    ("dead_cache", "cache", PROBLEM, "does not answer", "CACHES"),
    ("forgetful_cache", "cache", WARNING, "it keeps nothing", "CACHES"),
    ("no_events", "webhook", PROBLEM, "no event came in 7 days", "Register"),
    ("web_without_celery", "broker", WARNING, "though workers run upkeep", "__init__.py"),
    ("upkeep_never_ran", "upkeep", WARNING, "has not run yet", "identity_upkeep"),
    ("upkeep_needed_and_never_ran", "upkeep", PROBLEM, "has not run yet", "autodiscover_tasks"),
    ("upkeep_before_the_clock_was_set_back", "upkeep", PROBLEM, "a clock that was ahead", "beat"),
    ("upkeep_stopped", "upkeep", PROBLEM, "1 re-fetch(es) and 0 event(s) are late", "beat"),
    ("upkeep_stopped_for_handlers", "upkeep", PROBLEM, "0 re-fetch(es) and 1 event(s)", "-Q"),
    ("paused_upkeep", "upkeep", WARNING, "re-fetches pause until", "--pause 0"),
    ("overdue_in_a_pause", "due_rows", PROBLEM, "1 row(s) due", "429"),
    ("another_queue", "due_rows", PROBLEM, "none was re-fetched", "CELERY_TASK_ROUTES"),
    ("cron_that_ends_early", "due_rows", PROBLEM, "none was re-fetched", "identity_upkeep ends"),
    ("too_low_a_rate", "due_rows", PROBLEM, "stored: 2", "Raise REFETCHES_PER_MINUTE, which is 2"),
    ("too_few_threads", "due_rows", PROBLEM, "failed: 1, stored: 18", "Add threads or workers"),
    ("all_that_fails", "due_rows", PROBLEM, "no answer: 2", "findings about the service"),
    ("overdue_handlers", "handlers", PROBLEM, "1 event(s) wait", "handler_failed"),
    ("failed_events", "events", PROBLEM, "1 event(s) failed", "identity_replay"),
    ("stored_events", "events", PROBLEM, "1 event(s) are stored and not applied", "event.failed"),
    ("nameless_events", "events", PROBLEM, "2 event(s) named nobody", "EVENT_SUBJECT_PATHS"),
    ("missing_key", "keys", PROBLEM, "no key opens 20 of the newest 20", "former key"),
    ("damaged_grant", "keys", PROBLEM, "no key opens 1 of the newest 2", "--forget-unreadable"),
    ("rows_without_key", "refetches", PROBLEM, "1 failing: sealed_value_unreadable", "former key"),
    ("restored_backup", "grants", PROBLEM, "12 grant(s) were lost", "identity_refetch --pause"),
    ("restored_backup", "grants", PROBLEM, "12 grant(s) were lost", "two sites use one client"),
    ("other_issuer", "credential", PROBLEM, "https://issuer.example is not http://", "API_ORIGIN"),
    ("unsigned_issuer", "credential", PROBLEM, "(its issuer is not http://", "API_ORIGIN"),
    ("other_audience", "credential", PROBLEM, "payload.aud", "CLIENT_ID"),
    ("redirected_webhook", "webhook", PROBLEM, "/shop/identity/webhook/ redirects", "redirect"),
    ("webhook_behind_login", "webhook", PROBLEM, "answers HTTP 403", "logins"),
    ("webhook_of_another", "webhook", PROBLEM, "not as this site's webhook", "register"),
    ("unreachable_webhook", "webhook", WARNING, "nothing listens there", "another network"),
    ("unreadable_claims", "credential", WARNING, "not readable: it answers HTTP 502", "BASE_URL"),
    ("many_reasons", "refetches", PROBLEM, "1 failing: sealed_value_unreadable", "former key"),
    ("many_reasons", "refetches", WARNING, "2 failing for other reasons", "overview"),
    ("failing_rows", "refetches", WARNING, "1 failing: credential_rejected", "issuer"),
    ("failing_rows", "refetches", WARNING, "2 failing: service_timeout", ""),
    ("failing_rows", "refetches", PROBLEM, "1 failed 5 times in a row or more", "admin"),
    ("erasures_left_undone", "erasures", PROBLEM, "1 not done", "receipt"),
    ("erasures_that_left_something", "audits", WARNING, "1 erasure(s) left", "erase_user"),
    ("audits_that_could_not_read", "audits", WARNING, "1 erasure(s) after which", "not read"),
    ("lost_grants", "grants", WARNING, "1 grant(s) wait", "grant.lost"),
    ("changed_environment", "environment", PROBLEM, "1 identities of live", "--links-of"),
    ("failing_sign_ins", "sign_ins", PROBLEM, "1 failed lately: credential_rejected", "issuer"),
    ("redirected_sign_ins", "sign_ins", PROBLEM, "1 failed lately: unexpected", "BASE_URL"),
]  # fmt: skip


@pytest.mark.parametrize(("setup", "check", "level", "cause", "remedy"), SETUPS)
def test_what_is_broken_is_named(
    site: Site, setup: str, check: str, level: Level, cause: str, remedy: str
) -> None:
    """With its cause and remedy, by no other check, and without anything of a person."""
    getattr(broken, setup)(site)
    found = [
        finding for finding in diagnose(probe=True) if finding.level is not Level.FINE
    ]
    # On a busy machine any call may end with the short time-out of ``silent_service``.
    others = [finding for finding in found if finding.check != check]
    assert all("no answer in time" in finding.message for finding in others), others
    assert [
        finding
        for finding in found
        if (finding.check, finding.level) == (check, level)
        and cause in finding.message
        and remedy in finding.remedy
    ], found
    assert not re.search(
        r"\bada\b|subject-", "\n".join(finding.message for finding in found)
    )


def test_a_site_that_is_all_right_needs_nobody(site: Site) -> None:
    """Keys of a type that is not used are no fault. Exit code 0."""
    site.service.answers["jwks"] = {
        "keys": [7, "d", jwk("a"), jwk("c", OTHER_KEY, d="AAAA")]
    }
    make_identity(make_user())
    found = list(diagnose())
    assert {finding.level for finding in found} == {Level.FINE}
    assert f"{site.service.origin}: 1 usable key(s)" in {
        finding.message for finding in found
    }
    assert run("identity_doctor").code == 0


def test_the_figures_to_alert_on_are_in_the_json(site: Site) -> None:
    """Counts and ages: of what is due, failing, waiting, and to be erased; beside the findings."""
    ago = timezone.now() - timedelta(minutes=2)
    identity = make_identity(make_user(), refetch_due_at=ago, refetch_failures=1)
    make_identity(make_user("b"), subject="b", environment="live", refetch_due_at=ago)
    make_event(identity, "claim.issued", next_attempt_at=ago)
    ErasureReceipt.objects.create(requested_at=ago)
    make_grant(identity, needs_reauthorization=True, access_expires_at=ago)
    said = json.loads(run("identity_doctor", "--json").out)
    assert [each["check"] for each in said["findings"] if each["level"] == PROBLEM] == [
        "environment"
    ]
    assert {"check", "level", "message", "remedy"} == set(said["findings"][0])
    figures = said["figures"]
    assert figures.pop("lost_grants") == 1
    ages = {
        name: figures.pop(name) for name in tuple(figures) if name.startswith("oldest_")
    }
    assert 59 < figures.pop("no_event_for") < 120
    assert figures == {
        "due": 1,
        "failing": 1,
        "waiting_events": 1,
        "pending_erasures": 1,
    }
    assert [119 < age < 180 for age in ages.values()] == [True, True, True]


def test_a_problem_is_printed_with_its_remedy_and_exit_code_1(site: Site) -> None:
    """So that a scheduler notices; each finding is printed, and its remedy below it."""
    broken.wrong_secret(site)
    ran = run("identity_doctor")
    assert (ran.code, ran.error) == (1, "1 finding(s) need a person.")
    lines = ran.out.splitlines()
    [index] = [at for at, line in enumerate(lines) if line.startswith("PROBLEM")]
    assert lines[index + 1].strip().startswith("-> Compare CLIENT_ID")


@pytest.mark.parametrize(
    "break_it",
    [broken.unusable_settings, broken.cut_connection],
    ids=["unusable settings", "a cut connection"],
)
def test_what_cannot_be_counted_has_no_figures(site: Site, break_it: BreakIt) -> None:
    """The findings say why."""
    break_it(site)
    ran = run("identity_doctor", "--json")
    said = json.loads(ran.out)
    assert (ran.code, said["problems"], said["figures"]) == (1, 1, {})


def test_the_service_is_asked_once_for_its_keys(site: Site) -> None:
    assert [finding.check for finding in diagnose()].count("key_set") == 1
    assert site.service.calls("jwks") == 1


@pytest.mark.parametrize(
    ("probe", "asked"), [(None, False), (False, False), (True, True)]
)
def test_a_live_application_is_probed_only_if_told(
    site: Site, probe: bool | None, asked: bool
) -> None:
    """So that no refused call is counted against it."""
    address = f"https://127.0.0.1:{site.closed_port()}"
    site.configure(ENVIRONMENT="live", BASE_URL=f"{address}/api/v1", AUTH_URL=address)
    assert ("address" in {finding.check for finding in diagnose(probe=probe)}) is asked


@pytest.mark.parametrize(
    ("probe", "not_tried"),
    [
        (None, ["credentials"]),
        (False, ["credentials"]),
        (True, ["credential", "webhook"]),
    ],
)
def test_what_was_not_tried_is_said(
    site: Site, probe: bool | None, not_tried: list[str]
) -> None:
    """Of a live application without a person: silence would read like an answer."""
    address = f"https://127.0.0.1:{site.closed_port()}"
    site.configure(ENVIRONMENT="live", BASE_URL=f"{address}/api/v1", AUTH_URL=address)
    said = [each.check for each in diagnose(probe=probe) if "not tried" in each.message]
    assert said == not_tried


def test_a_silenced_check_is_silent(site: Site) -> None:
    """An operator has looked at it. What keeps the doctor from looking further is told."""
    broken.no_webhook_secret(site)
    site.settings.SILENCED_SYSTEM_CHECKS = [
        "django_identity.W025",
        "django_identity.E004",
    ]
    assert {finding.level for finding in diagnose()} == {Level.FINE}
    broken.unusable_settings(site)
    assert [each.level for each in diagnose()] == [PROBLEM]


def test_a_count_that_ended_says_so(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (finding, querysets):
        monkeypatch.setattr(module, "MOST_COUNTED", 2)
    for number in range(4):
        ErasureReceipt.objects.create(requested_at=broken.LATE, attempts=number)
    assert "2 or more not done" in [each.message for each in diagnose()]


def test_no_probe_asks_nothing(site: Site) -> None:
    broken.wrong_secret(site)
    assert run("identity_doctor", "--no-probe").code == 0
    assert site.service.calls("token") == 0


@pytest.mark.urls("tests.gates.scope_and_step_up_urls")
def test_a_later_scope_for_which_no_gate_asks_is_a_warning(site: Site) -> None:
    site.configure(
        LATER_SCOPES=["documents:read", "documents:metadata"], DOCUMENT_KEYS=[]
    )
    out = run("identity_doctor").out
    assert "no gate of the map asks for documents:metadata" in out
    assert "unless a template or code of your own asks for it" in out
    assert "asks for documents:read" not in out


def test_a_database_that_lacks_characters_hides_nothing_else(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It can be used all the same, so what its rows tell is told."""
    monkeypatch.setattr(charset, "lacking", lambda: "latin1")
    broken.erasures_left_undone(site)
    found = [finding.check for finding in diagnose() if finding.level is PROBLEM]
    assert found == ["database", "erasures"]


def test_the_number_of_queries_is_bounded(site: Site) -> None:
    """However much is stored and wrong."""

    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            list(diagnose())
        return len(captured)

    def go_wrong(n: int) -> None:
        failing = {
            "refetch_failures": n,
            "last_error": f"reason-{n}",
            "refetch_due_at": broken.LATE,
        }
        identity = make_identity(make_user(f"user-{n}"), subject=f"s-{n}", **failing)
        make_grant(identity, needs_reauthorization=bool(n % 2))

    go_wrong(0)
    few = queries()
    for n in range(1, 20):
        go_wrong(n)
    assert queries() == few <= 40


@pytest.mark.skipif(
    connection.vendor != "sqlite", reason="the others scan small tables"
)
def test_an_index_serves_every_question_about_people(site: Site) -> None:
    """So the doctor takes no longer because a site has more people who are well."""
    with CaptureQueriesContext(connection) as captured:
        list(diagnose(probe=False))
        figures()
    asked = [each["sql"] for each in captured if " WHERE " in each["sql"]]
    about_people = [
        sql for sql in asked if 'FROM "django_identity_linkedidentity"' in sql
    ]
    assert about_people
    for sql in about_people:
        with connection.cursor() as cursor:
            cursor.execute(f"EXPLAIN QUERY PLAN {sql}")
            assert "SCAN django_identity_linkedidentity" not in str(
                cursor.fetchall()
            ), sql


def test_only_so_many_failing_rows_are_counted(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In an outage of a large site all of them fail."""
    monkeypatch.setattr(record_checks, "MOST_COUNTED", 3)
    for number in range(5):
        reason = {"refetch_failures": 7, "last_error": "service_timeout"}
        make_identity(make_user(f"user-{number}"), subject=f"s-{number}", **reason)
    said = [finding.message for finding in diagnose() if finding.check == "refetches"]
    assert said == ["3 failed 5 times in a row or more", "3 failing: service_timeout"]


def test_one_lost_grant_in_a_hundred_is_nobodys_fault(site: Site) -> None:
    """People revoke at the service. Only many at once, of those that there are, have one cause."""
    broken.restored_backup(site)
    assert "PROBLEM" in {finding.level for finding in diagnose()}
    User.objects.bulk_create(User(username=f"other-{number}") for number in range(229))
    # MySQL tells no keys.
    users = User.objects.filter(username__startswith="other-")
    others = [make_identity(user, subject=user.username) for user in users]
    TokenGrant.objects.bulk_create(
        TokenGrant(identity=each, access_expires_at=timezone.now()) for each in others
    )
    [found] = [finding for finding in diagnose() if finding.check == "grants"]
    assert (found.level, found.message[:20]) == (WARNING, "12 grant(s) wait for")


def test_a_probe_reaches_the_sites_own_webhook(site: Site, live_server: Any) -> None:
    """Beside the callback of the newest sign-in, below the path that a proxy puts before it."""
    broken.begin_sign_in(f"{live_server.url}/identity/callback/")
    broken.reader(site)
    found = {finding.check: finding for finding in diagnose(probe=True)}
    assert found["webhook"].message.endswith(
        f"{live_server.url}/identity/webhook/ answers"
    )
    assert found["credential"].message == "the newest person's credential is verified"
    assert {finding.level for finding in found.values()} == {Level.FINE}


def test_nobodys_token_is_refreshed_for_a_probe(site: Site) -> None:
    """It could be lost. Without a token that is alive, no credential is read."""
    broken.other_issuer(site)
    TokenGrant.objects.update(access_expires_at=timezone.now())
    [said] = [each for each in diagnose(probe=True) if each.check == "credential"]
    assert said.message.endswith("not tried, because nobody has a live access token")
    assert site.service.refresh_tokens == ["django-identity-doctor"]


def test_the_sandbox_passes_every_check_of_the_service(
    client: Client,
    identity_application: conf.Application,
    identity_sign_in: Callable[..., Any],
) -> None:
    """It knows the client, and refuses what does not exist."""
    assert identity_sign_in(client).status_code == 302
    of_service = ("key_set", "clock", "credentials", "address")
    found = [finding for finding in diagnose() if finding.check in of_service]
    assert {finding.level for finding in found} == {Level.FINE}
    answering = [finding.message for finding in found if finding.check == "address"]
    assert answering == ["AUTH_URL answers", "BASE_URL answers"]
