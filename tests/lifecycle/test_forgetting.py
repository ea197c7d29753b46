"""What goes with an identity, whoever deletes it: events' content, sessions, and who is told."""

import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.db.models import QuerySet
from django.db.models.signals import pre_delete
from django.test import Client
from django.urls import reverse

from django_identity import signals
from django_identity.backends import BACKEND_PATH
from django_identity.lifecycle.arriving import connect
from django_identity.lifecycle.ground import withdrawal
from django_identity.lifecycle.leaving import disconnecting, dossier, erasure
from django_identity.lifecycle.operators import interventions
from django_identity.models import (
    ErasureReceipt,
    LinkedIdentity,
    TokenGrant,
    WebhookEvent,
    digest,
)
from tests.deliveries import deliver
from tests.factories import (
    LONG_AGO,
    make_event,
    make_grant,
    make_identity,
    make_identity_by_code,
    make_user,
)
from tests.fake_service import FakeService
from tests.sign_in import is_signed_in, sign_in
from tests.views.connect.pages import LOCAL

pytestmark = pytest.mark.django_db(transaction=True)

SUBJECT = "subject-1"
Told = list[tuple[str, Any]]


class SitesOwnIdentity(LinkedIdentity):
    """A proxy, as a site's own admin has one."""

    class Meta:
        proxy = True
        app_label = "keepers"


# A site's proxies are there when the app starts. This one comes later, and a test that changes the
# installed apps starts the app again: connected under the same name, it is connected once.
pre_delete.connect(
    withdrawal.forget,
    sender=SitesOwnIdentity,
    dispatch_uid="django_identity.withdrawal.forget",
)


@pytest.fixture
def told() -> Iterator[Told]:
    """Which signal was sent after the commit, with the user's key."""
    heard: Told = []

    def unlinked(user: Any, **_arguments: Any) -> None:
        assert not connection.in_atomic_block
        heard.append(("identity_unlinked", user.pk))

    def ended(user: Any, **_arguments: Any) -> None:
        assert not connection.in_atomic_block
        heard.append(("sessions_ended", user.pk))

    signals.identity_unlinked.connect(unlinked)
    signals.sessions_ended.connect(ended)
    yield heard
    signals.identity_unlinked.disconnect(unlinked)
    signals.sessions_ended.disconnect(ended)


def site_closes_the_account(user: User, _identity: LinkedIdentity) -> None:
    user.delete()


def site_deletes_many(user: User, _identity: LinkedIdentity) -> None:
    User.objects.filter(pk=user.pk).delete()


def site_deletes_the_identity(_user: User, identity: LinkedIdentity) -> None:
    identity.delete()


def site_deletes_by_a_query(_user: User, identity: LinkedIdentity) -> None:
    LinkedIdentity.objects.filter(pk=identity.pk).delete()


def site_deletes_unread_columns(_user: User, identity: LinkedIdentity) -> None:
    LinkedIdentity.objects.only("pk").filter(pk=identity.pk).delete()


def site_deletes_by_its_proxy(_user: User, identity: LinkedIdentity) -> None:
    SitesOwnIdentity.objects.filter(pk=identity.pk).delete()


def person_disconnects(_user: User, identity: LinkedIdentity) -> None:
    disconnecting.disconnect(identity)


def operator_erases(_user: User, identity: LinkedIdentity) -> None:
    interventions.erase(identity)


WAYS: list[Callable[[User, LinkedIdentity], None]] = [
    site_closes_the_account,
    site_deletes_many,
    site_deletes_the_identity,
    site_deletes_by_a_query,
    site_deletes_unread_columns,
    site_deletes_by_its_proxy,
    person_disconnects,
    operator_erases,
]


def lived(user: User) -> LinkedIdentity:
    """Somebody of whom two events are stored."""
    identity = make_identity(user)
    make_event(identity, "kyc.verified")
    make_event(identity, "data.deletion_requested")
    return identity


def content() -> list[tuple[str, str, Any]]:
    """What the stored events say about anybody."""
    rows = WebhookEvent.objects.exclude(subject="", event_id="", payload__isnull=True)
    return list(rows.values_list("event_id", "subject", "payload"))


