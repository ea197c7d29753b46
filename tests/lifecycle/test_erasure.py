"""Erasure: nobody is left, nothing is done by halves, and who asks decides what goes."""

import io
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.db.models import ProtectedError
from django.db.models.signals import pre_delete
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from django_identity import conf
from django_identity.lifecycle.ground import attempts
from django_identity.lifecycle.leaving import erasure, pending_erasures
from django_identity.lifecycle.minute import upkeep
from django_identity.lifecycle.operators import interventions
from django_identity.models import (
    ConnectRedemption,
    Consent,
    ErasureReceipt,
    LinkedIdentity,
    WebhookEvent,
)
from django_identity.policy import IdentityPolicy
from tests.concurrency import at_once
from tests.deliveries import SECRET, deliver, event_body, post
from tests.factories import (
    make_claim,
    make_identity,
    make_identity_by_code,
    make_user,
)
from tests.lifecycle.test_standing import Employee
from tests.sign_in import begin, come_back, is_signed_in, sign_in
from tests.views.connect.pages import browser_of

pytestmark = pytest.mark.django_db(transaction=True)

SUBJECT = "subject-1"
PERSONAL = (
    SUBJECT,
    "ada@example.org",
    "Augusta",
    "Lovelace",
    "Vendor-of-hers",
    "note-on-her",
)


class Deleting(IdentityPolicy):
    erasure = "delete"


class Keeping(IdentityPolicy):
    def keeps_account(self, user, *, made_for_identity):
        return True


class Failing(IdentityPolicy):
    fails = True

    def erase_user(self, user):
        super().erase_user(user)
        if self.fails:
            raise RuntimeError("ada@example.org cannot be erased")


class Hiding(Deleting):
    def erase_user(self, user):
        User.objects.update(is_active=False)


class Protected(Deleting):
    def erase_user(self, user):
        raise ProtectedError("an invoice of ada's", {user})


def with_policy(settings, policy):
    given = settings.DJANGO_IDENTITY
    path = f"{__name__}.{policy.__name__}"
    settings.DJANGO_IDENTITY = {**given, "POLICY": path}


def whole_database():
    """Every value of every table, as text, and what the sessions say."""
    with connection.cursor() as cursor:
        found = [
            f"session: {session.get_decoded()!r}" for session in Session.objects.all()
        ]
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f"SELECT * FROM {connection.ops.quote_name(table)}")
            found += [f"{table}: {row!r}" for row in cursor.fetchall()]
    return "\n".join(found)


def lived(service, settings):
    """Somebody who signed in, used a session, and of whom events were told."""
    settings.DJANGO_IDENTITY = service.settings(WEBHOOK_SECRETS=[SECRET])
    service.profile = {"first_name": "Augusta", "last_name": "Lovelace"}
    browser = Client()
    sign_in(browser, "/?note-on-her")
    deliver(
        "kyc.verified",
        provider="Vendor-of-hers",
        note="note-on-her",
        kyc_level="level_2",
    )
    deliver("claim.issued", event_id=f"evt-of-{SUBJECT}", claim_type="age_over_18")
    return browser


def before_an_old_cache(get_response):
    """What Django's cache heeded as late as in 5.2.12: neither ``no-store`` nor a new cookie."""

    def middleware(request):
        response = get_response(request)
        told = response.get("Cache-Control", "").replace("no-store", "").strip(", ")
        response["Cache-Control"] = told or "max-age=600"
        if request.COOKIES and response.status_code == 200:
            response.cookies.clear()
        return response

    return middleware


def make_due():
    ErasureReceipt.objects.filter(erased_at=None).update(next_attempt_at=timezone.now())


