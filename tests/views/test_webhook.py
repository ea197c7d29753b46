"""The webhook: who may post what, and what the service is told."""

import io
import json
import logging
from collections.abc import Mapping
from typing import Any

import pytest
from django.core.handlers.wsgi import WSGIRequest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from hypothesis import given
from hypothesis import strategies as st

from django_identity.models import WebhookEvent
from django_identity.views.webhook import webhook
from tests.deliveries import event_body, post, signed
from tests.example_counts import examples
from tests.factories import make_user
from tests.test_strict_json import VALUES

pytestmark = pytest.mark.django_db(transaction=True)

LIMIT = 256 * 1024


def test_a_delivery_is_acknowledged():
    """And no session is touched, though cookies come along: neither read nor made to last."""
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(make_user("grace"))
    with CaptureQueriesContext(connection) as captured:
        response = post(event_body("consent.revoked"), client=browser)
    assert response.status_code == 200
    assert response.content == b'{"received": true}'
    assert response["Cache-Control"] == "private, no-store"
    read = [query["sql"] for query in captured]
    assert not [sql for sql in read if "django_session" in sql or "auth_user" in sql]
    assert not response.cookies
    assert "Cookie" not in response.get("Vary", "")


def webhook_secrets(settings: Any, *secrets: str) -> None:
    held = {**settings.DJANGO_IDENTITY, "WEBHOOK_SECRETS": list(secrets)}
    settings.DJANGO_IDENTITY = held


BOTH = ("the-newer-secret-of-the-two", "the-older-secret-of-the-two")


@pytest.mark.parametrize("secret", BOTH)
def test_each_active_secret_is_taken(settings, secret):
    """While one is being replaced; what an application no longer has is refused."""
    webhook_secrets(settings, *BOTH)
    body = event_body("consent.granted")
    assert post(body, signature=signed(body, secret=secret)).status_code == 200
    assert post(body).status_code == 401
    webhook_secrets(settings)
    assert post(body, signature=signed(body, secret="")).status_code == 401


def test_a_delivery_has_a_transaction_of_its_own(monkeypatch):
    """Where every request is one: it could only commit, or fail, when the answer is made."""
    monkeypatch.setitem(connection.settings_dict, "ATOMIC_REQUESTS", True)
    body = event_body("consent.revoked")
    with CaptureQueriesContext(connection) as captured:
        assert [post(body).status_code for _ in range(2)] == [200, 200]
    assert captured.captured_queries
    assert not [query for query in captured if "SAVEPOINT" in query["sql"]]


@pytest.mark.parametrize("method", ["get", "put", "options"])
def test_only_post_is_taken(method):
    assert getattr(Client(), method)(reverse("identity:webhook")).status_code == 405


@pytest.mark.parametrize("appends", [True, False])
def test_the_last_slash_is_not_needed(settings, appends):
    """Somebody typed the address into a form of the service, which follows no redirect."""
    required = "django.contrib.auth.middleware.LoginRequiredMiddleware"
    settings.MIDDLEWARE = [*settings.MIDDLEWARE, required]
    settings.APPEND_SLASH = appends
    address = reverse("identity:webhook").removesuffix("/")
    assert post(event_body("consent.revoked"), address=address).status_code == 200
    assert WebhookEvent.objects.count() == 1


@pytest.mark.parametrize("signature", ["", "0" * 64])
def test_a_wrong_signature_is_refused(signature):
    response = post(event_body("consent.revoked"), signature=signature)
    assert response.status_code == 401
    assert response.json()["error"]["code"] == "signature_invalid"
    assert not WebhookEvent.objects.exists()


def test_a_signed_body_that_is_no_event_leaves_its_digest(caplog):
    caplog.set_level(logging.DEBUG)
    assert post(b'{"event_type": "ada@example.org"}').status_code == 400
    assert "ada@example.org" not in caplog.text
    assert "code=event_unreadable" in caplog.text
    assert not WebhookEvent.objects.exists()


def status_of(
    body: bytes,
    headers: Mapping[str, str] | None = None,
    *,
    method: str = "POST",
    is_signed: bool = True,
    has_length: bool = True,
    is_terminated: bool = False,
) -> int:
    """What the view answers to a request as a server hands it over; what it raises, comes out."""
    environ: dict[str, object] = {
        "REQUEST_METHOD": method,
        "PATH_INFO": "/identity/webhook/",
        "SERVER_NAME": "testserver",
        "SERVER_PORT": "80",
        "CONTENT_TYPE": "application/json",
        "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(body),
        "wsgi.input_terminated": is_terminated,
    }
    if has_length:
        environ["CONTENT_LENGTH"] = str(len(body))
    if is_signed:
        environ["HTTP_X_WEBHOOK_SIGNATURE"] = signed(body)
    for name, value in (headers or {}).items():
        key = name.upper().replace("-", "_")
        is_plain = key in ("CONTENT_LENGTH", "CONTENT_TYPE")
        environ[key if is_plain else f"HTTP_{key}"] = value
    return webhook(WSGIRequest(environ)).status_code


@pytest.mark.parametrize("chunked", [{}, {"has_length": False, "is_terminated": True}])
def test_the_body_is_bounded(chunked):
    """256 KB, and not a byte more; chunked where the server marks the end for us."""
    assert status_of(event_body("consent.granted"), **chunked) == 200
    assert status_of(b" " * LIMIT, **chunked) == 400
    assert status_of(b" " * (LIMIT + 1), **chunked) == 413
    # Without a length or an end nothing is read.
    assert status_of(event_body("consent.granted"), has_length=False) == 411


BODIES = st.binary(max_size=400) | VALUES.map(lambda value: json.dumps(value).encode())
LATIN = st.text(st.characters(max_codepoint=255), max_size=80)
NAMES = ("length", "type", "encoding")
ODD = ("0", "262145", "9" * 400, "-1", "gzip", "multipart/form-data")
HEADERS = st.dictionaries(
    st.sampled_from(
        [*(f"content-{name}" for name in NAMES), "x-webhook-signature", "cookie"],
    ),
    LATIN | st.sampled_from(ODD),
    max_size=2,
)


@examples(few=8, many=5000)
@given(
    body=BODIES,
    headers=st.just({}) | HEADERS,
    method=st.just("POST") | LATIN,
    is_signed=st.booleans(),
    has_length=st.booleans(),
    is_terminated=st.booleans(),
)
def test_every_delivery_gets_one_of_its_answers(body, headers, method, **how):
    """Signed or not; and only what is signed is stored."""
    before = WebhookEvent.objects.count()
    status = status_of(body, headers, method=method, **how)
    assert status in {200, 400, 401, 405, 409, 411, 413}
    assert status == 200 or WebhookEvent.objects.count() == before