@pytest.mark.parametrize("way", WAYS)
def test_the_content_of_the_events_goes_with_the_identity(
    way: Callable[[User, LinkedIdentity], None], told: Told
) -> None:
    """And the receivers are told for whom, with a key, after the commit."""
    user = make_user()
    key = user.pk
    identity = lived(user)
    other = make_identity(make_user("eve"), subject="subject-2")
    make_event(other, "kyc.verified", event_id="of-eve")
    way(user, identity)
    assert [each[0] for each in content()] == ["of-eve"]
    assert WebhookEvent.objects.count() == 3
    assert told.count(("identity_unlinked", key)) == 1
    assert ("sessions_ended", key) in told
    assert {each[1] for each in told} == {key}


@pytest.mark.parametrize("way", WAYS)
def test_nothing_has_happened_if_the_sites_transaction_rolls_back(
    way: Callable[[User, LinkedIdentity], None], told: Told
) -> None:
    user = make_user()
    identity = lived(user)
    before = content()
    epoch = identity.session_epoch
    with suppress(KeyError), transaction.atomic():
        way(user, identity)
        raise KeyError
    assert content() == before
    assert LinkedIdentity.objects.get().session_epoch == epoch
    assert told == []


KINDS: dict[str, dict[str, Any]] = {
    "made by it": {},
    "older": {"account_made": False},
    "by code": {"linked_via": "connect", "account_made": False},
    "revoked": {"consent": "revoked", "revoked_at": LONG_AGO},
}
PEOPLE: dict[str, dict[str, Any]] = {
    "a password": {},
    "no password": {},
    "staff": {"is_staff": True},
}


@pytest.mark.parametrize("who", PEOPLE)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", [site_closes_the_account, operator_erases])
def test_it_goes_with_any_link_of_anybody(
    way: Callable[[User, LinkedIdentity], None], kind: str, who: str, told: Told
) -> None:
    user = make_user(**PEOPLE[who])
    if who == "no password":
        user.set_unusable_password()
        user.save()
    key = user.pk
    identity = make_identity(user, **KINDS[kind])
    make_event(identity, "kyc.verified")
    way(user, identity)
    assert content() == []
    assert ("identity_unlinked", key) in told
    # Of what is revoked the revocation has said so.
    assert (("sessions_ended", key) in told) == (kind != "revoked")


@pytest.mark.parametrize("way", [site_deletes_the_identity, person_disconnects])
def test_the_session_of_a_password_goes_on(
    way: Callable[[User, LinkedIdentity], None], service: FakeService
) -> None:
    """In another browser, and in the one whose session began with the identity before."""
    user = make_user()
    identity = make_identity(user, account_made=False)
    by_identity, by_password, both = Client(), Client(), Client()
    by_identity.force_login(user, backend=BACKEND_PATH)
    by_password.force_login(user, backend=LOCAL)
    both.force_login(user, backend=BACKEND_PATH)
    both.force_login(user, backend=LOCAL)
    assert is_signed_in(by_identity)
    way(user, identity)
    assert not is_signed_in(by_identity)
    assert is_signed_in(by_password)
    assert is_signed_in(both)


@pytest.mark.parametrize("way", [site_deletes_the_identity, site_deletes_by_a_query])
def test_sessions_end_with_an_identity_that_the_site_deletes(
    service: FakeService, way: Callable[[User, LinkedIdentity], None]
) -> None:
    browser = Client()
    sign_in(browser)
    identity = LinkedIdentity.objects.get()
    assert is_signed_in(browser)
    way(identity.user, identity)
    assert not is_signed_in(browser)


def test_a_row_that_another_request_has_deleted_takes_nothing_with_it(
    told: Told,
) -> None:
    """Its subject may be linked anew, to somebody else."""
    stale = make_identity(make_user())
    LinkedIdentity.objects.get().delete()
    lived(make_user("eve"))
    before = content()
    told.clear()
    stale.delete()
    assert content() == before
    assert told == []


