"""Erasure: an account that is emptied keeps no identity, under whatever application."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone

from django_identity import conf
from django_identity.exceptions import UserInactive
from django_identity.lifecycle.arrival import linking
from django_identity.lifecycle.arrival.service_data import ServiceData
from django_identity.lifecycle.erasure import erasure
from django_identity.models import (
    ErasureReceipt,
    LinkedIdentity,
    Purpose,
    StoredClaim,
    TokenGrant,
    WebhookEvent,
)
from django_identity.policy import IdentityPolicy
from django_identity.service.answers import Profile
from tests.at_once import at_once
from tests.deliveries import deliver, event_body, post
from tests.lifecycle.test_erasure import whole_database
from tests.lifecycle.waiting import alone, until_waiting
from tests.records import make_claim, make_event, make_identity, make_user

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def two_applications(settings: Any) -> None:
    given = settings.DJANGO_IDENTITY["default"]
    settings.DJANGO_IDENTITY = {"default": given, "shop": {**given, "CLIENT_ID": "shop-client"}}


def erase(subject: str = "subject-1") -> ErasureReceipt:
    deliver("data.deletion_requested", subject=subject)
    assert erasure.retry_pending() == 1
    return ErasureReceipt.objects.latest("pk")


@pytest.mark.parametrize(
    "place", [{"application": "shop"}, {"environment": "live"}, {"application": "gone"}]
)
def test_the_accounts_other_identities_go_with_it(place: dict[str, str]) -> None:
    """Nobody could sign in with one, or take it away, and its claims would be re-fetched."""
    ada = make_user()
    make_identity(ada)
    other = make_identity(ada, subject="her-other-subject", **place)
    make_claim(other, value="told-to-another-application")
    TokenGrant.objects.create(
        identity=other, access_token="sealed", access_expires_at=timezone.now()
    )
    make_event(other, "kyc.verified", payload={"note": "told-to-another-application"})
    erase()
    receipts = ErasureReceipt.objects.order_by("pk")
    assert [receipt.counts["linkedidentity"] for receipt in receipts] == [1, 1]
    assert [receipt.counts["storedclaim"] for receipt in receipts] == [0, 1]
    assert [receipt.counts["webhookevent"] for receipt in receipts] == [1, 1]
    assert not LinkedIdentity.objects.exists()
    assert not TokenGrant.objects.exists()
    held = whole_database()
    left = {"her-other-subject", other.subject_digest, "told-to-another-application"}
    assert {value for value in left if value in held} == set()


def test_those_of_others_stay() -> None:
    ada, grace = make_user("ada"), make_user("grace")
    make_identity(ada)
    for subject, application in (("subject-2", "default"), ("subject-1", "shop")):
        make_claim(make_identity(grace, subject=subject, application=application))
    erase()
    assert LinkedIdentity.objects.filter(user=grace).count() == 2
    assert StoredClaim.objects.count() == 2


def test_an_account_that_is_not_erased_keeps_them() -> None:
    """Whoever disconnected before they asked is not known to have had the account."""
    ada = make_user()
    make_identity(ada).delete()
    make_identity(ada, subject="her-other-subject", application="shop")
    erase()
    assert LinkedIdentity.objects.get().subject == "her-other-subject"


class Keeping(IdentityPolicy):
    def erase_user(self, user: Any) -> None:
        """As a site does that must keep its customers' accounts."""


def test_an_account_that_the_policy_keeps_open_keeps_them(settings: Any) -> None:
    """Its person can still sign in with them, and asked only one application to forget them."""
    given = settings.DJANGO_IDENTITY
    kept = {**given["default"], "POLICY": f"{__name__}.Keeping"}
    settings.DJANGO_IDENTITY = {**given, "default": kept}
    ada = make_user()
    make_identity(ada)
    make_identity(ada, subject="her-other-subject", application="shop")
    receipt = erase()
    assert receipt.counts["linkedidentity"] == 1
    assert LinkedIdentity.objects.get().subject == "her-other-subject"


def test_nobody_is_linked_to_an_account_that_is_being_erased() -> None:
    """The look at the account came before the erasure, and the new identity after it."""
    ada = make_user()
    make_identity(ada)
    deliver("data.deletion_requested")
    request = linking.LinkRequest(
        application=conf.application("shop"),
        purpose=Purpose.LINK,
        user_id=ada.pk,
        began_at=timezone.now(),
        complete=lambda completed_by: erasure.retry_pending() and None,
    )
    data = ServiceData(
        subject="her-other-subject",
        scopes=(),
        profile=Profile(id="her-other-subject"),
        kyc=None,
    )
    with pytest.raises(UserInactive):
        linking.link(request, data, user=ada)
    assert "her-other-subject" not in whole_database()


class Slow(IdentityPolicy):
    def erase_user(self, user: Any) -> None:
        time.sleep(0.5)
        super().erase_user(user)


class SlowlyDeleting(Slow):
    erasure = "delete"


@pytest.mark.parametrize("policy", ["Slow", "SlowlyDeleting"])
def test_two_applications_that_hear_of_it_at_once_do_not_wait_for_each_other(
    settings: Any, caplog: pytest.LogCaptureFixture, policy: str
) -> None:
    """As when somebody leaves the service: each erases the account that both are bound to."""
    given = settings.DJANGO_IDENTITY
    slow = {"POLICY": f"{__name__}.{policy}"}
    settings.DJANGO_IDENTITY = {alias: {**given[alias], **slow} for alias in given}
    ada = make_user()
    make_identity(ada)
    make_identity(ada, application="shop")
    for application in ("default", "shop"):
        body = event_body("data.deletion_requested")
        assert post(body, application=application).status_code == 200
    keys = ErasureReceipt.objects.values_list("pk", flat=True)
    assert at_once(partial(erasure.attempt, key) for key in keys) == [True, True]
    assert caplog.records == []
    assert not LinkedIdentity.objects.exists()


