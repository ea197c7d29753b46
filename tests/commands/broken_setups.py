"""The ways in which a set-up can be wrong, and what the doctor finds: the table ``SETUPS``."""

import json
import socket
import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from unittest.mock import patch

from celery import Celery
from django.db import InterfaceError, OperationalError, connection
from django.db.migrations.recorder import MigrationRecorder
from django.utils import timezone
from django.utils.http import http_date

from django_identity import background
from django_identity.exceptions import ServiceUnavailable
from django_identity.instruments.signs import Severity
from django_identity.models import (
    AuthorizationRequest,
    ErasureReceipt,
    EventOutcome,
    TokenGrant,
    UpkeepRun,
)
from django_identity.models.choices import NEVER
from django_identity.service import ServiceClient
from tests.credentials.issuer import jwk
from tests.databases import read_only
from tests.factories import make_event, make_grant, make_identity, make_user
from tests.fake_service import Answer, FakeService, answer, html, http, refusal, silent

NOW = timezone.now()
LATE = NOW - timedelta(hours=1)
DAY, HOUR = timedelta(days=1), timedelta(hours=1)


@dataclass(frozen=True)
class Site:
    service: FakeService
    settings: Any
    stack: ExitStack

    def configure(self, **changes: Any) -> None:
        """The application's settings, with these changes."""
        self.settings.DJANGO_IDENTITY = self.service.settings(**changes)

    def use_broker(self, url: str, **conf: object) -> None:
        self.stack.enter_context(patch.object(background, "SECONDS", 0.3))
        app = Celery("site", broker=url)
        app.conf.update(conf)
        app.set_current()
        background.remember_app()

    def closed_port(self) -> int:
        with socket.create_server(("127.0.0.1", 0)) as server:
            return int(server.getsockname()[1])

    def port(self, greeting: bytes = b"") -> int:
        """The port of a server that greets who connects first, or says nothing."""
        server = self.stack.enter_context(socket.create_server(("127.0.0.1", 0)))

        def serve() -> None:
            with server.accept()[0] as connection:
                connection.sendall(greeting)

        if greeting:
            threading.Thread(target=serve, daemon=True).start()
        return int(server.getsockname()[1])


BreakIt = Callable[[Site], None]


def answering(endpoint: str, given: Answer) -> BreakIt:
    def break_it(site: Site) -> None:
        site.service.answers[endpoint] = given

    return break_it


def oauth_error(code: str, status: str) -> bytes:
    return answer({"error": code}, status=status)


wrong_secret = answering("token", oauth_error("invalid_client", "401 No"))


def unknown_host(site: Site) -> None:
    resolve = socket.getaddrinfo

    def refuse(host: str, *given: Any, **more: Any) -> Any:
        if host == "nowhere.example":
            raise socket.gaierror
        return resolve(host, *given, **more)

    site.stack.enter_context(patch.object(socket, "getaddrinfo", refuse))
    site.configure(API_ORIGIN="https://nowhere.example")


def refused_connection(site: Site) -> None:
    site.configure(API_ORIGIN=f"http://127.0.0.1:{site.closed_port()}")


def unreachable(name: str) -> BreakIt:
    """The key set cannot be fetched, for an error of this name (``tests/service/test_http.py``)."""
    error = ServiceUnavailable()
    error.network_error = name

    def break_it(site: Site) -> None:
        failing = patch.object(ServiceClient, "key_set", side_effect=error)
        site.stack.enter_context(failing)

    return break_it


def no_tls(site: Site) -> None:
    port = site.port(b"HTTP/1.1 400 Bad Request\r\n")
    site.configure(API_ORIGIN=f"https://127.0.0.1:{port}")


def silent_service(site: Site) -> None:
    site.service.answers["jwks"] = silent
    site.configure(TIMEOUT=0.3)


def services_clock(*, differs_by: int, headers: str = "") -> BreakIt:
    def break_it(site: Site) -> None:
        date = http_date(timezone.now().timestamp() + differs_by)
        body = json.dumps({"keys": [jwk()]}).encode()
        site.service.answers["jwks"] = http(body, headers=f"Date: {date}\r\n{headers}")

    return break_it


def configured(**changes: Any) -> BreakIt:
    return lambda site: site.configure(**changes)


unusable_settings = configured(ENVIRONMENT="life")
no_webhook_secret = configured(WEBHOOK_SECRETS=[])