def test_the_deletion_of_a_copy_takes_nothing_with_it_here(told: Told) -> None:
    """A site's archive in another database: of its row Django tells the same receivers."""
    identity = lived(make_user())
    before = content()
    epoch = identity.session_epoch
    pre_delete.send(LinkedIdentity, instance=identity, using="archive", origin=identity)
    assert content() == before
    assert len(before) == 2
    assert told == []
    identity.refresh_from_db()
    assert identity.session_epoch == epoch


@pytest.mark.parametrize(
    "way", [site_deletes_the_identity, person_disconnects, operator_erases]
)
def test_a_row_that_was_moved_goes_with_its_events(
    way: Callable[[User, LinkedIdentity], None], told: Told
) -> None:
    """An operator has moved it to the person's other account, after the site read it."""
    user = make_user()
    stale = make_identity(user, account_made=False)
    make_event(stale, "kyc.verified")
    other = make_user("other")
    LinkedIdentity.objects.update(user=other)
    way(other, stale if way is not operator_erases else LinkedIdentity.objects.get())
    assert content() == []
    assert ("sessions_ended", other.pk) in told
    assert user.pk not in {each[1] for each in told}


def test_whoever_redeems_the_code_later_sees_no_event_of_before() -> None:
    """The next account with the subject has its own dossier only."""
    first = make_user()
    lived(first)
    first.delete()
    second = make_user("second")
    make_identity_by_code(second)
    held = dossier.export_of(second)
    assert held["webhookevent"] == []


def test_a_site_with_a_user_model_of_its_own_closes_accounts(tmp_path: Path) -> None:
    """One, several by a query, and an identity alone. Its keys are UUIDs."""
    environment = {
        **os.environ,
        "SITE_FOLDER": str(tmp_path),
        "DJANGO_SETTINGS_MODULE": "tests.sites.custom_user.settings",
    }
    command = [sys.executable, "-m", "tests.lifecycle.close_accounts"]
    said = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True
    )
    found = json.loads(said.stdout)
    assert found["told"] == found["keys"]
    assert found["left"] == 0


def test_a_receiver_that_raises_undoes_nothing(
    told: Told, caplog: pytest.LogCaptureFixture
) -> None:
    """It is logged, and the receivers behind it are called."""

    def burst(**_arguments: Any) -> None:
        raise RuntimeError("burst")

    user = make_user()
    lived(user)
    key = user.pk
    receivers = list(signals.sessions_ended.receivers)
    signals.sessions_ended.receivers.clear()
    signals.sessions_ended.connect(burst)
    signals.sessions_ended.receivers += receivers
    try:
        user.delete()
    finally:
        signals.sessions_ended.disconnect(burst)
    assert not User.objects.exists()
    assert content() == []
    assert ("sessions_ended", key) in told
    assert "burst" in caplog.text


def test_ten_thousand_events_are_emptied_in_time() -> None:
    """By one statement, so that a deletion is acknowledged and a site's own page answers."""
    identity = make_identity(make_user())
    [like] = [make_event(identity, "claim.issued")]
    rows = []
    for number in range(10_000):
        values = {
            field.attname: getattr(like, field.attname) for field in like._meta.fields
        }
        values |= {"id": None, "event_digest": digest("many", str(number))}
        rows.append(WebhookEvent(**values))
    WebhookEvent.objects.bulk_create(rows, batch_size=500)
    QuerySet(LinkedIdentity).filter(pk=identity.pk)._raw_delete("default")
    began = time.monotonic()
    assert deliver("data.deletion_requested").status_code == 200
    assert time.monotonic() - began < 5
    assert content() == []
    assert ErasureReceipt.objects.get().counts == {"webhookevent": 10_001}


# A subject who is not linked


def left_by_sql() -> None:
    """A row deleted beside Django, whose events nobody emptied."""
    identity = lived(make_user())
    LinkedIdentity.objects.filter(pk=identity.pk)._raw_delete("default")


