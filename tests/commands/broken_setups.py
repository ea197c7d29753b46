"""Ways to set a site up wrongly, one function each. Each gets a site that is all right."""

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import trustme
from celery import Celery
from django.db.migrations.recorder import MigrationRecorder
from django.utils import timezone
from django.utils.http import http_date

from django_identity import background
from django_identity.models import (
    AuthorizationRequest,
    ErasureReceipt,
    EventOutcome,
)
from tests.databases import read_only
from tests.deliveries import SECRET
from tests.factories import make_event, make_grant, make_identity, make_user
from tests.fake_service import FakeService, answer, html, http, refusal, silent
from tests.service.environment import environment
from tests.service.forward_proxy import ForwardProxy

LATE = timedelta(hours=1)
DAYS = timedelta(days=1)


@dataclass(frozen=True)
class Site:
    service: FakeService
    settings: Any
    patch: pytest.MonkeyPatch
    stack: ExitStack
    folder: Path

    def configure(self, **changes: Any) -> None:
        """Change the application's settings."""
        given = {"WEBHOOK_SECRETS": [SECRET], **changes}
        self.settings.DJANGO_IDENTITY = {"default": self.service.settings(**given)}

    def use_broker(self, url: str) -> None:
        self.stack.enter_context(patch.object(background, "SECONDS", 0.3))
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


def framework_at_auth_path(site: Site) -> None:
    site.service.answers["token"] = answer({"error": "Not Found"}, status="404 Not Found")


def forbidden_base_path(site: Site) -> None:
    site.service.answers["profile"] = refusal("FORBIDDEN", "403 Forbidden")


def wrong_base_path(site: Site) -> None:
    site.service.answers["profile"] = html("404 Not Found")


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
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(context)

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
    site.configure(API_ORIGIN="https://service.example")
    site.stack.enter_context(environment(HTTPS_PROXY=address))


def silent_service(site: Site) -> None:
    site.service.answers["jwks"] = silent
    site.configure(TIMEOUT=0.3)


def services_clock(site: Site) -> None:
    date = http_date(timezone.now().timestamp() + 95)
    body = b'{"keys": []}'
    site.service.answers["jwks"] = http(body, headers=f"Date: {date}\r\n")


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
    site.use_broker(f"redis://127.0.0.1:{_closed_port()}/0")


def silent_broker(site: Site) -> None:
    site.use_broker(f"redis://127.0.0.1:{_silent_port(site)}/0")


def broker_without_its_client(site: Site) -> None:
    site.use_broker("mongodb://127.0.0.1")


def no_broker(site: Site) -> None:
    site.use_broker("")


def dead_cache(site: Site) -> None:
    site.use_cache(f"redis://127.0.0.1:{_closed_port()}")


# Webhooks


def no_webhook_secret(site: Site) -> None:
    site.configure(WEBHOOK_SECRETS=[])


def no_events(site: Site) -> None:
    make_identity(make_user(), signed_in_at=timezone.now())


# Upkeep and rows


def overdue_handlers(site: Site) -> None:
    event = make_event(make_identity(make_user()), "kyc.verified")
    type(event).objects.update(next_attempt_at=timezone.now() - LATE)


def failed_events(site: Site) -> None:
    make_event(make_identity(make_user()), "kyc.verified", outcome=EventOutcome.FAILED)


def overdue_rows(site: Site) -> None:
    make_identity(make_user(), refetch_due_at=timezone.now() - LATE)


def failing_rows(site: Site) -> None:
    make_identity(make_user(), refetch_failures=6, last_error="credential_rejected")


def pending_erasure(site: Site) -> None:
    ErasureReceipt.objects.create(
        application="default", requested_at=timezone.now() - DAYS,
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
