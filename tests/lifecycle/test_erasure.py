"""Erasure: afterwards nothing here says that the person ever was."""

from __future__ import annotations

import io
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from django.utils import timezone

from django_identity import signals
from django_identity.lifecycle.erasure import erasure
from django_identity.lifecycle.standing import standing_of
from django_identity.lifecycle.upkeep import follow_up
from django_identity.models import (
    DailyTally,
    ErasureReceipt,
    JobRun,
    LinkedIdentity,
    SignUpTurn,
    TokenGrant,
    WebhookEvent,
)
from django_identity.policy import IdentityPolicy
from tests.deliveries import deliver, event_body, post
from tests.faces.conftest import service, sign_in
from tests.hostile import HostileService
from tests.lifecycle.withheld import WITHHELD
from tests.records import make_identity, make_user

__all__ = ["service"]

pytestmark = pytest.mark.django_db(transaction=True)

SUBJECT = "subject-1"
PERSONAL = (SUBJECT, "ada@example.org", "Augusta", "Lovelace", "Vendor-of-hers", "note-on-her")


class Deleting(IdentityPolicy):
    erasure = "delete"


class Failing(IdentityPolicy):
    fails = True

    def erase_user(self, user: Any) -> None:
        super().erase_user(user)
        if self.fails:
            raise RuntimeError("ada@example.org cannot be erased")


def with_policy(settings: Any, name: str) -> None:
    given = settings.DJANGO_IDENTITY["default"]
    policy = f"tests.lifecycle.test_erasure.{name}"
    settings.DJANGO_IDENTITY = {"default": {**given, "POLICY": policy}}


def whole_database() -> str:
    """Every value of every table, as text, and what the sessions say."""
    with connection.cursor() as cursor:
        found = [f"session: {session.get_decoded()!r}" for session in Session.objects.all()]
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f"SELECT * FROM {connection.ops.quote_name(table)}")
            found += [f"{table}: {row!r}" for row in cursor.fetchall()]
    return "\n".join(found)


def request_deletion(name: str = "data.deletion_requested", **about: Any) -> None:
    """The event, and then what the task does that it is handed to."""
    deliver(name, subject=about.pop("subject", SUBJECT), **about)
    for key in WebhookEvent.objects.filter(next_attempt_at__isnull=False).values_list("pk"):
        follow_up.run_handlers(*key)


def lived(service: HostileService, settings: Any) -> Client:
    """Somebody who signed in, used a session, and of whom events were told."""
    given = {**service.settings(), "WEBHOOK_SECRETS": ["a-webhook-secret-for-tests-alone"]}
    settings.DJANGO_IDENTITY = {"default": given}
    service.profile = {"first_name": "Augusta", "last_name": "Lovelace"}
    browser = Client()
    sign_in(browser, "/?note-on-her")
    deliver("kyc.verified", provider="Vendor-of-hers", note="note-on-her", kyc_level="level_2")
    deliver("claim.issued", event_id=f"evt-of-{SUBJECT}", claim_type="age_over_18")
    return browser


@pytest.mark.parametrize("name", ["data.deletion_requested", "user_deleted"])
def test_nothing_is_left(service: HostileService, settings: Any, name: str) -> None:
    """The whole database is searched for everything that was ever known, the subject included."""
    lived(service, settings)
    known = [value for value in PERSONAL if value in whole_database()]
    assert {SUBJECT, "ada@example.org", "Vendor-of-hers", "note-on-her"} <= set(known)
    username = User.objects.get().username
    request_deletion(name, event_id=f"evt-deletes-{SUBJECT}")
    held = whole_database()
    assert [value for value in (*PERSONAL, username) if value in held] == []
    receipt = ErasureReceipt.objects.get()
    assert receipt.erased_at is not None
    assert receipt.counts["linkedidentity"] == 1
    assert receipt.counts["webhookevent"] == 3
    assert receipt.counts["user"] == 1


def test_no_digest_is_left_that_a_subject_can_be_tried_on(
    service: HostileService, settings: Any
) -> None:
    """What is known of the subject afterwards needs the site's key."""
    lived(service, settings)
    digest = LinkedIdentity.objects.get().subject_digest
    request_deletion()
    assert digest not in whole_database()


def test_the_session_has_ended_and_stays_so(service: HostileService, settings: Any) -> None:
    """The account is an empty shell that nobody can sign in to."""
    browser = lived(service, settings)
    assert browser.get("/").content != b""
    request_deletion()
    assert browser.get("/").content == b""
    user = User.objects.get()
    assert not user.is_active
    assert not user.has_usable_password()
    assert SUBJECT not in str(list(Session.objects.values_list("session_data", flat=True)))


def test_the_policy_may_delete_the_user(settings: Any) -> None:
    """With everything that hangs on it."""
    with_policy(settings, "Deleting")
    make_identity(make_user())
    make_identity(make_user("grace"), subject="subject-2")
    request_deletion()
    assert [user.username for user in User.objects.all()] == ["grace"]
    assert LinkedIdentity.objects.get().subject == "subject-2"


def test_revocation_does_not_wait_for_the_erasure() -> None:
    """When the response leaves the gates are closed, whether or not anything ran since."""
    identity = make_identity(make_user())
    deliver("data.deletion_requested")
    assert not standing_of(identity.user).is_linked
    assert not TokenGrant.objects.exists()
    assert ErasureReceipt.objects.get().erased_at is None