def unapplying(number: int | None) -> BreakIt:
    """Forget so many of the newest migrations until the test ends."""

    def break_it(site: Site) -> None:
        applied = MigrationRecorder.Migration.objects.filter(app="django_identity")
        forgotten = list(applied.order_by("-name")[:number])
        applied.filter(pk__in=[each.pk for each in forgotten]).delete()
        site.stack.callback(MigrationRecorder.Migration.objects.bulk_create, forgotten)

    return break_it


def read_only_database(site: Site) -> None:
    site.stack.enter_context(read_only())


def renaming(table: str, kind: str, name: str) -> BreakIt:
    """``name``, a table or a column of it, has another name until the test ends."""

    def rename(old: str, new: str) -> None:
        what = f"COLUMN {old} TO {new}" if kind == "column" else f"TO {new}"
        named = table if kind == "column" else old
        with connection.cursor() as cursor:
            cursor.execute(f"ALTER TABLE {named} RENAME {what}")

    def break_it(site: Site) -> None:
        rename(name, f"{name}_gone")
        site.stack.callback(rename, f"{name}_gone", name)

    return break_it


CLAIMS = "django_identity_storedclaim"


def failing_statements(work: Callable[..., Any]) -> BreakIt:
    """``work`` is done in place of each statement."""
    return lambda site: site.stack.enter_context(connection.execute_wrapper(work))


def _cut(*_statement: Any) -> Any:
    raise OperationalError


def _close(*_statement: Any) -> Any:
    raise InterfaceError


def _miss(execute: Any, *_statement: Any) -> Any:
    return execute("SELECT * FROM a_table_that_is_missing", None, False, {})


def full_disk(code: object) -> BreakIt:
    """Each write fails as the database says it: by a code of its driver."""
    cause, number = Exception(), "could not extend file"
    if isinstance(code, int):
        number = code
    else:
        named = "sqlstate" if str(code).isdigit() else "sqlite_errorname"
        setattr(cause, named, code)

    def fail(execute: Any, sql: str, *statement: Any) -> Any:
        if sql.startswith("UPDATE"):
            raise OperationalError(number) from cause
        return execute(sql, *statement)

    return failing_statements(fail)


cut_connection, closed_connection, no_tables = map(
    failing_statements,
    (_cut, _close, _miss),
)


def dead_cache(site: Site) -> None:
    address = f"redis://127.0.0.1:{site.closed_port()}"
    cached("redis.RedisCache", LOCATION=address)(site)


def cached(backend: str, **more: str) -> BreakIt:
    given = {"BACKEND": f"django.core.cache.backends.{backend}", **more}
    return lambda site: setattr(site.settings, "CACHES", {"default": given})


def all_of(*ways: BreakIt) -> BreakIt:
    def break_it(site: Site) -> None:
        for way in ways:
            way(site)

    return break_it


def identities(*people: dict[str, Any], **of_all: Any) -> BreakIt:
    """A person for each dict of columns. ``grant``: of their tokens, if they have some."""

    def break_it(_site: Site) -> None:
        for number, person in enumerate(people):
            name = f"user-{number}"
            fields = {"subject": f"subject-{number}", **of_all, **person}
            grant = fields.pop("grant", None)
            linked = make_identity(make_user(name), **fields)
            if grant is not None:
                make_grant(linked, **grant)

    return break_it


def events(*several: dict[str, Any], **of_all: Any) -> BreakIt:
    """An event about one person for each dict of columns."""

    def break_it(_site: Site) -> None:
        linked = make_identity(make_user())
        for fields in several:
            given = {"event_type": "kyc.verified", **of_all, **fields}
            make_event(linked, **given)

    return break_it


def upkeep(**columns: Any) -> BreakIt:
    """What is known of the newest run."""

    def break_it(_site: Site) -> None:
        UpkeepRun.objects.update_or_create(pk=1, defaults=columns)

    return break_it


def sign_in_that(outcome: str) -> BreakIt:
    def break_it(_site: Site) -> None:
        AuthorizationRequest.objects.create(
            environment="test",
            purpose="sign_in",
            expires_at=NOW + HOUR,
            state_digest="s",
            browser_digest="b",
            scopes=[],
            redirect_uri="",
            outcome=outcome,
        )

    return break_it


