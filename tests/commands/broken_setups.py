"""The ways in which a set-up can be wrong: each function breaks a ``Site`` that is all right.

``test_identity_doctor.py`` has a table of what the doctor finds for each.
"""

import json
import socket
import ssl
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from unittest.mock import patch

import trustme
from celery import Celery
from django.db import InterfaceError, OperationalError, connection
from django.db.migrations.recorder import MigrationRecorder
from django.utils import timezone
from django.utils.http import http_date

from django_identity import background
from django_identity.lifecycle.operators import interventions
from django_identity.models import (
    AuthorizationRequest,
    ErasureReceipt,
    EventOutcome,
    TokenGrant,
    UpkeepRun,
)
from django_identity.models.choices import NEVER
from tests.credentials.issuer import jwk
from tests.databases import read_only
from tests.deliveries import SECRET
from tests.factories import make_event, make_grant, make_identity, make_user
from tests.fake_service import (
    Answer,
    FakeService,
    answer,
    html,
    http,
    refusal,
    silent,
)
from tests.service.environment import environment
from tests.service.servers import ForwardProxy

NOW = timezone.now()
LATE = NOW - timedelta(hours=1)
DAY = timedelta(days=1)
NOTHING_LEFT = {"hits": {}, "unsure": {}, "unread": {}}
LEFT = {**NOTHING_LEFT, "hits": {"shop.Order.address": 1}}
UNREAD = {**NOTHING_LEFT, "unread": {"shop.Scan.text": "1 too long"}}


@dataclass(frozen=True)
class Site:
    service: FakeService
    settings: Any
    stack: ExitStack

    def configure(self, **changes: Any) -> None:
        """The application's settings, with these changes."""
        given = {"WEBHOOK_SECRETS": [SECRET], **changes}
        self.settings.DJANGO_IDENTITY = self.service.settings(**given)

    def use_broker(self, url: str, **conf: object) -> None:
        self.stack.enter_context(patch.object(background, "SECONDS", 0.3))
        app = Celery("site", broker=url)
        app.conf.update(conf)
        app.set_current()
        background.remember_app()

    def closed_port(self) -> int:
        with socket.create_server(("127.0.0.1", 0)) as server:
            return int(server.getsockname()[1])

    def silent_port(self) -> int:
        """The port of a server that accepts connections and says nothing."""
        server = self.stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        return int(server.getsockname()[1])

    def port(self, greet: Callable[[socket.socket], object]) -> int:
        """The port of a server that greets whoever connects, and hangs up."""
        server = self.stack.enter_context(socket.create_server(("127.0.0.1", 0)))

        def serve() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    with connection:
                        greet(connection)

        threading.Thread(target=serve, daemon=True).start()
        return int(server.getsockname()[1])


BreakIt = Callable[[Site], None]


# The service


def answering(endpoint: str, given: Answer) -> BreakIt:
    def break_it(site: Site) -> None:
        site.service.answers[endpoint] = given

    return break_it


def oauth_error(code: str, status: str) -> bytes:
    return answer({"error": code}, status=status)


wrong_secret = answering("token", oauth_error("invalid_client", "401 No"))
wrong_secret_in_the_envelope = answering("token", refusal("INVALID_CLIENT", "401 No"))
wrong_client_id = answering("token", oauth_error("unauthorized_client", "400 No"))
wrong_environment = answering("token", refusal("ENVIRONMENT_MISMATCH", "403 Forbidden"))
wrong_auth_path = answering("token", html("404 Not Found"))
framework_at_auth_path = answering("token", oauth_error("Not Found", "404 Not Found"))
forbidden_base_path = answering("profile", refusal("FORBIDDEN", "403 Forbidden"))
wrong_base_path = answering("profile", html("404 Not Found"))
busy_auth = answering(
    "token", http(b"", status="429 Slow", headers="Retry-After: 9\r\n")
)
auth_that_is_down = answering("token", html("503 Service Unavailable"))
api_that_is_down = answering("profile", answer({"error": "oops"}, status="500 Oops"))
busy_key_set = answering("jwks", http(b"", status="429 Slow"))
key_set_that_is_down = answering("jwks", html("502 Bad Gateway"))
malformed_key_set = answering("jwks", answer([]))
keys_of_no_use = answering("jwks", {"keys": [jwk("a", use="enc")]})


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


def untrusted_certificate(site: Site) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(context)

    def greet(connection: socket.socket) -> None:
        with suppress(ssl.SSLError):
            context.wrap_socket(connection, server_side=True)

    site.configure(API_ORIGIN=f"https://127.0.0.1:{site.port(greet)}")