@pytest.mark.parametrize("name", ["data.deletion_requested", "user_deleted"])
def test_nothing_that_was_ever_known_is_left(service, settings, name):
    """The whole database is searched for everything that was ever known, the subject included."""
    browser = lived(service, settings)
    known = [value for value in PERSONAL if value in whole_database()]
    assert {SUBJECT, "ada@example.org", "Vendor-of-hers", "note-on-her"} <= set(known)
    username = User.objects.get().username
    deliver(name, event_id=f"evt-deletes-{SUBJECT}")
    upkeep.tend()
    held = whole_database()
    assert [value for value in (*PERSONAL, username) if value in held] == []
    receipt = ErasureReceipt.objects.get()
    assert receipt.erased_at is not None
    assert (receipt.account, receipt.subject_digest) == (None, "")
    counts = {
        name: receipt.counts[name]
        for name in ("linkedidentity", "webhookevent", "user")
    }
    assert counts == {"linkedidentity": 1, "webhookevent": 3, "user": 1}
    assert not is_signed_in(browser)
    user = User.objects.get()
    assert (user.is_active, user.has_usable_password()) == (False, False)
    # Until EVENT_DAYS end: with the digests a sign-in that is on its way is refused.
    for row in WebhookEvent.objects.all():
        assert (row.subject, row.payload, row.event_id) == ("", None, "")
        assert all([row.event_type, row.subject_digest, row.event_digest])
    days = conf.application().event_days
    WebhookEvent.objects.update(
        received_at=timezone.now() - timezone.timedelta(days=days + 1)
    )
    upkeep.tend()
    assert not WebhookEvent.objects.exists()


@pytest.mark.parametrize(
    "page", ["identity:account", "identity:download", "identity_api:me"]
)
def test_no_cache_shows_a_page_of_before(service, settings, page):
    """Not even one around the whole site that ignores ``no-store``."""
    settings.MIDDLEWARE = [
        "django.middleware.cache.UpdateCacheMiddleware",
        f"{__name__}.before_an_old_cache",
        *settings.MIDDLEWARE,
        "django.middleware.cache.FetchFromCacheMiddleware",
    ]
    browser = lived(service, settings)
    before = browser.get(reverse(page))
    assert before.status_code == 200
    deliver("data.deletion_requested")
    upkeep.tend()
    after = browser.get(reverse(page))
    assert "ada@example.org" not in after.content.decode()
    assert after.content != before.content


def test_events_that_come_late_leave_nobody(service, settings):
    """Of any type, and repeats as well."""
    lived(service, settings)
    late = [
        event_body(name, note="note-on-her")
        for name in ("kyc.verified", "wallet.opened")
    ]
    deliver("data.deletion_requested")
    upkeep.tend()
    for body in late + late:
        assert post(body).status_code == 200
    held = whole_database()
    assert [value for value in PERSONAL if value in held] == []


def test_the_sites_part_may_fail(settings, caplog):
    """What is ours is gone; the account waits, loud, says nobody's name, and is tried again."""
    with_policy(settings, Failing)
    make_identity(make_user())
    deliver("data.deletion_requested")
    caplog.clear()
    upkeep.tend()
    receipt = ErasureReceipt.objects.get()
    assert receipt.erased_at is None
    assert receipt.attempts == 1
    assert receipt.error == "RuntimeError"
    assert not LinkedIdentity.objects.exists()
    assert User.objects.get().username == "ada"
    assert "ERROR" in [record.levelname for record in caplog.records]
    assert "ada@example.org" not in caplog.text
    assert pending_erasures.retry() == 0  # not due yet
    make_due()
    Failing.fails = False
    try:
        assert pending_erasures.retry() == 1
    finally:
        Failing.fails = True
    assert not LinkedIdentity.objects.exists()


@pytest.mark.parametrize(
    ("policy", "error"),
    [(Hiding, "AccountStillThere"), (Protected, "ProtectedError: auth.User")],
)
def test_an_account_that_is_still_there_is_not_erased(settings, policy, error):
    """The receipt names the class of the error, and the models whose rows are in the way."""
    with_policy(settings, policy)
    receipt = interventions.erase(make_identity(make_user()))
    assert (receipt.erased_at, receipt.error) == (None, error)
    assert User.objects.get().is_active


def test_an_account_that_the_site_has_deleted_meanwhile_is_not_kept(
    settings, monkeypatch
):
    """A run of upkeep that has lasted a minute leaves it to the next one."""
    with_policy(settings, Hiding)
    interventions.erase(make_identity(make_user()))
    User.objects.all().delete()
    make_due()
    with monkeypatch.context() as patched:
        patched.setattr(attempts, "LONGEST_SECONDS", -1.0)
        assert pending_erasures.retry() == 0
    assert pending_erasures.retry() == 1
    assert ErasureReceipt.objects.get().account_kept == ""


def erase_by_page(user):
    browser_of(user).post(reverse("identity:erase"))


def erase_by_operator(user):
    interventions.erase(user.linked_identity)


def erase_by_command(_user):
    erasure.erase_subject(SUBJECT)


def erase_by_service(_user):
    deliver("data.deletion_requested")


