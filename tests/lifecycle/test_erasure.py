"""Erasure: nobody is left, nothing is done by halves, and who asks decides what goes."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.core.management import CommandError, call_command
from django.db import connection, models
from django.db.models import ProtectedError
from django.test import Client
from django.utils import timezone

from django_identity import conf
from django_identity.gates import claims_of
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
from tests.deliveries import SECRET, deliver
from tests.factories import (
    again,
    make_claim,
    make_identity,
    make_identity_by_code,
    make_user,
)
from tests.lifecycle.commands import said_by
from tests.lifecycle.test_pending_erasure import make_due
from tests.sign_in import is_signed_in, sign_in

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


class NeverKeeping(IdentityPolicy):
    def keeps_account(self, user, *, made_for_identity):
        return False


class Forbidding(IdentityPolicy):
    people_may_erase = False


class Hiding(Deleting):
    def erase_user(self, user):
        User.objects.update(is_active=False)


class Protected(Deleting):
    def erase_user(self, user):
        raise ProtectedError("an invoice of ada's", {user})


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
    assert receipt.account is None
    assert receipt.subject_digest == ""
    counts = {
        name: receipt.counts[name]
        for name in ("linkedidentity", "webhookevent", "user")
    }
    assert counts == {"linkedidentity": 1, "webhookevent": 3, "user": 1}
    assert not is_signed_in(browser)
    user = User.objects.get()
    assert user.is_active is False
    assert user.has_usable_password() is False
    # Until EVENT_DAYS end: with the digests a sign-in that is on its way is refused.
    for row in WebhookEvent.objects.all():
        assert row.subject == ""
        assert row.payload is None
        assert row.event_id == ""
        assert all([row.event_type, row.subject_digest, row.event_digest])
    days = conf.application().event_days
    WebhookEvent.objects.update(
        received_at=timezone.now() - timezone.timedelta(days=days + 1),
    )
    upkeep.tend()

    assert not WebhookEvent.objects.exists()


@pytest.mark.parametrize(
    ("policy", "error"),
    [(Hiding, "AccountStillThere"), (Protected, "ProtectedError: auth.User")],
)
def test_an_account_that_is_still_there_is_not_erased(use_policy, policy, error):
    """The receipt names the class of the error, and the models whose rows are in the way."""
    use_policy(policy)
    receipt = interventions.erase(make_identity(make_user()))
    assert receipt.erased_at is None
    assert receipt.error == error
    assert User.objects.get().is_active


def test_an_account_that_the_site_has_deleted_meanwhile_is_not_kept(
    use_policy,
    monkeypatch,
):
    """A run of upkeep that has lasted a minute leaves it to the next one."""
    use_policy(Hiding)
    interventions.erase(make_identity(make_user()))
    User.objects.all().delete()
    make_due()
    with monkeypatch.context() as patched:
        patched.setattr(attempts, "LONGEST_SECONDS", -1.0)
        assert pending_erasures.retry() == 0
    assert pending_erasures.retry() == 1
    assert ErasureReceipt.objects.get().account_kept == ""


# Who asks


@pytest.mark.parametrize(
    ("fields", "made", "policy", "kept"),
    [
        ({}, True, IdentityPolicy, ""),
        ({}, False, IdentityPolicy, "older"),
        ({"is_staff": True}, True, IdentityPolicy, "privileged"),
        ({"is_superuser": True}, True, IdentityPolicy, "privileged"),
        ({}, True, Keeping, "policy"),
        ({}, False, NeverKeeping, ""),
        ({}, True, Deleting, ""),
    ],
)
def test_an_account_stays_if_it_is_older_privileged_or_kept_by_policy(
    use_policy,
    fields,
    made,
    policy,
    kept,
):
    """And the receipt says so; the data about the identity goes in any case."""
    use_policy(policy)
    user = make_user(**fields)
    identity = make_identity(user, account_made=made)

    receipt = interventions.erase(identity)

    assert receipt.account_kept == kept
    found = User.objects.filter(pk=user.pk).first()
    assert (found is None) == (policy is Deleting)
    assert found is None or found.is_active == bool(kept)
    assert not LinkedIdentity.objects.exists()


@pytest.mark.parametrize("by", ["service", "command"])
def test_a_code_alone_never_erases_the_account(use_policy, by):
    """Though the policy keeps nobody. It is not asked. The codes that were entered count on."""
    use_policy(NeverKeeping)
    user = make_user()
    make_identity_by_code(user)
    ConnectRedemption.objects.create(user=user, expires_at=timezone.now())
    assert not erasure.may_erase_themselves(user)

    if by == "service":
        deliver("data.deletion_requested")
    else:
        erasure.erase_subject(SUBJECT)

    receipt = ErasureReceipt.objects.get()
    assert receipt.erased_at is not None
    assert receipt.account_kept == "older"
    assert receipt.account_was_gone is False
    assert again(user).is_active
    assert not LinkedIdentity.objects.exists()
    assert ConnectRedemption.objects.exists()


def test_an_operator_erases_whom_the_policy_lets_not_erase_themselves(use_policy):
    use_policy(Forbidding)
    user = make_user()
    make_identity(user)
    assert not erasure.may_erase_themselves(user)
    assert erasure.erase_account(user).erased_at is not None
    assert not again(user).is_active


@pytest.mark.parametrize("subject", [SUBJECT, "", " "], ids=repr)
def test_the_command_erases_nobody_by_mistake(monkeypatch, subject):
    """By hand it takes the subject twice. A variable of the shell that is not set is nobody's."""
    make_identity(make_user())
    monkeypatch.setattr("builtins.input", lambda prompt: "subject-2")
    with pytest.raises(CommandError, match="Nothing was done"):
        call_command("identity_erase", subject, *["--yes"] * (subject != SUBJECT))
    assert LinkedIdentity.objects.exists()
    assert not ErasureReceipt.objects.exists()


