"""What goes with an identity, whoever deletes it, and which signal tells the site of what."""

import io
from contextlib import suppress

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.db.models.signals import pre_delete
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from django_identity.exceptions import ReauthorizationNeeded
from django_identity.lifecycle.arriving import connect
from django_identity.lifecycle.ground import withdrawal
from django_identity.lifecycle.leaving import disconnecting
from django_identity.lifecycle.minute import follow_up
from django_identity.lifecycle.operators import interventions
from django_identity.lifecycle.said.tokens import access_token_for
from django_identity.models import (
    Consent,
    ErasureReceipt,
    LinkedIdentity,
    TokenGrant,
    WebhookEvent,
)
from tests.deliveries import deliver
from tests.factories import (
    AN_HOUR_AGO,
    LONG_AGO,
    make_claim,
    make_event,
    make_grant,
    make_identity,
    make_identity_by_code,
    make_user,
)
from tests.fake_service import INVALID_GRANT
from tests.lifecycle.commands import said_by
from tests.lifecycle.grants import expired, of_users
from tests.views.connect.pages import browser_of

pytestmark = pytest.mark.django_db(transaction=True)

SUBJECT = "subject-1"


class SitesOwnIdentity(LinkedIdentity):
    """A proxy, as a site's own admin has one."""

    class Meta:
        proxy = True
        app_label = "models_of_sites"


# A site's proxies are there when the app starts. This one comes later, and a test that changes the
# installed apps starts the app again: connected under the same name, it is connected once.
pre_delete.connect(
    withdrawal.forget,
    sender=SitesOwnIdentity,
    dispatch_uid="django_identity.withdrawal.forget",
)


WAYS = {
    "the account": lambda user, _: user.delete(),
    "accounts": lambda user, _: User.objects.filter(pk=user.pk).delete(),
    "the identity": lambda _, row: row.delete(),
    "by a query": lambda _, row: (
        LinkedIdentity.objects.only("pk").filter(pk=row.pk).delete()
    ),
    "by a proxy": lambda _, row: SitesOwnIdentity.objects.filter(pk=row.pk).delete(),
    "disconnected": lambda _, row: disconnecting.disconnect(row),
    "erased": lambda _, row: interventions.erase(row),
}


def lived(user):
    """Somebody of whom two events are stored."""
    identity = make_identity(user)
    make_event(identity, "kyc.verified")
    make_event(identity, "data.deletion_requested")
    return identity


def content():
    """What the stored events say about anybody."""
    rows = WebhookEvent.objects.exclude(subject="", event_id="", payload__isnull=True)
    return list(rows.values_list("event_id", "subject", "payload"))


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_the_content_of_the_events_goes_with_the_identity(way, heard):
    """And the receivers are told for whom, with a key, after the commit."""
    user = make_user()
    key = user.pk
    identity = lived(user)
    other = make_identity(make_user("eve"), subject="subject-2")
    make_event(other, "kyc.verified", event_id="of-eve")
    way(user, identity)
    assert [each[0] for each in content()] == ["of-eve"]
    assert WebhookEvent.objects.count() == 3
    told = of_users(heard)
    assert told.count(("identity_unlinked", key)) == 1
    assert ("sessions_ended", key) in told
    assert {each[1] for each in told} == {key}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_nothing_has_happened_if_the_sites_transaction_rolls_back(way, heard):
    user = make_user()
    identity = lived(user)
    before = content()
    epoch = identity.session_epoch
    with suppress(KeyError), transaction.atomic():
        way(user, identity)
        raise KeyError
    assert content() == before
    assert LinkedIdentity.objects.get().session_epoch == epoch
    assert heard == []


def test_what_is_revoked_ends_no_sessions_again(heard):
    """The revocation has said so."""
    user = make_user()
    key = user.pk
    identity = make_identity(user, consent="revoked", revoked_at=LONG_AGO)
    make_event(identity, "kyc.verified")
    user.delete()
    assert content() == []
    assert of_users(heard) == [("identity_unlinked", key)]


def test_a_row_that_another_request_has_deleted_takes_nothing_with_it(heard):
    """Its subject may be linked anew, to somebody else."""
    stale = make_identity(make_user())
    LinkedIdentity.objects.get().delete()
    lived(make_user("eve"))
    before = content()
    heard.clear()
    assert not disconnecting.disconnect(stale)
    stale.delete()
    assert content() == before
    assert heard == []


def test_the_deletion_of_a_copy_takes_nothing_with_it_here(heard):
    """A site's archive in another database: of its row Django tells the same receivers."""
    identity = lived(make_user())
    before = content()
    epoch = identity.session_epoch
    pre_delete.send(LinkedIdentity, instance=identity, using="archive", origin=identity)
    assert content() == before
    assert len(before) == 2
    assert heard == []
    identity.refresh_from_db()
    assert identity.session_epoch == epoch


# A subject who is not linked


def left_by_sql():
    """A row deleted beside Django, whose events nobody emptied."""
    identity = lived(make_user())
    LinkedIdentity.objects.filter(pk=identity.pk)._raw_delete("default")


