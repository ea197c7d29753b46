"""Identities that no event finds, because the site has changed what their digest is made of."""

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.db.models import QuerySet
from django.test import Client

from django_identity.backends import BACKEND_PATH
from django_identity.gates import claims_of, claims_of_all
from django_identity.models import LinkedIdentity, digest
from tests.deliveries import deliver
from tests.factories import again, make_claim, make_identity, make_user
from tests.sign_in import is_signed_in

pytestmark = pytest.mark.django_db(transaction=True)


def linked(user: User) -> LinkedIdentity:
    identity = make_identity(user, subject="former")
    make_claim(identity)
    return identity


def by_saving(identity: LinkedIdentity) -> None:
    """Whole: in the place of the row, which is gone."""
    identity.delete()
    identity.subject = "present"
    identity.save()
    make_claim(identity)


def by_saving_a_column(identity: LinkedIdentity) -> None:
    identity.subject = "present"
    identity.save(update_fields=["subject"])


def by_update_or_create(identity: LinkedIdentity) -> None:
    LinkedIdentity.objects.update_or_create(
        pk=identity.pk, defaults={"subject": "present"}
    )


@pytest.mark.parametrize("rename", [by_saving, by_saving_a_column, by_update_or_create])
def test_a_subject_that_is_renamed_is_found(rename):
    """The service has given its people other ids."""
    user = make_user()
    rename(linked(user))
    assert claims_of(again(user))
    deliver("consent.revoked", subject="present")
    assert not claims_of(again(user))


def test_rows_that_are_made_in_bulk_are_found():
    """They come from another package."""
    user = make_user()
    row = LinkedIdentity(
        user=user,
        environment="test",
        subject="present",
        consent="granted",
        linked_via="oauth",
    )
    LinkedIdentity.objects.bulk_create(each for each in [row])
    make_claim(LinkedIdentity.objects.get())
    assert claims_of(again(user))
    deliver("consent.revoked", subject="present")
    assert not claims_of(again(user))


def by_one_statement(identity: LinkedIdentity) -> None:
    """It cannot make the digest of each row."""
    LinkedIdentity.objects.filter(pk=identity.pk).update(subject="present")


def by_sql(identity: LinkedIdentity) -> None:
    table = connection.ops.quote_name(LinkedIdentity._meta.db_table)
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE {table} SET subject = 'present'")


def by_a_migration(identity: LinkedIdentity) -> None:
    """Its models have the columns, and none of our methods."""
    QuerySet(LinkedIdentity).filter(pk=identity.pk).update(subject="present")


def by_a_fixture(identity: LinkedIdentity) -> None:
    """Written by hand, without the digest."""
    QuerySet(LinkedIdentity).filter(pk=identity.pk).update(subject_digest="")


@pytest.mark.parametrize(
    "change", [by_one_statement, by_sql, by_a_migration, by_a_fixture]
)
def test_what_no_event_finds_opens_nothing(change):
    """No revocation would close it. Saving its subject mends it."""
    user = make_user()
    identity = linked(user)
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