@pytest.mark.parametrize(
    "request_erasure",
    [erase_by_page, erase_by_operator, erase_by_command, erase_by_service],
)
def test_the_link_goes_in_the_transaction_that_writes_the_receipt(
    settings, request_erasure
):
    """So nobody who is linked waits for an erasure."""
    with_policy(settings, Failing)
    user = make_user()
    make_identity(user)
    committed = []

    def look():
        pending = ErasureReceipt.objects.filter(erased_at=None).count()
        committed.append((pending, LinkedIdentity.objects.exists()))

    def deleted(**_kwargs):
        assert connection.in_atomic_block
        transaction.on_commit(look)

    pre_delete.connect(deleted, sender=LinkedIdentity)
    try:
        request_erasure(user)
    finally:
        pre_delete.disconnect(deleted, sender=LinkedIdentity)
    assert committed == [(1, False)]


def test_who_was_on_the_way_back_is_refused_after_it(service, settings):
    """The sign-in began before the deletion, and comes back when all is erased."""
    lived(service, settings)
    browser = Client()
    state = begin(browser)
    deliver("data.deletion_requested")
    pending_erasures.retry()
    assert "consent_withdrawn" in come_back(browser, state).content.decode()
    assert not LinkedIdentity.objects.exists()
    assert User.objects.count() == 1
    sign_in(browser)
    assert is_signed_in(browser)


# Who asks


def test_a_link_by_code_gives_no_say_about_the_account():
    """A code may be another person's, so it erases nobody."""
    user = make_user()
    make_identity_by_code(user)
    browser = browser_of(user)
    for erase in (browser.get, browser.post):
        assert erase(reverse("identity:erase"))["Location"] == reverse(
            "identity:account"
        )
    user.refresh_from_db()
    assert user.is_active
    assert not ErasureReceipt.objects.exists()


def test_the_person_and_the_operator_erase_what_they_see():
    """The account with its identity, and nothing else."""
    first, second = make_user("first"), make_user("second")
    make_claim(make_identity(first))
    make_identity(second, subject="subject-2")
    receipt = interventions.erase(first.linked_identity)
    assert receipt.counts["linkedidentity"] == 1
    first.refresh_from_db()
    second.refresh_from_db()
    assert (first.is_active, second.is_active) == (False, True)


@pytest.mark.parametrize("link", [make_identity, make_identity_by_code])
def test_from_an_older_account_only_the_link_goes(link):
    """The codes that were entered there count on."""
    user = make_user()
    link(user, account_made=False)
    ConnectRedemption.objects.create(
        user=user, code_digest="0", expires_at=timezone.now()
    )
    deliver("data.deletion_requested")
    pending_erasures.retry()
    user.refresh_from_db()
    assert user.is_active
    assert not LinkedIdentity.objects.exists()
    assert ConnectRedemption.objects.exists()


@pytest.mark.parametrize(
    ("fields", "made", "policy", "kept"),
    [
        ({}, True, IdentityPolicy, ""),
        ({}, False, IdentityPolicy, "older"),
        ({"is_staff": True}, True, IdentityPolicy, "privileged"),
        ({"is_superuser": True}, True, IdentityPolicy, "privileged"),
        ({}, True, Keeping, "policy"),
        ({}, True, Deleting, ""),
    ],
)  # fmt: skip
def test_an_account_stays_if_it_is_older_privileged_or_kept_by_policy(
    settings, fields, made, policy, kept
):
    """And the receipt says so; the data about the identity goes in any case."""
    if policy is not IdentityPolicy:
        with_policy(settings, policy)
    user = make_user(**fields)
    identity = make_identity(user, account_made=made)
    receipt = interventions.erase(identity)
    assert receipt.account_kept == kept
    found = User.objects.filter(pk=user.pk).first()
    assert (found is None) == (policy is Deleting)
    assert found is None or found.is_active == bool(kept)
    assert not LinkedIdentity.objects.exists()


def test_two_workers_erase_once():
    """A second request for the same person is fulfilled with the first one."""
    make_identity(make_user())
    deliver("data.deletion_requested")
    key = ErasureReceipt.objects.get().pk
    deliver("data.deletion_requested")
    assert sorted(at_once([lambda: pending_erasures.attempt(key)] * 2)) == [False, True]
    assert ErasureReceipt.objects.get(pk=key).counts["linkedidentity"] == 1
    assert pending_erasures.retry() == 0
    assert not ErasureReceipt.objects.filter(erased_at=None).exists()
    assert not ErasureReceipt.objects.filter(account_was_gone=True).exists()