def erasures_left_undone(site: Site) -> None:
    ErasureReceipt.objects.create(requested_at=LATE)


def damaged_grant(site: Site) -> None:
    """No key opens one of two."""
    identities(TOKENS, TOKENS, refetch_due_at=NOW + DAY, scopes=[])(site)
    one = TokenGrant.objects.filter(identity__subject="subject-0")
    one.update(access_token="", refresh_token="x")


TOKENS = {"grant": {}}
overdue_rows = identities({"refetch_due_at": LATE})
overdue_handlers = events({"next_attempt_at": LATE})
paused_upkeep = upkeep(paused_until=NOW + DAY)

PROBLEM, WARNING = Severity.PROBLEM, Severity.WARNING
STOPPED = ("upkeep", PROBLEM, "upkeep ran at", "beat")
PAUSED = ("upkeep", WARNING, "re-fetches pause until", "--pause 0")
#: What is broken | each sign of it: the check, its level, the cause and the remedy.
SETUPS: dict[str, tuple[Any, ...]] = {
    "wrong secret": (
        wrong_secret,
        ("client", PROBLEM, "invalid_client", "CLIENT_SECRET"),
    ),
    "wrong client id": (
        answering("token", oauth_error("unauthorized_client", "400 No")),
        ("client", PROBLEM, "unauthorized_client", "CLIENT_ID"),
    ),
    "wrong environment": (
        answering("token", refusal("ENVIRONMENT_MISMATCH", "403 No")),
        ("client", PROBLEM, "ENVIRONMENT_MISMATCH", "ENVIRONMENT"),
    ),
    "wrong path in AUTH_URL": (
        answering("token", html("404 Not Found")),
        ("address", PROBLEM, "AUTH_URL is not usable", "path"),
    ),
    "a framework at AUTH_URL": (
        answering("token", oauth_error("Not Found", "404 Not Found")),
        ("address", PROBLEM, "AUTH_URL is not usable", "path"),
    ),
    "forbidden BASE_URL": (
        answering("profile", refusal("FORBIDDEN", "403 Forbidden")),
        ("address", PROBLEM, "BASE_URL is not usable", "BASE_URL"),
    ),
    "wrong path in BASE_URL": (
        answering("profile", html("404 Not Found")),
        ("address", PROBLEM, "BASE_URL is not usable", "path"),
    ),
    "busy AUTH_URL": (
        answering("token", http(b"", status="429 Slow")),
        ("address", WARNING, "AUTH_URL asks for fewer calls", "Wait"),
    ),
    "AUTH_URL that is down": (
        answering("token", html("503 Service Unavailable")),
        ("address", PROBLEM, "AUTH_URL is not usable: it answers HTTP 503", "down"),
    ),
    "BASE_URL that is down": (
        answering("profile", answer({"error": "oops"}, status="500 Oops")),
        ("address", PROBLEM, "BASE_URL is not usable: it answers HTTP 500", "down"),
    ),
    "busy key set": (
        answering("jwks", http(b"", status="429 Slow")),
        ("key_set", WARNING, "asks for fewer calls", "REFETCHES_PER_MINUTE"),
    ),
    "key set that is down": (
        answering("jwks", html("502 Bad Gateway")),
        ("key_set", PROBLEM, "it answers HTTP 502", "down or overloaded"),
    ),
    "malformed key set": (
        answering("jwks", answer([])),
        ("key_set", PROBLEM, "malformed_answer", "API_ORIGIN"),
    ),
    "keys of no use": (
        answering("jwks", {"keys": [jwk("a", use="enc")]}),
        ("key_set", PROBLEM, "every credential is rejected", "Tell the service"),
    ),
    "unknown host": (
        unknown_host,
        ("key_set", PROBLEM, "host name is unknown", "resolver"),
    ),
    "refused connection": (
        refused_connection,
        ("key_set", PROBLEM, "nothing listens there", "port"),
    ),
    "untrusted certificate": (
        unreachable("SSLCertVerificationError"),
        ("key_set", PROBLEM, "is not trusted", "SSL_CERT_FILE"),
    ),
    "no TLS": (no_tls, ("key_set", PROBLEM, "speaks no TLS", "scheme")),
    "refusing proxy": (
        unreachable("ProxyError"),
        ("key_set", PROBLEM, "the proxy refuses", "PROXY"),
    ),
    "silent service": (
        silent_service,
        ("key_set", PROBLEM, "no answer in time", "firewall"),
    ),
    "the service's clock": (
        services_clock(differs_by=95),
        ("clock", WARNING, "the service differs by +9", "NTP"),
    ),
    "an answer that a cache kept": (
        services_clock(differs_by=-240, headers="Age: 240\r\n"),
    ),
    "unusable settings": (
        unusable_settings,
        ("settings", PROBLEM, "ENVIRONMENT is invalid", "live"),
    ),
    "no webhook secret": (
        no_webhook_secret,
        ("settings", WARNING, "no WEBHOOK_SECRETS", "Register"),
    ),
    "never migrated": (
        unapplying(None),
        ("migrations", PROBLEM, "the first is 0001_initial", "migrate"),
    ),
    "migration pending": (
        unapplying(1),
        ("migrations", PROBLEM, "1 migration(s)", "migrate"),
    ),
    "read-only database": (
        read_only_database,
        ("database", PROBLEM, "takes no writes", "read-only"),
    ),
    "full disk of PostgreSQL": (
        full_disk("53100"),
        ("database", PROBLEM, "no writes (OperationalError 53100)", "room"),
    ),
    "full disk of SQLite": (
        full_disk("SQLITE_FULL"),
        ("database", PROBLEM, "SQLITE_FULL", "disk is full"),
    ),
    "full disk of MySQL": (
        full_disk(1021),
        ("database", PROBLEM, "1021", "disk is full"),
    ),
    "full table of MySQL": (
        full_disk(1114),
        ("database", PROBLEM, "1114", "disk is full"),
    ),
    "cut connection": (
        cut_connection,
        ("database", PROBLEM, "OperationalError", "DATABASES"),
    ),
    "closed connection": (
        closed_connection,
        ("database", PROBLEM, "InterfaceError", "DATABASES"),
    ),
    "no tables": (no_tables, ("database", PROBLEM, "does not answer", "migrate")),
    "missing table": (
        renaming(CLAIMS, "table", CLAIMS),
        ("database", PROBLEM, CLAIMS, "backup"),
    ),
    "missing column": (
        renaming(CLAIMS, "column", "proof_hash"),
        ("database", PROBLEM, f"lack columns: {CLAIMS}", "backup"),
    ),
    "dead broker": (
        lambda site: site.use_broker(f"redis://127.0.0.1:{site.closed_port()}/0"),
        ("broker", PROBLEM, "does not answer", "CELERY_BROKER_URL"),
    ),
    "silent broker": (
        lambda site: site.use_broker(f"redis://127.0.0.1:{site.port()}/0"),
        ("broker", PROBLEM, "does not answer", "CELERY_BROKER_URL"),
    ),
    "broker without its client": (
        lambda site: site.use_broker("mongodb://127.0.0.1"),
        ("broker", PROBLEM, "missing: No module named", "Install"),
    ),
    "no broker": (
        lambda site: site.use_broker(""),
        ("broker", WARNING, "identity_upkeep every minute", ""),
    ),
    "eager tasks": (
        lambda site: site.use_broker("", task_always_eager=True),
        ("broker", WARNING, "tasks run inside requests", "Start a worker"),
    ),
    "dead cache": (dead_cache, ("cache", PROBLEM, "does not answer", "CACHES")),
    "forgetful cache": (
        cached("dummy.DummyCache"),
        ("cache", WARNING, "it keeps nothing", "CACHES"),
    ),
    "upkeep that never ran": (
        upkeep(begun_at=NEVER),
        ("upkeep", WARNING, "has not run yet", "identity_upkeep"),
    ),
    "upkeep that is needed and never ran": (
        all_of(upkeep(begun_at=NEVER), identities({"refetch_due_at": NOW + DAY})),
        ("upkeep", PROBLEM, "has not run yet", "autodiscover_tasks"),
    ),
    "upkeep before the clock was set back": (
        all_of(
            upkeep(begun_at=NOW + 9 * DAY),
            identities({"refetch_due_at": NOW + DAY}),
        ),
        STOPPED,
    ),
    "upkeep that stopped": (
        all_of(upkeep(begun_at=LATE), overdue_rows),
        STOPPED,
        ("due_rows", PROBLEM, "due for over 15 minutes: 1", "upkeep"),
    ),
    "upkeep that stopped for handlers": (
        all_of(upkeep(begun_at=LATE), overdue_handlers),
        ("upkeep", WARNING, "upkeep ran at", ""),
        ("handlers", PROBLEM, "15 minutes: 1", "upkeep"),
    ),
    "paused upkeep": (paused_upkeep, PAUSED),
    "overdue in a pause": (
        all_of(overdue_rows, paused_upkeep),
        PAUSED,
        ("due_rows", PROBLEM, "over 15 minutes: 1", "REFETCHES_PER_MINUTE"),
    ),
    "overdue beside a run": (
        all_of(overdue_rows, upkeep(begun_at=NOW)),
        ("due_rows", PROBLEM, "due for over 15 minutes: 1", "workers"),
    ),
    "overdue handlers": (
        overdue_handlers,
        ("handlers", PROBLEM, "15 minutes: 1", "handler_failed"),
    ),
    # One can be replayed; the other's content is deleted.
    "failed events": (
        events({}, {"event_id": "", "payload": None}, outcome=EventOutcome.FAILED),
        ("events", PROBLEM, "failed for good: 1", "identity_replay"),
    ),
    # A revocation that fails to be applied: it is tried again tomorrow.
    "stored events": (
        events(
            {
                "event_type": "consent.revoked",
                "outcome": "",
                "received_at": LATE,
                "attempts": 7,
                "error": "OperationalError",
                "next_attempt_at": NOW + DAY,
            },
        ),
        ("unapplied", PROBLEM, "is still open: 1", "event.failed"),
    ),
    # Two lately; one is from before the setting was mended.
    "nameless events": (
        events(
            *({"received_at": NOW - hours * HOUR} for hours in (0, 1, 25)),
            event_type="consent.revoked",
            event_id="",
            subject="",
            subject_digest="",
            outcome=EventOutcome.IGNORED,
        ),
        ("nameless", PROBLEM, "named nobody: 2", "EVENT_SUBJECT_PATHS"),
    ),
    # Grants that were stored under a key which the settings do not have.
    "missing key": (
        all_of(
            configured(ENCRYPTION_KEYS=["a key that is missing"]),
            identities(
                *({**TOKENS, "refetch_due_at": NOW + n * HOUR} for n in range(22)),
            ),
            configured(),
        ),
        ("keys", PROBLEM, "no key opens 22 of 22", "former key"),
    ),
    "damaged grant": (
        damaged_grant,
        ("keys", PROBLEM, "no key opens 1 of 2", "former key"),
    ),
    "rows without a key": (
        identities({"refetch_failures": 1, "last_error": "sealed_value_unreadable"}),
        ("failing", WARNING, "1, sealed_value_unreadable", "former key"),
    ),
    # The service takes the refresh tokens of nobody any more.
    "restored backup": (
        identities(
            *[{"grant": {"needs_reauthorization": True, "access_expires_at": NOW}}]
            * 12,
        ),
        ("grants", WARNING, "lost within a day: 12", "identity_refetch --pause"),
        ("grants", WARNING, "lost within a day: 12", "two sites with one client"),
    ),
    "failing rows": (
        identities(
            {"refetch_failures": 1, "last_error": "credential_rejected"},
            {"refetch_failures": 2, "last_error": "service_timeout"},
            {"refetch_failures": 5, "last_error": "service_timeout"},
        ),
        ("failing", WARNING, "1, credential_rejected", "API_ORIGIN"),
        ("refetches", PROBLEM, "5 times in a row or more: 1, service_", ""),
    ),
    "sign-ins that could not be read": (
        identities({"last_error": "credential_rejected", "refetch_due_at": NOW}),
        ("unread", WARNING, "proven: 1, credential_rejected", "API_ORIGIN"),
    ),
    "erasures left undone": (
        erasures_left_undone,
        ("erasures", PROBLEM, "not done: 1", "receipt"),
    ),
    "changed environment": (
        identities({"environment": "live"}),
        ("environment", PROBLEM, "no event reaches: 1", "ENVIRONMENT"),
    ),
    "failing sign-ins": (
        sign_in_that("credential_rejected"),
        ("sign_ins", PROBLEM, "lately: 1, credential_rejected", "API_ORIGIN"),
    ),
    "redirected sign-ins": (
        sign_in_that("unexpected_redirect"),
        ("sign_ins", PROBLEM, "lately: 1, unexpected_redirect", "BASE_URL"),
    ),
}
