"""A site moves an identity to another account, as packages that merge accounts do."""

import uuid

import pytest
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.core import serializers
from django.db import connection, models
from django.db.models import QuerySet
from django.test import Client

from django_identity import database
from django_identity.backends import BACKEND_PATH
from django_identity.gates import claims_of, claims_of_all
from django_identity.lifecycle.leaving import pending_erasures
from django_identity.lifecycle.standing.standing import standing_of
from django_identity.models import Consent, ErasureReceipt, LinkedIdentity, digest
from tests.deliveries import deliver
from tests.factories import again, make_claim, make_grant, make_identity, make_user
from tests.lifecycle.refetches import refetched
from tests.sign_in import is_signed_in

pytestmark = pytest.mark.django_db(transaction=True)


def by_save(identity, survivor):
    """``identity`` may be out of date."""
    identity.user = survivor
    identity.save(update_fields=["user"])


def by_sql(identity, survivor):
    table = LinkedIdentity._meta.db_table
    with connection.cursor() as cursor:
        statement = f"UPDATE {table} SET user_id = %s WHERE id = %s"
        cursor.execute(statement, [survivor.pk, identity.pk])


ROWS = LinkedIdentity.objects
#: How the site's code moves the row. Of all but the last the package knows.
MOVES = {
    "save": by_save,
    "a row with its key alone": lambda row, user: by_save(
        ROWS.only("pk").get(pk=row.pk),
        user,
    ),
    "a row without its user": lambda row, user: by_save(
        ROWS.defer("user").get(pk=row.pk),
        user,
    ),
    "a row built from values": lambda row, user: by_save(
        LinkedIdentity(**ROWS.values().get(pk=row.pk)),
        user,
    ),
    "update": lambda row, user: ROWS.filter(pk=row.pk).update(user_id=user.pk),
    "bulk update": lambda row, user: (
        setattr(row, "user", user),
        ROWS.bulk_update([row], ["user"]),
    ),
    "SQL": by_sql,
}
COUNTED = {name: MOVES[name] for name in MOVES if name != "SQL"}


@pytest.mark.parametrize("move", MOVES.values(), ids=MOVES)
@pytest.mark.parametrize("is_back", [False, True])
def test_the_service_erases_the_account_that_the_identity_made(move, is_back):
    """Never the one that took it over; moved back, the one that it made."""
    survivor, duplicate = make_user("survivor"), make_user("duplicate")
    identity = make_identity(duplicate)
    move(identity, survivor)
    if is_back:
        move(identity, duplicate)
    deliver("data.deletion_requested")
    pending_erasures.retry()
    kept = ErasureReceipt.objects.get().account_kept
    assert kept == ("" if is_back else "older")
    assert not LinkedIdentity.objects.exists()
    active = dict(User.objects.values_list("pk", "is_active"))
    assert active == {survivor.pk: True, duplicate.pk: not is_back}


@pytest.mark.parametrize("move", COUNTED.values(), ids=COUNTED)
def test_an_identity_that_moves_takes_no_answer_that_an_event_has_overtaken(
    move,
    service,
):
    """The re-fetch has read the row after the site's code, and the rejection comes meanwhile."""
    survivor = make_user("survivor")
    asked = {"scopes": ["kyc:read"], "kyc_said_at": None}
    make_grant(make_identity(make_user("duplicate"), **asked))
    identity = LinkedIdentity.objects.get()
    deliver("claim.issued")

    def meanwhile():
        deliver("kyc.rejected")
        move(identity, survivor)

    service.meanwhile["kyc"] = meanwhile
    assert refetched(LinkedIdentity.objects.get()) == "overtaken"
    moved = LinkedIdentity.objects.get()
    assert moved.user == survivor
    assert moved.kyc_status == "rejected"


@pytest.mark.parametrize("move", COUNTED.values(), ids=COUNTED)
def test_sessions_and_instances_see_the_move(move):
    """A session of the former account ends. An instance that has been asked is asked anew."""
    survivor, duplicate = make_user("survivor"), make_user("duplicate")
    identity = make_identity(duplicate)
    assert standing_of(duplicate).is_linked
    assert not standing_of(survivor).is_linked
    former, new = Client(), Client()
    former.force_login(again(duplicate), backend=BACKEND_PATH)

    move(identity, survivor)

    assert not standing_of(duplicate).is_linked
    assert standing_of(survivor).is_linked
    new.force_login(again(survivor), backend=BACKEND_PATH)
    assert not is_signed_in(former)
    assert is_signed_in(new)


# What is saved


def test_a_stored_row_is_saved_by_its_columns_alone():
    """Whole, an instance that was read before a revocation would bring the consent back."""
    identity = make_identity(make_user())
    stored = LinkedIdentity.objects.get()
    partly = LinkedIdentity.objects.only("consent").get()
    built = LinkedIdentity(**LinkedIdentity.objects.values().get())
    deliver("consent.revoked")
    for stale in (identity, stored, partly, built):
        with pytest.raises(ValueError, match="update_fields"):
            stale.save()
        with pytest.raises(ValueError, match="update_fields"):
            stale.save(using="default")
    assert LinkedIdentity.objects.get().consent == Consent.REVOKED