def test_the_command_asks_and_erases(monkeypatch):
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


@pytest.mark.parametrize("subject", ["", " "], ids=repr)
def test_an_empty_subject_is_nobodys(subject):
    """It comes from a variable of the shell that is not set, and a receipt would say "erased"."""
    with pytest.raises(CommandError, match="Nothing was done"):
        call_command("identity_erase", subject, "--yes")
    assert not ErasureReceipt.objects.exists()


def test_an_identity_of_the_other_environment_can_be_erased():
    identity = make_identity(make_user(), environment="live")
    assert interventions.erase(identity).erased_at is not None
    assert not LinkedIdentity.objects.exists()


def test_a_key_of_another_table_or_database_erases_nobody():
    """A site's employee 1 is not the user 1, and neither is the user 1 of its archive."""
    user = make_user()
    make_identity(user)
    employee = Employee(number=user.pk, account_id=user.pk + 1, username="other")
    employee.id = user.pk + 1
    archived = User(pk=user.pk)
    archived._state.db = "archive"
    for somebody in (employee, archived, User(username="unsaved")):
        with pytest.raises(ValueError, match="user model"):
            erasure.erase_account(somebody)
    assert LinkedIdentity.objects.get().consent == Consent.GRANTED
    assert not ErasureReceipt.objects.exists()


# After a restored backup, which brings the row back


def erased_line(caplog):
    [line] = [each for each in caplog.messages if "erasure.done" in each]
    return line


def keys_in(line):
    facts = dict(part.split("=", 1) for part in line.split() if "=" in part)
    return facts["identity"], facts["linked"]


ERASE: dict[str, Callable[[LinkedIdentity], object]] = {
    "the person": lambda identity: erasure.erase_account(identity.user),
    "an operator": interventions.erase,
    "the service": lambda identity: (deliver("data.deletion_requested"), pending_erasures.retry()),
    "a command": lambda identity: call_command(
        "identity_erase", identity.subject, "--yes", stdout=io.StringIO()
    ),
}  # fmt: skip


@pytest.mark.parametrize("erase", ERASE.values(), ids=ERASE)
def test_the_log_names_the_row_for_a_restored_backup(caplog, erase):
    """And nothing of the person: neither the subject nor the account."""
    caplog.set_level("INFO", logger="django_identity")
    identity = make_identity(make_user("ada", email="ada@example.org"))
    erase(identity)
    line = erased_line(caplog)
    assert keys_in(line) == (str(identity.pk), identity.created_at.isoformat())
    for known in (SUBJECT, "ada@", identity.subject_digest):
        assert known not in line

    make_identity(make_user("restored"), id=identity.pk)
    LinkedIdentity.objects.update(created_at=identity.created_at)
    key, linked = keys_in(line)
    out = io.StringIO()
    call_command(
        "identity_erase", "--identity", key, "--linked", linked, "--yes", stdout=out
    )
    assert "1 linkedidentity" in out.getvalue()
    assert not LinkedIdentity.objects.exists()


@pytest.mark.parametrize(
    ("key", "linked", "said"),
    [
        ("same", timedelta(microseconds=1), "There is no such identity"),
        ("same", timedelta(days=-1), "There is no such identity"),
        ("other", timedelta(0), "There is no such identity"),
        ("same", None, "--linked"),
    ],
)  # fmt: skip
def test_another_row_of_the_same_key_stays(key, linked, said):
    """The database gives a key again after a restore."""
    identity = make_identity(make_user())
    named = str(identity.pk + (key == "other"))
    options = ["--identity", named, "--yes"]
    if linked is not None:
        options += ["--linked", (identity.created_at + linked).isoformat()]
    with pytest.raises(CommandError, match=said):
        call_command("identity_erase", *options)
    assert LinkedIdentity.objects.get().consent == Consent.GRANTED
    assert not ErasureReceipt.objects.exists()


@pytest.mark.parametrize(
    "options",
    [["--identity", "x", "--linked", "2026-01-01T00:00:00+00:00"],
     ["--identity", "1", "--linked", "yesterday"], ["--linked", "2026-01-01T00:00:00+00:00"],
     ["subject-1", "--identity", "1"]],
    ids=" ".join,
)  # fmt: skip
def test_half_a_row_is_none(options):
    make_identity(make_user())
    with pytest.raises(CommandError):
        call_command("identity_erase", *options, "--yes")
    assert LinkedIdentity.objects.get().consent == Consent.GRANTED
