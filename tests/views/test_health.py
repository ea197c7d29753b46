"""``identity:health``: what a load balancer asks."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import InterfaceError, OperationalError, connection
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client, override_settings
from django.urls import reverse

from django_identity.lifecycle.operators.doctor import site_checks
from django_identity.models import LinkedIdentity
from tests.databases import read_only
from tests.deliveries import SECRET, event_body, post


@pytest.mark.django_db
def test_a_site_that_can_serve_says_so(client: Client, django_assert_num_queries) -> None:
    """One query, nothing told but that; never stored; open under ``LoginRequiredMiddleware``."""
    client.get(reverse("identity:health"))
    with (
        override_settings(MIDDLEWARE=["django.contrib.sessions.middleware.SessionMiddleware",
                                      "django.contrib.auth.middleware.AuthenticationMiddleware",
                                      "django.contrib.auth.middleware.LoginRequiredMiddleware"]),
        django_assert_num_queries(1),
    ):  # fmt: skip
        response = client.get(reverse("identity:health"))
    assert (response.status_code, response.json()) == (200, {"status": "ready"})
    assert response["Cache-Control"] == "no-store"
    assert client.head(reverse("identity:health")).status_code == 200
    assert client.post(reverse("identity:health")).status_code == 405


@pytest.mark.django_db(transaction=True)
def test_a_database_without_our_tables_cannot_serve(client: Client) -> None:
    """As before the first migration, or while it does not answer at all."""
    with connection.schema_editor() as editor:
        table = LinkedIdentity._meta.db_table
        editor.execute(f"ALTER TABLE {table} RENAME TO elsewhere")
    try:
        response = client.get(reverse("identity:health"))
    finally:
        with connection.schema_editor() as editor:
            editor.execute(f"ALTER TABLE elsewhere RENAME TO {table}")
    assert (response.status_code, response.json()) == (503, {"status": "unavailable"})


@pytest.mark.django_db
def test_code_before_its_migrations_cannot_serve(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A load balancer sends it nobody until ``manage.py migrate`` is through."""
    monkeypatch.setattr(site_checks, "_migrated", set())
    recorder = MigrationRecorder(connection)
    recorder.record_unapplied("django_identity", "0001_initial")
    assert client.get(reverse("identity:health")).status_code == 503
    recorder.record_applied("django_identity", "0001_initial")
    assert client.get(reverse("identity:health")).status_code == 200


@pytest.mark.django_db
def test_settings_that_cannot_be_used_cannot_serve(client: Client) -> None:
    """The system checks say which."""
    with override_settings(DJANGO_IDENTITY={"default": {}}):
        assert client.get(reverse("identity:health")).status_code == 503


@pytest.mark.django_db(transaction=True)
def test_a_read_only_database_cannot_serve(client: Client, settings: Any) -> None:
    """As the webhook, which answers 503 so that the service delivers again."""
    application = {**settings.DJANGO_IDENTITY["default"], "WEBHOOK_SECRETS": [SECRET]}
    settings.DJANGO_IDENTITY = {"default": application}
    with read_only():
        health = client.get(reverse("identity:health"))
        webhook = post(event_body("consent.revoked"))
    assert (health.status_code, webhook.status_code) == (503, 503)
    assert webhook["Retry-After"] == "30"
    assert client.get(reverse("identity:health")).status_code == 200


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("error", [OperationalError, InterfaceError])
def test_a_database_that_is_away_cannot_serve(client: Client, error: type[Exception]) -> None:
    """Whichever error the driver raises for a connection that was cut."""

    def away(*_given: Any) -> Any:
        raise error

    with connection.execute_wrapper(away):
        assert client.get(reverse("identity:health")).status_code == 503