def test_an_identity_of_the_other_environment_can_be_erased():
    identity = make_identity(make_user(), environment="live")
    assert interventions.erase(identity).erased_at is not None
    assert not LinkedIdentity.objects.exists()


class Employee(User):
    """A model of the site that has users as its parents, and a key of its own."""

    number = models.IntegerField(primary_key=True)
    account = models.OneToOneField(User, models.CASCADE, parent_link=True)

    class Meta:
        app_label = "models_of_sites"
        managed = False


def test_a_key_of_another_table_or_database_erases_nobody():
    """A site's employee 1 is not the user 1, and neither is the user 1 of its archive."""
    user = make_user()
    make_claim(make_identity(user))
    employee = Employee(number=user.pk, account_id=user.pk + 1, username="other")
    employee.id = user.pk + 1
    archived = User(pk=user.pk)
    archived._state.db = "archive"
    for somebody in (employee, archived, User(username="unsaved")):
        with pytest.raises(ValueError, match="user model"):
            erasure.erase_account(somebody)
    assert claims_of(employee) == {}
    assert claims_of(user) == {"age_over_18": True}
    assert LinkedIdentity.objects.get().consent == Consent.GRANTED
    assert not ErasureReceipt.objects.exists()


# After a restored backup, which brings the row back


ERASE = {
    "the person": lambda identity: erasure.erase_account(identity.user),
    "an operator": interventions.erase,
    "the service": lambda identity: (
        deliver("data.deletion_requested"),
        pending_erasures.retry(),
    ),
    "a command": lambda identity: said_by("identity_erase", identity.subject, "--yes"),
}


@pytest.mark.parametrize("erase", ERASE.values(), ids=ERASE)
def test_the_log_names_the_row_for_a_restored_backup(caplog, erase):
    """And nothing of the person: neither the subject nor the account."""
    caplog.set_level("INFO", logger="django_identity")
    identity = make_identity(make_user("ada", email="ada@example.org"))
    erase(identity)
    [line] = [each for each in caplog.messages if "erasure.done" in each]
    for known in (SUBJECT, "ada@", identity.subject_digest):
        assert known not in line
    facts = dict(part.split("=", 1) for part in line.split() if "=" in part)
    linked = identity.created_at.isoformat()
    assert facts["identity"] == str(identity.pk)
    assert facts["linked"] == linked

    make_identity(make_user("restored"), id=identity.pk)
    LinkedIdentity.objects.update(created_at=identity.created_at)
    row = ("--identity", facts["identity"], "--linked", linked)
    said = said_by("identity_erase", *row, "--yes")
    assert "1 linkedidentity" in said
    assert not LinkedIdentity.objects.exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--identity {key} --linked {later}", "There is no such identity"),
        ("--identity {key} --linked {earlier}", "There is no such identity"),
        ("--identity {other} --linked {linked}", "There is no such identity"),
        ("--identity {key}", "go together"),
        ("--identity x --linked {linked}", "invalid int value"),
        ("--identity {key} --linked yesterday", "yesterday"),
        ("--linked {linked}", "is required"),
        ("subject-1 --identity {key}", "not allowed"),
    ],
)
def test_another_row_stays_and_half_a_row_is_none(options, said):
    """The database gives a key again after a restore."""
    identity = make_identity(make_user())
    named = options.format(
        key=identity.pk,
        other=identity.pk + 1,
        linked=identity.created_at.isoformat(),
        later=(identity.created_at + timedelta(microseconds=1)).isoformat(),
        earlier=(identity.created_at - timedelta(days=1)).isoformat(),
    )
    with pytest.raises(CommandError, match=said):
        said_by("identity_erase", *named.split(), "--yes")
    assert LinkedIdentity.objects.get().consent == Consent.GRANTED
    assert not ErasureReceipt.objects.exists()
