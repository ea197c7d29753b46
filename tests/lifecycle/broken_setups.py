"""Ways to set a site up wrongly, one function each. Each gets a site that is all right."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from celery import Celery
from django.db.migrations.recorder import MigrationRecorder
from django.utils import timezone
from django.utils.http import http_date

from django_identity import background, conf
from django_identity.lifecycle.events import tallies
from django_identity.lifecycle.operators.doctor import findings
from django_identity.models import (
    AuthorizationRequest,
    ErasureReceipt,
    EventOutcome,
    Job,
    JobRun,
    LinkedIdentity,
    TallyName,
)
from django_identity.testing.clock import moved_clock
from tests.databases import read_only
from tests.deliveries import SECRET, event_body, post, signed
from tests.hostile import HostileService, answer, hostile_service, html, http, refusal, silent
from tests.records import make_event, make_grant, make_identity, make_user, sealed
from tests.service.authority import Authority
from tests.service.forward_proxy import ForwardProxy

OLDER = "the-webhook-secret-from-before"
LATE = timedelta(hours=1)
DAYS = timedelta(days=1)


@dataclass(frozen=True)
class Site:
    service: HostileService
    settings: Any
    patch: pytest.MonkeyPatch
    stack: ExitStack
    folder: Path

    def configure(self, **changes: Any) -> None:
        """Change the application's settings."""
        given = {"WEBHOOK_SECRETS": [SECRET], **changes}
        self.settings.DJANGO_IDENTITY = {"default": self.service.settings(**given)}

    def use_broker(self, url: str) -> None:
        Celery("site", broker=url).set_current()
        background.remember_app()

    def use_cache(self, address: str) -> None:
        backend = "django.core.cache.backends.redis.RedisCache"
        self.settings.CACHES = {"default": {"BACKEND": backend, "LOCATION": address}}


@contextmanager
def _listening() -> Iterator[int]:
    """The port of a server that accepts connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def _closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def _silent_port(site: Site) -> int:
    site.patch.setattr(findings, "SILENCE", 0.3)
    return site.stack.enter_context(_listening())


# The service


def wrong_secret(site: Site) -> None:
    site.service.answers["token"] = answer({"error": "invalid_client"}, status="401 No")


def wrong_client_id(site: Site) -> None:
    site.service.answers["token"] = answer({"error": "unauthorized_client"}, status="400 No")


def wrong_environment(site: Site) -> None:
    site.service.answers["token"] = refusal("ENVIRONMENT_MISMATCH", "403 Forbidden")


def wrong_auth_path(site: Site) -> None:
    site.service.answers["token"] = html("404 Not Found")


def wrong_base_path(site: Site) -> None:
    site.service.answers["profile"] = html("404 Not Found")


def wrong_origin(site: Site) -> None:
    """The key set is there too, so only the issuer tells."""
    identity = make_identity(make_user(), credential="x")
    text = site.service.credential()
    LinkedIdentity.objects.update(credential=sealed(identity, "credential", text))
    other = site.stack.enter_context(hostile_service())
    other.key = site.service.key
    site.configure(API_ORIGIN=other.origin)


def unknown_host(site: Site) -> None:
    resolve = socket.getaddrinfo

    def refuse(host: str, *given: Any, **more: Any) -> Any:
        if host == "nowhere.example":
            raise socket.gaierror
        return resolve(host, *given, **more)

    site.patch.setattr(socket, "getaddrinfo", refuse)
    site.configure(API_ORIGIN="https://nowhere.example")


def refused_connection(site: Site) -> None:
    site.configure(API_ORIGIN=f"http://127.0.0.1:{_closed_port()}")


def untrusted_certificate(site: Site) -> None:
    context = Authority(site.folder).server_context()

    def greet(connection: socket.socket) -> None:
        with suppress(ssl.SSLError):
            context.wrap_socket(connection, server_side=True)

    site.configure(API_ORIGIN=f"https://127.0.0.1:{_serving(site, greet)}")


def no_tls(site: Site) -> None:
    port = _serving(site, lambda connection: connection.sendall(b"HTTP/1.1 400 Bad Request\r\n"))
    site.configure(API_ORIGIN=f"https://127.0.0.1:{port}")


def _serving(site: Site, greet: Callable[[socket.socket], object]) -> int:
    """The port of a server that greets whoever connects, and hangs up."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with suppress(OSError):
            while True:
                connection, _ = server.accept()
                with connection:
                    greet(connection)

    site.stack.callback(server.close)
    threading.Thread(target=serve, daemon=True).start()
    return int(server.getsockname()[1])


def refusing_proxy(site: Site) -> None:
    proxy = ForwardProxy(credentials="user:right")
    site.stack.callback(proxy.close)
    address = proxy.address.replace("user:right", "user:wrong")
    site.configure(API_ORIGIN="https://service.example", PROXY=address)