def test_a_deletion_event_empties_what_sql_left() -> None:
    """Acknowledged, with a receipt that says how many."""
    left_by_sql()
    deliver("data.deletion_requested")
    assert content() == []
    receipt = ErasureReceipt.objects.get()
    assert receipt.erased_at is not None
    assert receipt.counts == {"webhookevent": 2}
    newest = WebhookEvent.objects.order_by("-pk").first()
    assert newest is not None
    assert newest.outcome == "applied"


def test_a_deletion_event_about_nobody_leaves_no_receipt() -> None:
    """There was nothing to erase."""
    deliver("data.deletion_requested", subject="nobody")
    assert not ErasureReceipt.objects.exists()
    assert WebhookEvent.objects.get().outcome == "ignored"


def test_any_other_event_about_nobody_empties_nothing() -> None:
    left_by_sql()
    deliver("consent.revoked")
    assert len(content()) == 2


def test_the_command_empties_what_sql_left_and_says_how_many() -> None:
    left_by_sql()
    out = io.StringIO()
    call_command("identity_erase", SUBJECT, "--yes", stdout=out)
    assert "2 webhookevent" in out.getvalue()
    assert content() == []


def test_the_audit_of_the_command_searches_for_a_subject_who_is_not_linked() -> None:
    """The site may have noted the subject in its own tables."""
    User.objects.create(username=SUBJECT)
    out = io.StringIO()
    with pytest.raises(CommandError, match="left something"):
        call_command("identity_erase", SUBJECT, "--yes", "--audit", stdout=out)
    assert "auth.User.username" in out.getvalue()


# Who ends sessions


def everywhere(user: User, _identity: LinkedIdentity) -> None:
    browser = Client()
    browser.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    browser.post(reverse("identity:sign_out"), {"everywhere": "yes"})


def revoked_by_the_service(_user: User, _identity: LinkedIdentity) -> None:
    deliver("consent.revoked")


def revoked_by_an_operator(_user: User, identity: LinkedIdentity) -> None:
    interventions.revoke([identity])


def deleted_at_the_service(_user: User, _identity: LinkedIdentity) -> None:
    deliver("data.deletion_requested")
    erasure.retry_pending()


@pytest.mark.parametrize(
    "way",
    [
        everywhere,
        revoked_by_the_service,
        revoked_by_an_operator,
        deleted_at_the_service,
        person_disconnects,
        operator_erases,
        site_closes_the_account,
    ],
)
@pytest.mark.parametrize("made", [True, False])
def test_whatever_ends_sessions_says_so(
    way: Callable[[User, LinkedIdentity], None], made: bool, told: Told
) -> None:
    """With the user, whether the account stays or goes, so that a site's own tokens end too."""
    user = make_user()
    key = user.pk
    way(user, make_identity(user, account_made=made))
    assert ("sessions_ended", key) in told


def test_undoing_a_code_says_so(told: Told, settings: Any) -> None:
    user = make_user()
    make_identity_by_code(user)
    assert connect.undo(user)
    assert told == [
        ("sessions_ended", user.pk),
        ("identity_unlinked", user.pk),
    ]


@pytest.mark.parametrize("made", [True, False])
def test_an_erasure_says_that_the_identity_is_unlinked(made: bool, told: Told) -> None:
    """Whether the account was erased or kept."""
    user = make_user()
    receipt = interventions.erase(make_identity(user, account_made=made))
    assert bool(receipt.account_kept) is not made
    assert ("identity_unlinked", user.pk) in told


def test_an_identity_whose_account_is_gone_can_be_deleted() -> None:
    """SQL beside Django has deleted the account, and the database checked no foreign keys."""
    if connection.vendor == "postgresql":
        pytest.skip("it always checks")
    identity = make_identity(make_user())
    make_grant(identity)
    table = connection.ops.quote_name(User._meta.db_table)
    with connection.constraint_checks_disabled(), connection.cursor() as cursor:
        cursor.execute(f"DELETE FROM {table}")
    LinkedIdentity.objects.exclude(user__in=User.objects.all()).delete()
    assert not LinkedIdentity.objects.exists()
    assert not TokenGrant.objects.exists()
    deliver("data.deletion_requested", subject=identity.subject)
