"""Broken set-ups, each with the line of ``identity_doctor`` that names its cause and remedy."""

import io
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from celery import current_app
from django.core.management import CommandError, call_command
from django.test import override_settings

from django_identity import background, conf
from django_identity.lifecycle.operators.doctor import Level, diagnose
from django_identity.lifecycle.operators.doctor.service_checks import check_credentials
from tests.commands import broken_setups as broken
from tests.commands.broken_setups import Site
from tests.fake_service import answer, refusal, serving

pytestmark = pytest.mark.django_db(transaction=True)

PROBLEM, WARNING = Level.PROBLEM, Level.WARNING
# What is broken · the check · its level · the cause · the remedy
SETUPS: list[tuple[Callable[[Site], None], str, Level, str, str]] = [
    (broken.wrong_secret, "credentials", PROBLEM, "invalid_client", "CLIENT_SECRET"),
    (broken.wrong_client_id, "credentials", PROBLEM, "unauthorized_client", "CLIENT_ID"),
    (broken.wrong_environment, "credentials", PROBLEM, "environment test", "ENVIRONMENT"),
    (broken.wrong_auth_path, "address", PROBLEM, "AUTH_URL is not usable", "path"),
    (broken.framework_at_auth_path, "address", PROBLEM, "AUTH_URL is not usable", "path"),
    (broken.forbidden_base_path, "address", PROBLEM, "BASE_URL is not usable", "BASE_URL"),
    (broken.wrong_base_path, "address", PROBLEM, "BASE_URL is not usable", "path"),
    (broken.unknown_host, "key_set", PROBLEM, "host name is unknown", "resolver"),
    (broken.refused_connection, "key_set", PROBLEM, "nothing listens there", "port"),
    (broken.untrusted_certificate, "key_set", PROBLEM, "is not trusted", "SSL_CERT_FILE"),
    (broken.no_tls, "key_set", PROBLEM, "speaks no TLS", "scheme"),
    (broken.refusing_proxy, "key_set", PROBLEM, "the proxy refuses", "PROXY"),
    (broken.silent_service, "key_set", PROBLEM, "no answer in time", "firewall"),
    (broken.services_clock, "clock", WARNING, "the service is 9", "NTP"),
    (broken.never_migrated, "migrations", PROBLEM, "the first is 0001_initial", "migrate"),
    (broken.migration_pending, "migrations", PROBLEM, "1 migration(s)", "migrate"),
    (broken.read_only_database, "database", PROBLEM, "takes no writes", "read-only"),
    (broken.dead_broker, "broker", PROBLEM, "does not answer", "CELERY_BROKER_URL"),
    (broken.silent_broker, "broker", PROBLEM, "does not answer", "CELERY_BROKER_URL"),
    (broken.broker_without_its_client, "broker", PROBLEM, "missing: No module named", "Install"),
    (broken.no_broker, "broker", WARNING, "identity_upkeep every minute", ""),
    (broken.dead_cache, "cache", PROBLEM, "does not answer", "CACHES"),
    (broken.no_webhook_secret, "settings", WARNING, "no WEBHOOK_SECRETS", "Register"),
    (broken.no_events, "webhook", PROBLEM, "no event came in 7 days", "Register"),
    (broken.overdue_handlers, "handlers", PROBLEM, "1 event(s) wait", "identity_upkeep"),
    (broken.failed_events, "events", PROBLEM, "1 event(s) failed", "identity_replay"),
    (broken.overdue_rows, "due_rows", PROBLEM, "1 row(s) due", "identity_upkeep"),
    (broken.failing_rows, "refetches", WARNING, "credential_rejected", "issuer"),
    (broken.pending_erasure, "erasures", PROBLEM, "1 not done", "receipt"),
    (broken.lost_grants, "grants", WARNING, "1 grant(s) wait", "grant.lost"),
    (broken.removed_application, "applications", WARNING, "former/test", "Put it back"),
    (
        broken.failing_sign_ins,
        "sign_ins",
        PROBLEM,
        "1 failed lately: credential_rejected",
        "issuer",
    ),
    (broken.unusable_settings, "settings", PROBLEM, "ENVIRONMENT is invalid", "live"),
]


@pytest.fixture
def site(settings: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Site]:
    """A site that is all right, and a service that knows nobody by the doctor's name."""
    monkeypatch.delenv("CELERY_BROKER_URL", raising=False)
    before = current_app._get_current_object()
    shared = {"default": {"BACKEND": "tests.clock_cache.ClockCache"}}
    with serving() as service, ExitStack() as stack, override_settings(CACHES=shared):
        service.answers["token"] = answer({"error": "invalid_grant"}, status="400 Bad Request")
        service.answers["profile"] = refusal("UNAUTHORIZED", "401 Unauthorized")
        made = Site(service, settings, monkeypatch, stack, tmp_path)
        made.configure()
        made.use_broker("memory://")
        yield made
    before.set_current()
    background.remember_app()


def test_there_are_enough() -> None:
    assert len(SETUPS) >= 25


def test_a_site_that_is_all_right_has_none_of_them(site: Site) -> None:
    assert [finding for finding in diagnose() if finding.level is not Level.FINE] == []


@pytest.mark.parametrize(
    ("break_it", "check", "level", "cause", "remedy"),
    SETUPS,
    ids=lambda each: getattr(each, "__name__", None),
)
def test_it_is_named(
    site: Site, break_it: Callable[[Site], None], check: str, level: Level, cause: str, remedy: str
) -> None:
    break_it(site)
    found = list(diagnose())
    assert [
        finding
        for finding in found
        if (finding.check, finding.level) == (check, level)
        and cause in finding.message
        and remedy in finding.remedy
    ], found


@pytest.mark.parametrize(("probe", "asked"), [(None, False), (False, False), (True, True)])
def test_a_live_application_is_probed_only_if_told(
    site: Site, monkeypatch: pytest.MonkeyPatch, probe: bool | None, asked: bool
) -> None:
    """So that no refused call is counted against it."""
    live = replace(conf.application(), environment="live")
    monkeypatch.setattr(conf, "applications", lambda: (live,))
    assert bool(list(check_credentials(probe))) is asked


def test_no_probe_asks_nothing(site: Site) -> None:
    broken.wrong_secret(site)
    out = io.StringIO()
    call_command("identity_doctor", "--no-probe", stdout=out)
    assert site.service.calls("token") == 0


def test_the_remedy_is_printed_below_its_finding(site: Site) -> None:
    broken.wrong_secret(site)
    out = io.StringIO()
    with pytest.raises(CommandError, match="1 finding"):
        call_command("identity_doctor", stdout=out)
    lines = out.getvalue().splitlines()
    (index,) = [at for at, line in enumerate(lines) if line.startswith("PROBLEM")]
    assert lines[index + 1].strip().startswith("-> Compare CLIENT_ID")