def silent_service(site: Site) -> None:
    site.service.answers["jwks"] = silent
    site.configure(TIMEOUT=0.3)


def services_clock(site: Site) -> None:
    date = http_date(timezone.now().timestamp() + 95)
    body = b'{"keys": []}'
    site.service.answers["jwks"] = http(body, headers=f"Date: {date}\r\n")


def sites_clock(site: Site) -> None:
    clock = site.stack.enter_context(moved_clock())
    clock.advance(minutes=10)


# Database, broker, cache


def never_migrated(site: Site) -> None:
    _unapply(site, number=None)


def migration_pending(site: Site) -> None:
    _unapply(site, number=1)


def _unapply(site: Site, *, number: int | None) -> None:
    """Forget the newest migrations until the test ends."""
    applied = MigrationRecorder.Migration.objects.filter(app="django_identity")
    forgotten = list(applied.order_by("-name")[:number])
    applied.filter(pk__in=[each.pk for each in forgotten]).delete()
    site.stack.callback(MigrationRecorder.Migration.objects.bulk_create, forgotten)


def read_only_database(site: Site) -> None:
    site.stack.enter_context(read_only())


def dead_broker(site: Site) -> None:
    site.patch.setattr(findings, "SILENCE", 0.3)
    site.use_broker(f"redis://127.0.0.1:{_closed_port()}/0")


def silent_broker(site: Site) -> None:
    site.use_broker(f"redis://127.0.0.1:{_silent_port(site)}/0")


def no_broker(site: Site) -> None:
    site.use_broker("")


def dead_cache(site: Site) -> None:
    site.use_cache(f"redis://127.0.0.1:{_closed_port()}")


def silent_cache(site: Site) -> None:
    site.use_cache(f"redis://127.0.0.1:{_silent_port(site)}")


def cache_of_one_process(site: Site) -> None:
    site.settings.CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}


def lost_key(site: Site) -> None:
    make_grant(make_identity(make_user()))
    site.configure(ENCRYPTION_KEYS=["another key than the one before"])


# Webhooks


def no_webhook_secret(site: Site) -> None:
    site.configure(WEBHOOK_SECRETS=[])


def wrong_webhook_secret(site: Site) -> None:
    post(event_body("kyc.verified"), signature="0" * 64)


def stranger_at_the_webhook(site: Site) -> None:
    post(event_body("kyc.verified"), signature="0" * 64)
    post(event_body("kyc.verified"))


def garbage_in_webhooks(site: Site) -> None:
    post(b"{}")


def conflicting_events(site: Site) -> None:
    post(event_body("kyc.verified", event_id="one"))
    post(event_body("kyc.rejected", event_id="one"))


def no_events(site: Site) -> None:
    tallies.add(TallyName.SIGNED_IN, application=conf.application())


def secret_that_may_go(site: Site) -> None:
    site.configure(WEBHOOK_SECRETS=[SECRET, OLDER])
    body = event_body("kyc.verified")
    post(body, signature=signed(body))


# Upkeep and rows


def overdue_handlers(site: Site) -> None:
    event = make_event(make_identity(make_user()), "kyc.verified")
    type(event).objects.update(next_attempt_at=timezone.now() - LATE)


def failed_events(site: Site) -> None:
    make_event(make_identity(make_user()), "kyc.verified", outcome=EventOutcome.FAILED)


def old_payloads(site: Site) -> None:
    long_ago = timezone.now() - 40 * DAYS
    make_event(make_identity(make_user()), "kyc.verified", received_at=long_ago)


def sweep_stopped(site: Site) -> None:
    JobRun.objects.update_or_create(job=Job.SWEEP, defaults={"done_at": timezone.now() - LATE})


def purge_never_ran(site: Site) -> None:
    make_identity(make_user())
    LinkedIdentity.objects.update(created_at=timezone.now() - 3 * DAYS)


def overdue_rows(site: Site) -> None:
    make_identity(make_user(), refetch_due_at=timezone.now() - LATE)


def failing_rows(site: Site) -> None:
    make_identity(make_user(), refetch_failures=6, last_error="credential_rejected")


def pending_erasure(site: Site) -> None:
    ErasureReceipt.objects.create(
        application="default", environment="test", subject_digest="d",
        requested_at=timezone.now() - DAYS,
    )  # fmt: skip


def lost_grants(site: Site) -> None:
    make_grant(make_identity(make_user()), needs_reauthorization=True)


def removed_application(site: Site) -> None:
    make_identity(make_user(), application="former")


def failing_sign_ins(site: Site) -> None:
    now = timezone.now()
    AuthorizationRequest.objects.create(
        application="default", environment="test", purpose="sign_in", outcome="credential_rejected",
        expires_at=now, state_digest="s", browser_digest="b", scopes=[],
    )  # fmt: skip


def unusable_settings(site: Site) -> None:
    site.configure(ENVIRONMENT="life")