def receipt_of(user: Any, **fields: Any) -> ErasureReceipt:
    return ErasureReceipt(
        application="default",
        environment="test",
        user=user,
        subject_digest="",
        requested_at=timezone.now(),
        **fields,
    )


@pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite locks no rows")
def test_a_request_waits_for_an_older_one_before_it_takes_itself() -> None:
    """Or each would have what the other waits for, where there are so many that indexes serve."""
    ada, now = make_user(), timezone.now()
    done = [receipt_of(None, erased_at=now) for _ in range(2000)]
    ErasureReceipt.objects.bulk_create(done)
    for _ in range(2):
        receipt_of(ada, next_attempt_at=now).save()
    older, younger = ErasureReceipt.objects.filter(erased_at=None).order_by("pk")
    with connection.cursor() as cursor:
        table = " TABLE" * (connection.vendor == "mysql")
        cursor.execute(f"ANALYZE{table} {ErasureReceipt._meta.db_table}")
    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            ErasureReceipt.objects.select_for_update().get(pk=older.pk)
            attempted = pool.submit(alone, partial(erasure.attempt, younger.pk))
            until_waiting(1)
            free = ErasureReceipt.objects.select_for_update(skip_locked=True)
            assert free.filter(pk=younger.pk).exists()
        assert attempted.result(timeout=10)


EMPTIED = threading.Event()


class Thorough(IdentityPolicy):
    def erase_user(self, user: Any) -> None:
        """As a site does that has more tables to go through once the account is empty."""
        super().erase_user(user)
        EMPTIED.set()
        # Longer than PostgreSQL lets two wait for each other before it looks.
        time.sleep(1.5)


@pytest.mark.parametrize("by_hand", [False, True])
def test_a_request_that_comes_in_meanwhile_is_taken_and_the_erasure_goes_on(
    settings: Any, caplog: pytest.LogCaptureFixture, by_hand: bool
) -> None:
    """As when somebody leaves the service, and one application hears of it after the other."""
    if by_hand and connection.vendor == "mysql":
        pytest.skip("MariaDB gives the operator's up, who is told to run it again")
    given = settings.DJANGO_IDENTITY
    thorough = {"POLICY": f"{__name__}.Thorough"}
    settings.DJANGO_IDENTITY = {alias: {**given[alias], **thorough} for alias in given}
    ada = make_user()
    make_identity(ada)
    make_identity(ada, application="shop")
    deliver("data.deletion_requested")
    key = ErasureReceipt.objects.get().pk
    EMPTIED.clear()

    def hear_of_it_at_the_shop() -> bool:
        assert EMPTIED.wait(timeout=10)
        if by_hand:
            return erasure.erase_now(conf.application("shop"), "subject-1").erased_at is not None
        posted = post(event_body("data.deletion_requested"), application="shop")
        return posted.status_code == 200 and erasure.retry_pending() == 1

    assert at_once([partial(erasure.attempt, key), hear_of_it_at_the_shop]) == [True, True]
    assert caplog.records == []
    assert not LinkedIdentity.objects.exists()


def test_who_is_linked_meanwhile_is_not_left_to_the_emptied_account(settings: Any) -> None:
    """Whoever links waits for the account, or the erasure for the link."""
    given = settings.DJANGO_IDENTITY
    thorough = {"POLICY": f"{__name__}.Thorough"}
    settings.DJANGO_IDENTITY = {alias: {**given[alias], **thorough} for alias in given}
    ada = make_user()
    make_identity(ada)
    deliver("data.deletion_requested")
    key = ErasureReceipt.objects.get().pk
    EMPTIED.clear()
    request = linking.LinkRequest(
        application=conf.application("shop"),
        purpose=Purpose.LINK,
        user_id=ada.pk,
        began_at=timezone.now(),
        # As in life: a write comes first.
        complete=lambda completed_by: TokenGrant.objects.filter(pk=0).delete() and None,
    )
    data = ServiceData(
        subject="her-other-subject",
        scopes=(),
        profile=Profile(id="her-other-subject"),
        kyc=None,
    )

    def link() -> bool:
        assert EMPTIED.wait(timeout=10)
        with pytest.raises(UserInactive):
            linking.link(request, data, user=ada)
        return True

    assert at_once([partial(erasure.attempt, key), link]) == [True, True]
    assert not LinkedIdentity.objects.exists()


def test_what_was_known_before_does_not_come_back_with_the_person() -> None:
    """They consent to less this time, and an event from before the erasure comes late."""
    make_identity(make_user())
    late = event_body("kyc.verified", at=timezone.now() - timedelta(minutes=1), kyc_level="level_2")
    erase()
    request = linking.LinkRequest(
        application=conf.application(),
        purpose=Purpose.SIGN_IN,
        user_id=None,
        began_at=timezone.now(),
        complete=lambda completed_by: None,
    )
    data = ServiceData(
        subject="subject-1",
        scopes=("profile:read",),
        profile=Profile(id="subject-1"),
        kyc=None,
    )
    linked, _ = linking.link(request, data, user=None)
    assert post(late).status_code == 200
    linked.refresh_from_db()
    assert (linked.kyc_level, linked.kyc_status) == ("", "")
    assert WebhookEvent.objects.get(event_type="kyc.verified").payload is None
