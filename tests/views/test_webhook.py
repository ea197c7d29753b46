"""The webhook: who may post what, and what the service is told."""

from __future__ import annotations

import io
import logging
from datetime import timedelta

import pytest
from django.db import OperationalError, connection
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from django_identity.models import WebhookEvent
from django_identity.views.webhook import webhook
from tests.deliveries import deliver, event_body, post, signed
from tests.factories import make_identity, make_user

pytestmark = pytest.mark.django_db(transaction=True)

LIMIT = 256 * 1024


def test_a_delivery_is_acknowledged() -> None:
    """As the reference receiver does, and stored nowhere on the way."""
    response = deliver("consent.granted")
    assert response["Cache-Control"] == "no-store"
    assert "Set-Cookie" not in response
    assert "Cookie" not in response.get("Vary", "")


def test_no_session_is_touched() -> None:
    """Not even where a browser's cookies come along: neither read nor written nor made to last."""
    browser = Client()
    browser.force_login(make_user("grace"))
    with CaptureQueriesContext(connection) as captured:
        response = post(event_body("consent.revoked"), client=browser)
    assert response.status_code == 200
    assert not [query for query in captured if "django_session" in query["sql"]]
    assert not [query for query in captured if "auth_user" in query["sql"]]
    assert not response.cookies
    assert "Cookie" not in response.get("Vary", "")


@pytest.mark.parametrize("secret", ["the-older-secret-of-the-two", "the-newer-secret-of-the-two"])
def test_each_active_secret_is_taken(settings, secret: str) -> None:
    """While one is being replaced; what an application no longer has is refused."""
    secrets = ["the-newer-secret-of-the-two", "the-older-secret-of-the-two"]
    given = {**settings.DJANGO_IDENTITY["default"], "WEBHOOK_SECRETS": secrets}
    settings.DJANGO_IDENTITY = {"default": given}
    body = event_body("consent.granted")
    assert post(body, signature=signed(body, secret=secret)).status_code == 200
    assert post(body).status_code == 401


def test_cross_site_protection_does_not_stop_it() -> None:
    """The signature is the proof; there is no cookie to protect."""
    body = event_body("consent.granted")
    response = Client(enforce_csrf_checks=True).post(
        reverse("identity:webhook"),
        data=body,
        content_type="application/json",
        headers={"x-webhook-signature": signed(body)},
    )
    assert response.status_code == 200


def test_a_site_where_everybody_must_sign_in_is_told_all_the_same(settings) -> None:
    """The service has no account here."""
    required = "django.contrib.auth.middleware.LoginRequiredMiddleware"
    settings.MIDDLEWARE = [*settings.MIDDLEWARE, required]
    assert deliver("consent.granted").status_code == 200


def test_a_delivery_has_a_transaction_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where every request is one: it could only commit, or fail, when the answer is made."""
    monkeypatch.setitem(connection.settings_dict, "ATOMIC_REQUESTS", True)
    body = event_body("consent.revoked")
    with CaptureQueriesContext(connection) as captured:
        assert [post(body).status_code for _ in range(2)] == [200, 200]
    assert captured.captured_queries
    assert not [query for query in captured if "SAVEPOINT" in query["sql"]]


@pytest.mark.parametrize("method", ["get", "head", "put", "patch", "delete", "options"])
def test_only_post_is_taken(method: str) -> None:
    """Anything else is 405."""
    assert getattr(Client(), method)(reverse("identity:webhook")).status_code == 405


def test_an_unknown_application_has_no_webhook() -> None:
    """404, before anything is read."""
    body = event_body("consent.granted")
    assert (
        Client().post(reverse("identity:webhook", args=["nobody"]), body, "a/b").status_code == 404
    )


@pytest.mark.parametrize("signature", ["", "0" * 64])
def test_a_wrong_signature_is_refused(signature: str) -> None:
    """401, and nothing is stored."""
    response = post(event_body("consent.revoked"), signature=signature)
    assert response.status_code == 401
    assert response.json()["error"]["code"] == "signature_invalid"
    assert not WebhookEvent.objects.exists()


def test_without_secrets_everything_is_refused(settings) -> None:
    """An application without a secret takes no event."""
    given = {**settings.DJANGO_IDENTITY["default"], "WEBHOOK_SECRETS": []}
    settings.DJANGO_IDENTITY = {"default": given}
    assert post(event_body("consent.granted")).status_code == 401


def test_a_signed_body_that_is_no_event_leaves_its_digest(caplog) -> None:
    """400; the log can name the body, and says nothing of it."""
    caplog.set_level(logging.DEBUG)
    body = b'{"event_type": "ada@example.org"}'
    assert post(body).status_code == 400
    assert "ada@example.org" not in caplog.text
    assert "code=event_unreadable" in caplog.text
    assert not WebhookEvent.objects.exists()


@pytest.mark.parametrize(("size", "status"), [(LIMIT, 400), (LIMIT + 1, 413)])
def test_the_body_is_bounded(size: int, status: int) -> None:
    """256 KB, and not a byte more."""
    assert post(b" " * size).status_code == status


class Chunked(io.BytesIO):
    """A chunked body as a server hands it over: it ends, but does not say when."""


def chunked(body: bytes, *, terminated: bool) -> int:
    """The status for a body without a length."""
    request = RequestFactory().post("/", headers={"x-webhook-signature": signed(body)})
    del request.META["CONTENT_LENGTH"]
    request.META["wsgi.input"] = Chunked(body)
    request.META["wsgi.input_terminated"] = terminated
    return webhook(request).status_code


def test_a_chunked_body_is_read_to_its_end() -> None:
    """Where the server marks the end for us; real senders do this."""
    assert chunked(event_body("consent.granted"), terminated=True) == 200
    assert chunked(b" " * (LIMIT + 1), terminated=True) == 413
    assert chunked(event_body("consent.granted"), terminated=False) == 411


def test_a_database_that_does_not_answer_is_a_503() -> None:
    """So that the service delivers it again."""

    def down(*_arguments: object) -> None:
        raise OperationalError("down")

    with connection.execute_wrapper(down):
        response = post(event_body("consent.revoked"))
    assert response.status_code == 503


def test_an_event_from_before_the_sign_in_is_acknowledged_and_changes_nothing() -> None:
    """The sign-in knew better. A request to delete counts all the same."""
    now = timezone.now()
    identity = make_identity(make_user(), signed_in_at=now)
    for event_type, outcome in (
        ("consent.revoked", "superseded"),
        ("data.deletion_requested", "applied"),
    ):
        before = post(event_body(event_type, at=now - timedelta(hours=1)))
        assert before.status_code == 200
        assert WebhookEvent.objects.get(event_type=event_type).outcome == outcome
        identity.refresh_from_db()
        assert (identity.consent == "granted") is (outcome == "superseded")