def no_tls(site: Site) -> None:
    port = site.port(
        lambda connection: connection.sendall(b"HTTP/1.1 400 Bad Request\r\n")
    )
    site.configure(API_ORIGIN=f"https://127.0.0.1:{port}")


def refusing_proxy(site: Site) -> None:
    proxy = ForwardProxy(credentials="user:right")
    site.stack.callback(proxy.close)
    address = proxy.address.replace("user:right", "user:wrong")
    site.configure(API_ORIGIN="https://service.example")
    site.stack.enter_context(environment(HTTPS_PROXY=address))


def silent_service(site: Site) -> None:
    site.service.answers["jwks"] = silent
    site.configure(TIMEOUT=0.3)


def services_clock(site: Site) -> None:
    date = http_date(timezone.now().timestamp() + 95)
    body = json.dumps({"keys": [jwk()]}).encode()
    site.service.answers["jwks"] = http(body, headers=f"Date: {date}\r\n")


# Settings, database, broker, cache


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


never_migrated, migration_pending = unapplying(None), unapplying(1)


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
missing_table = renaming(CLAIMS, "table", CLAIMS)
missing_column = renaming(CLAIMS, "column", "proof_hash")


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

    def fail(execute: Any, sql: str, *statement: Any) -> Any:
        if not sql.startswith("UPDATE"):
            return execute(sql, *statement)
        cause = Exception()
        number = code if isinstance(code, int) else "could not extend file"
        named = "sqlstate" if str(code).isdigit() else "sqlite_errorname"
        if not isinstance(code, int):
            setattr(cause, named, code)
        raise OperationalError(number) from cause

    return failing_statements(fail)


full_disk_of_postgresql = full_disk("53100")
full_disk_of_sqlite = full_disk("SQLITE_FULL")
full_disk_of_mysql = full_disk(1021)
full_table_of_mysql = full_disk(1114)
cut_connection, closed_connection, no_tables = map(
    failing_statements, (_cut, _close, _miss)
)


def broker(address: Callable[[Site], str]) -> BreakIt:
    return lambda site: site.use_broker(address(site))


dead_broker = broker(lambda site: f"redis://127.0.0.1:{site.closed_port()}/0")
silent_broker = broker(lambda site: f"redis://127.0.0.1:{site.silent_port()}/0")
broker_without_its_client = broker(lambda _site: "mongodb://127.0.0.1")
no_broker = broker(lambda _site: "")


def eager_tasks(site: Site) -> None:
    site.use_broker("", task_always_eager=True)


def dead_cache(site: Site) -> None:
    backend = "django.core.cache.backends.redis.RedisCache"
    address = f"redis://127.0.0.1:{site.closed_port()}"
    site.settings.CACHES = {"default": {"BACKEND": backend, "LOCATION": address}}


def forgetful_cache(site: Site) -> None:
    backend = "django.core.cache.backends.dummy.DummyCache"
    site.settings.CACHES = {"default": {"BACKEND": backend}}


# What is stored


def identity(**fields: Any) -> BreakIt:
    def break_it(_site: Site) -> None:
        make_identity(make_user(), **fields)

    return break_it


unread_sign_ins = identity(last_error="credential_rejected", refetch_due_at=NOW)
changed_environment = identity(environment="live")


# Upkeep


def upkeep(**columns: Any) -> BreakIt:
    """What is known of the newest run."""

    def break_it(_site: Site) -> None:
        UpkeepRun.objects.update_or_create(pk=1, defaults=columns)

    return break_it


def all_of(*ways: BreakIt) -> BreakIt:
    def break_it(site: Site) -> None:
        for way in ways:
            way(site)

    return break_it


def overdue_handlers(site: Site) -> None:
    make_event(make_identity(make_user()), "kyc.verified", next_attempt_at=LATE)


overdue_rows = identity(refetch_due_at=LATE)
upkeep_never_ran = upkeep(begun_at=NEVER)
upkeep_needed_and_never_ran = all_of(
    upkeep_never_ran, identity(refetch_due_at=LATE + DAY)
)
upkeep_before_the_clock_was_set_back = all_of(
    upkeep(begun_at=NOW + 9 * DAY), identity(refetch_due_at=NOW + DAY)
)
upkeep_stopped = all_of(upkeep(begun_at=LATE), overdue_rows)
upkeep_stopped_for_handlers = all_of(upkeep(begun_at=LATE), overdue_handlers)
paused_upkeep = upkeep(paused_until=NOW + DAY)
overdue_in_a_pause = all_of(overdue_rows, paused_upkeep)
overdue_beside_a_run = all_of(overdue_rows, upkeep(begun_at=NOW))


# Keys and grants