def test_the_sites_part_may_fail(settings: Any, caplog: pytest.LogCaptureFixture) -> None:
    """Nothing is done by halves; it is pending, loud, says nobody's name, and tried again."""
    with_policy(settings, "Failing")
    identity = make_identity(make_user())
    request_deletion()
    receipt = ErasureReceipt.objects.get()
    assert (receipt.erased_at, receipt.attempts, receipt.error) == (None, 1, "RuntimeError")
    assert LinkedIdentity.objects.filter(pk=identity.pk).exists()
    assert User.objects.get().username == "ada"
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    assert "ada@example.org" not in caplog.text
    assert erasure.retry_pending() == 0  # not due yet
    ErasureReceipt.objects.update(next_attempt_at=timezone.now())
    Failing.fails = False
    try:
        assert erasure.retry_pending() == 1
    finally:
        Failing.fails = True
    assert not LinkedIdentity.objects.exists()
    assert ErasureReceipt.objects.get().erased_at is not None


def test_a_pending_erasure_finds_a_user_who_disconnected(settings: Any) -> None:
    """The receipt remembers whom it is about until it is done."""
    identity = make_identity(make_user(email="ada@example.org"))
    deliver("data.deletion_requested")
    identity.delete()
    assert erasure.retry_pending() == 1
    assert User.objects.get().email == ""


def test_a_pending_erasure_lets_nobody_sign_in(service: HostileService, settings: Any) -> None:
    """Whoever comes back before it is done is told to start again later."""
    lived(service, settings)
    deliver("data.deletion_requested")
    response = sign_in(Client())
    assert response.status_code == 403
    assert b"consent_withdrawn" in response.content


def test_whoever_comes_back_afterwards_is_a_new_person(
    service: HostileService, settings: Any
) -> None:
    """A sign-in that begins after the erasure is welcome."""
    lived(service, settings)
    request_deletion()
    assert sign_in(Client()).status_code == 302
    assert User.objects.filter(is_active=True).count() == 1


def test_events_that_come_late_leave_nothing(service: HostileService, settings: Any) -> None:
    """One that is older than the erasure is stored without whom it is about; repeats as well."""
    lived(service, settings)
    late = [
        event_body(event_type, at=timezone.now() - timedelta(minutes=1), note="note-on-her")
        for event_type in ("kyc.verified", "consent.revoked", "wallet.opened")
    ]
    request_deletion()
    for body in late + late:
        assert post(body).status_code == 200
    held = whole_database()
    assert [value for value in PERSONAL if value in held] == []
    assert WebhookEvent.objects.count() == 6


def test_a_subject_that_nobody_knows_is_erased_too() -> None:
    """Its stored events are emptied, and a receipt says so."""
    deliver("claim.issued", subject="stranger-7")
    request_deletion(subject="stranger-7")
    assert "stranger-7" not in whole_database()
    assert ErasureReceipt.objects.get().erased_at is not None


def test_a_repeated_request_erases_once() -> None:
    """The same event again makes no second receipt."""
    make_identity(make_user())
    body = event_body("data.deletion_requested")
    for _ in range(2):
        assert post(body).status_code == 200
    request_deletion(event_id="evt_another")
    assert ErasureReceipt.objects.count() == 2
    assert not ErasureReceipt.objects.filter(subject=SUBJECT).exclude(erased_at=None).exists()


@pytest.fixture
def receipts() -> Iterator[list[Any]]:
    heard: list[Any] = []

    def receive(sender: object, **arguments: Any) -> None:
        heard.append(arguments["receipt"])

    signals.data_erased.connect(receive)
    yield heard
    signals.data_erased.disconnect(receive)


def test_the_site_hears_of_it(receipts: list[Any]) -> None:
    """Once it is done, with a receipt that names nobody."""
    make_identity(make_user())
    request_deletion()
    assert [receipt.subject for receipt in receipts] == [""]


def test_the_command_asks_and_erases(monkeypatch: pytest.MonkeyPatch) -> None:
    """By hand it takes the subject twice, or ``--yes``."""
    make_identity(make_user())
    monkeypatch.setattr("builtins.input", lambda prompt: "subject-2")
    with pytest.raises(CommandError):
        call_command("identity_erase", SUBJECT)
    assert LinkedIdentity.objects.exists()
    out = io.StringIO()
    call_command("identity_erase", SUBJECT, "--yes", stdout=out)
    assert "1 linkedidentity" in out.getvalue()
    assert SUBJECT not in whole_database()


def test_every_column_of_ours_is_shown_or_withheld() -> None:
    """A new table or column cannot be forgotten: whoever adds one has to say where it belongs."""
    from django_identity.lifecycle.erasure.dossier import PLACES  # noqa: PLC0415  beside what it is for

    by_model = {place.model: {*place.shown, *WITHHELD[place.model]} for place in PLACES}
    models = apps.get_app_config("django_identity").get_models()
    ours = {model for model in models if not model._meta.proxy}
    assert ours - set(by_model) == {ErasureReceipt, DailyTally, JobRun, SignUpTurn}
    for model, named in by_model.items():
        assert {field.name for field in model._meta.concrete_fields} == named


def test_it_works_under_an_older_key(settings: Any) -> None:
    """A rotated SECRET_KEY does not bring late events of an erased person back."""
    make_identity(make_user())
    body = event_body("claim.issued", at=timezone.now() - timedelta(minutes=1))
    request_deletion()
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]
    settings.SECRET_KEY = "another key for tests alone, of no use anywhere else"
    assert post(body).status_code == 200
    assert SUBJECT not in whole_database()