def test_a_copy_and_a_fixture_are_saved_whole(monkeypatch):
    identity = make_identity(make_user())
    dump = serializers.serialize("json", LinkedIdentity.objects.all())
    LinkedIdentity.objects.update(consent=Consent.REVOKED)
    for row in serializers.deserialize("json", dump):
        row.save()
    assert LinkedIdentity.objects.get().signs_in
    saved = []
    monkeypatch.setattr(models.Model, "save", lambda *_row, **how: saved.append(how))
    identity.save(using="archive")
    assert saved == [{"using": "archive"}]


def test_a_stale_instance_takes_no_version_back():
    stale = make_identity(make_user())
    for _ in range(3):
        LinkedIdentity.objects.get().save(update_fields=["last_error"])
    read = LinkedIdentity.objects.get()
    stale.save(update_fields=["user"])
    assert LinkedIdentity.objects.get().version == read.version + 1
    changed = LinkedIdentity.objects.all()
    assert changed.change_unchanged(read, last_error="late") == 0
    assert changed.change_unchanged(stale, last_error="late") == 0


# Rows that no event finds, because the site has changed what their digest is made of


def renamed_later(user):
    identity = make_identity(user, subject="former")
    make_claim(identity)
    return identity


def by_saving(identity):
    """Whole: in the place of the row, which is gone."""
    identity.delete()
    identity.subject = "present"
    identity.save()
    make_claim(identity)


def by_saving_a_column(identity):
    identity.subject = "present"
    identity.save(update_fields=["subject"])


def by_update_or_create(identity):
    LinkedIdentity.objects.update_or_create(
        pk=identity.pk,
        defaults={"subject": "present"},
    )


@pytest.mark.parametrize("rename", [by_saving, by_saving_a_column, by_update_or_create])
def test_a_subject_that_is_renamed_is_found(rename):
    """The service has given its people other ids."""
    user = make_user()
    rename(renamed_later(user))
    assert claims_of(again(user))
    deliver("consent.revoked", subject="present")
    assert not claims_of(again(user))


def test_rows_that_are_made_in_bulk_are_found_and_moved():
    """They come from another package."""
    user, survivor = make_user(), make_user("survivor")
    row = LinkedIdentity(
        user=user,
        environment="test",
        subject="present",
        consent="granted",
        linked_via="oauth",
        made_account=str(user.pk),
    )
    LinkedIdentity.objects.bulk_create(each for each in [row])
    identity = LinkedIdentity.objects.get()
    make_claim(identity)
    assert identity.made_its_account
    by_save(identity, survivor)
    assert not LinkedIdentity.objects.get().made_its_account
    assert claims_of(again(survivor))
    deliver("consent.revoked", subject="present")
    assert not claims_of(again(survivor))


def by_one_statement(identity):
    """It cannot make the digest of each row."""
    LinkedIdentity.objects.filter(pk=identity.pk).update(subject="present")


def by_a_fixture(identity):
    """Written by hand, without the digest."""
    QuerySet(LinkedIdentity).filter(pk=identity.pk).update(subject_digest="")


@pytest.mark.parametrize("change", [by_one_statement, by_a_fixture])
def test_what_no_event_finds_opens_nothing(change):
    """No revocation would close it. Saving its subject mends it."""
    user = make_user()
    identity = renamed_later(user)
    browser = Client()
    browser.force_login(user, backend=BACKEND_PATH)
    change(identity)
    assert not claims_of(again(user))
    assert not claims_of_all([again(user)])[user.pk]
    assert not is_signed_in(browser)

    stored = LinkedIdentity.objects.get()
    stored.save(update_fields=["subject"])
    assert stored.subject_digest == digest("test", stored.subject)
    assert claims_of(again(user))


# Keys of accounts


class ByUUID(models.Model):
    """A user model, as far as it is asked here."""

    id = models.UUIDField(primary_key=True)

    class Meta:
        app_label = "keys_of_sites"

    def __str__(self):
        return str(self.pk)


HEX = "0f8fad5bd9cb469fa16570867728950e"


@pytest.mark.parametrize(
    ("model", "keys", "another"),
    [
        (ByUUID, [uuid.UUID(HEX), HEX, HEX.upper(), f"{{{HEX}}}"], uuid.uuid4()),
        (Session, ["ada/1"], "ada/10"),
        (Session, ["x" * 400], "x" * 399),
        (User, [2**40 + 1, str(2**40 + 1)], 1),
    ],
    ids=["a UUID", "a text", "a long text", "a number"],
)
def test_an_account_is_known_by_its_key_in_any_form(monkeypatch, model, keys, another):
    monkeypatch.setattr(database, "get_user_model", lambda: model)
    for made in keys:
        identity = LinkedIdentity(made_account=database.key_text(made))
        for key in (*keys, another, None):
            identity.user_id = key
            assert identity.made_its_account is (key in keys)
    assert not LinkedIdentity(user_id=keys[0]).made_its_account