def sealed_by(key: str, people: int = 1) -> BreakIt:
    """Grants that were stored under that key, which the settings do not have."""

    def break_it(site: Site) -> None:
        site.configure(ENCRYPTION_KEYS=[key])
        for number in range(people):
            due_at = NOW + timedelta(hours=number)
            name = f"person-{number}"
            linked = make_identity(make_user(name), subject=name, refetch_due_at=due_at)
            make_grant(linked)
        site.configure()

    return break_it


missing_key = sealed_by("a key that is missing", people=22)
rows_without_key = identity(refetch_failures=1, last_error="sealed_value_unreadable")


def damaged_grant(_site: Site) -> None:
    """No key opens one of two."""
    linked = [
        make_identity(make_user(n), subject=n, refetch_due_at=NOW + DAY, scopes=[])
        for n in "ab"
    ]
    make_grant(linked[0])
    TokenGrant.objects.create(
        identity=linked[1], refresh_token="x", access_expires_at=NOW
    )


def restored_backup(_site: Site) -> None:
    """The service takes the refresh tokens of nobody any more."""
    for number in range(12):
        linked = make_identity(make_user(f"user-{number}"), subject=f"subject-{number}")
        make_grant(linked, needs_reauthorization=True, access_expires_at=NOW)


def lost_grants(site: Site) -> None:
    """One can come back; the other's consent is over."""
    for number in range(2):
        linked = make_identity(make_user(f"user-{number}"), subject=f"subject-{number}")
        make_grant(linked, needs_reauthorization=True)
    interventions.revoke([linked])


# The webhook and its events


def begin_sign_in(redirect_uri: str, **fields: Any) -> None:
    AuthorizationRequest.objects.create(
        environment="test", purpose="sign_in", expires_at=NOW + timedelta(hours=1),
        state_digest="s", browser_digest="b", scopes=[], redirect_uri=redirect_uri, **fields,
    )  # fmt: skip


def failed_events(site: Site) -> None:
    """One can be replayed; the other's content is deleted."""
    linked = make_identity(make_user())
    for fields in ({}, {"event_id": "", "payload": None}):
        make_event(linked, "kyc.verified", outcome=EventOutcome.FAILED, **fields)


def stored_events(site: Site) -> None:
    """A revocation that fails to be applied: it is tried again tomorrow."""
    make_event(
        make_identity(make_user()),
        "consent.revoked",
        outcome="",
        received_at=LATE,
        attempts=7,
        error="OperationalError",
        next_attempt_at=NOW + DAY,
    )


def nameless_events(site: Site) -> None:
    """Two lately; one is from before the setting was mended."""
    linked = make_identity(make_user())
    for hours in (0, 1, 25):
        make_event(
            linked,
            "consent.revoked",
            event_id="",
            subject="",
            subject_digest="",
            outcome=EventOutcome.IGNORED,
            received_at=timezone.now() - timedelta(hours=hours),
        )


# Re-fetches, erasures and sign-ins


def failing_rows(site: Site) -> None:
    reasons = ("credential_rejected", "service_timeout", "service_timeout")
    for number, (failures, reason) in enumerate(zip((1, 2, 5), reasons, strict=True)):
        failing = {"refetch_failures": failures, "last_error": reason}
        make_identity(
            make_user(f"user-{number}"), subject=f"subject-{number}", **failing
        )


def many_reasons(site: Site) -> None:
    """The rarest is the site's own fault."""
    reasons = [f"service_trouble_{n // 2}" for n in range(12)]
    for number, reason in enumerate([*reasons, "sealed_value_unreadable"]):
        failing = {"refetch_failures": 1, "last_error": reason}
        make_identity(make_user(f"u-{number}"), subject=f"s-{number}", **failing)


def erasures_left_undone(site: Site) -> None:
    ErasureReceipt.objects.create(requested_at=LATE)


def erasures_that_left_something(site: Site) -> None:
    """One lately; two left nothing that is known, and one is over a month old."""
    for audit, days in ((LEFT, 1), (NOTHING_LEFT, 1), (None, 1), (LEFT, 40)):
        make_audited(audit, days=days)


def audits_that_could_not_read(site: Site) -> None:
    """One lately, and one over a month ago."""
    for audit, days in ((UNREAD, 1), (NOTHING_LEFT, 1), (UNREAD, 40)):
        make_audited(audit, days=days)


def make_audited(audit: Any, *, days: int) -> None:
    at = NOW - timedelta(days=days)
    ErasureReceipt.objects.create(requested_at=at, erased_at=at, audit=audit)


def failing_sign_ins(site: Site) -> None:
    begin_sign_in("", outcome="credential_rejected")


def redirected_sign_ins(site: Site) -> None:
    begin_sign_in("", outcome="unexpected_redirect")