def test_a_deletion_event_empties_what_sql_left():
    """By one statement, so that it is acknowledged in time. Its receipt says how many."""
    left_by_sql()
    with CaptureQueriesContext(connection) as captured:
        deliver("data.deletion_requested")
    changes = [each["sql"] for each in captured if each["sql"].startswith("UPDATE")]
    assert len(changes) <= 2  # those of before, and the deletion itself
    assert content() == []
    receipt = ErasureReceipt.objects.get()
    assert receipt.erased_at is not None
    assert receipt.counts == {"webhookevent": 2}
    assert WebhookEvent.objects.latest("pk").outcome == "applied"


def test_an_operator_is_told_of_what_sql_left_and_empties_it():
    """No other event about nobody does, nor does a deletion of nobody leave a receipt."""
    left_by_sql()
    deliver("consent.revoked")
    deliver("data.deletion_requested", subject="nobody")
    assert not ErasureReceipt.objects.exists()
    assert len(content()) == 2
    told = said_by("identity_doctor", may_fail=True)
    assert "events with content of somebody who is not linked: 2" in told
    assert "2 webhookevent" in said_by("identity_erase", SUBJECT, "--yes")
    assert content() == []
    assert "not linked" not in said_by("identity_doctor", may_fail=True)


def test_the_audit_of_the_command_searches_for_a_subject_who_is_not_linked():
    """The site may have noted the subject in its own tables."""
    User.objects.create(username=SUBJECT)
    out = io.StringIO()
    with pytest.raises(CommandError, match="left something"):
        call_command("identity_erase", SUBJECT, "--yes", "--audit", stdout=out)
    assert "auth.User.username" in out.getvalue()


# Who ends sessions


def test_whatever_ends_sessions_says_so(heard):
    """With the user, so that a site's own tokens end too."""
    ada, bob = make_user("ada"), make_user("bob")
    make_identity(ada)
    browser_of(ada).post(reverse("identity:sign_out"), {"everywhere": "yes"})
    make_identity_by_code(bob, subject="subject-2")
    assert connect.undo(bob)
    names = ("sessions_ended", "identity_unlinked")
    ended = [("sessions_ended", ada.pk), *((name, bob.pk) for name in names)]
    assert of_users(heard) == ended


def test_an_identity_whose_account_is_gone_can_be_deleted():
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


# Which signal tells the site of what, each once and after the commit


def names(heard):
    return [name for name, _arguments in heard]


def linked(**fields):
    """Somebody who signed in an hour ago, with a proven claim."""
    held = {"signed_in_at": AN_HOUR_AGO, "scopes": ["kyc:read"], **fields}
    identity = make_identity(make_user(), **held)
    make_claim(identity)
    return identity


@pytest.mark.parametrize(
    ("event_type", "told"),
    [
        ("kyc.verified", []),
        ("kyc.rejected", ["kyc_changed"]),
        ("claim.issued", []),
        ("claim.revoked", ["claims_changed", "kyc_changed"]),
        ("consent.revoked", ["sessions_ended", "consent_revoked"]),
        (
            "data.deletion_requested",
            ["sessions_ended", "identity_unlinked", "consent_revoked"],
        ),
    ],
)
def test_each_event_is_told(heard, event_type, told):
    """That it came, and what it changed for whom. What brings something is read later.

    An erasure is told when it is done, and nothing changes by an event about nobody.
    """
    identity = linked()
    deliver(
        event_type,
        status="rejected" if event_type == "kyc.rejected" else "verified",
    )
    assert names(heard) == [*told, "event_received"]
    assert heard[-1][1]["event"].event_type == event_type
    for name, arguments in heard[:-1]:
        if name in ("sessions_ended", "identity_unlinked"):
            assert arguments["user"] == identity.user
        else:
            assert arguments["identity"] == identity

    heard.clear()
    follow_up.retry_pending()
    deliver("consent.revoked", subject="nobody")
    done = ["data_erased"] * (event_type == "data.deletion_requested")
    assert names(heard) == [*done, "event_received"]


def test_the_end_of_the_grant_is_told_with_the_level_that_it_brought(service, heard):
    """A socket behind a gate with that level is asked again."""
    identity = linked()
    expired(identity)
    service.answers["token"] = INVALID_GRANT
    with suppress(ReauthorizationNeeded):
        access_token_for(identity)
    assert names(heard) == ["kyc_changed", "reauthorization_needed"]
    for _name, told in heard:
        assert told["identity"].kyc_state == ("", "")


def test_a_refresh_with_fewer_scopes_is_told_with_what_goes(service, settings, heard):
    """The level, the claims, and the grant."""
    later = ["claims:read", "kyc:read"]
    settings.DJANGO_IDENTITY = service.settings(
        SCOPES=["profile:read"],
        LATER_SCOPES=later,
    )
    identity = linked(scopes=["profile:read", *later])
    expired(identity, scopes=identity.scopes)
    service.token = {"scope": "profile:read"}
    with suppress(ReauthorizationNeeded):
        access_token_for(identity)
    assert names(heard) == ["claims_changed", "kyc_changed", "reauthorization_needed"]
    for _name, told in heard:
        assert told["identity"].scopes == ["profile:read"]


def test_a_revocation_by_an_admin_is_told_once_it_stands(heard):
    """Like one by the service; what was rolled back is not told."""
    identity = linked()
    with suppress(KeyError), transaction.atomic():
        interventions.revoke([identity])
        raise KeyError
    assert heard == []
    assert interventions.revoke([identity]) == 1
    assert names(heard) == ["sessions_ended", "consent_revoked"]
    assert heard[1][1]["identity"].consent == Consent.REVOKED
