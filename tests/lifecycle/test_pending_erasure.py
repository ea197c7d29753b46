"""While an erasure is pending, and what the site or somebody else does meanwhile."""

from contextlib import contextmanager, nullcontext
from typing import ClassVar

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.db.models import signals
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from django_identity.lifecycle.ground import withdrawal
from django_identity.lifecycle.leaving import erasure, pending_erasures
from django_identity.models import (
    AuthorizationRequest,
    ErasureReceipt,
    LinkedIdentity,
    StoredClaim,
    TokenGrant,
)
from django_identity.policy import IdentityPolicy
from tests.deliveries import deliver
from tests.factories import make_claim, make_event, make_grant, make_identity, make_user
from tests.fake_service import PROFILE
from tests.lifecycle.commands import said_by
from tests.lifecycle.grants import of_users
from tests.lifecycle.test_forgetting import content
from tests.sign_in import begin, come_back, sign_in
from tests.views.connect.pages import browser_of, hand_in

pytestmark = pytest.mark.django_db(transaction=True)


class Failing(IdentityPolicy):
    """Its part raises until it is mended."""

    is_mended = False

    def erase_user(self, user):
        if not self.is_mended:
            raise RuntimeError("ada@example.org")
        super().erase_user(user)


def make_due():
    ErasureReceipt.objects.filter(erased_at=None).update(next_attempt_at=timezone.now())


def done():
    """The receipt, after a worker has come by."""
    make_due()
    pending_erasures.retry()
    receipt = ErasureReceipt.objects.get()
    assert receipt.erased_at is not None
    return receipt


def asked_by_the_service(identity):
    deliver("data.deletion_requested", subject=identity.subject)


def asked_by_the_person(identity):
    """Pending, because the site's part raises."""
    assert erasure.erase_account(identity.user).erased_at is None


ASKED = [asked_by_the_service, asked_by_the_person]


@pytest.fixture
def failing(use_policy, monkeypatch):
    """The site's part raises. Call it to mend the policy."""
    use_policy(Failing)
    return lambda: monkeypatch.setattr(Failing, "is_mended", True)


# What is ours is gone at once


def rows_of_ours():
    """How many rows each table has that could say something about a person."""
    models = (LinkedIdentity, TokenGrant, StoredClaim, AuthorizationRequest)
    counts = {model.__name__: model.objects.count() for model in models}
    return {name: number for name, number in counts.items() if number}


@pytest.mark.parametrize("ask", ASKED)
def test_nothing_of_ours_waits_for_the_site(failing, ask, caplog):
    """Whatever the site's part raises, however often, loud, and in nobody's name."""
    user = make_user()
    identity = make_identity(user)
    make_claim(identity)
    make_grant(identity)
    make_event(identity, "kyc.verified")
    ask(identity)
    for _ in range(3):
        make_due()
        assert pending_erasures.retry() == 0
    assert rows_of_ours() == {}
    assert content() == []
    receipt = ErasureReceipt.objects.get()
    assert receipt.account == str(user.pk)
    assert receipt.subject_digest == ""
    assert receipt.error == "RuntimeError"
    assert receipt.erased_at is None
    assert receipt.attempts == 3 + (ask is asked_by_the_person)
    assert "ERROR" in [record.levelname for record in caplog.records]
    assert "ada@example.org" not in caplog.text

    failing()
    assert pending_erasures.retry() == 0  # not due yet
    assert done().counts["user"] == 1
    assert not User.objects.get().is_active


@pytest.mark.parametrize(
    "ask",
    [*ASKED, lambda identity: erasure.erase_subject(identity.subject)],
)
@pytest.mark.usefixtures("failing")
def test_the_link_goes_in_the_transaction_that_writes_the_receipt(ask):
    """So nobody who is linked waits for an erasure."""
    identity = make_identity(make_user())
    committed = []

    def look():
        pending = ErasureReceipt.objects.filter(erased_at=None).count()
        committed.append((pending, LinkedIdentity.objects.exists()))

    def deleted(**_kwargs):
        assert connection.in_atomic_block
        transaction.on_commit(look)

    signals.pre_delete.connect(deleted, sender=LinkedIdentity)
    ask(identity)
    assert committed == [(1, False)]


@pytest.mark.parametrize(
    "way",
    ["a button", "a sign-in", "a code", "a link that was begun"],
)
def test_nobody_links_to_an_account_that_waits(service, failing, way):
    """The address is that account's, too. The code is not sent, so it stays good.

    The button of a gate says so at once, and sends nobody to the service.
    """
    user = make_user(email=PROFILE["email"])
    browser = Client() if way == "a sign-in" else browser_of(user)
    before = begin(browser)
    asked_by_the_service(make_identity(user))

    if way == "a button":
        answer = browser.post(reverse("identity:login"), {"next": "/adults/"})
        assert AuthorizationRequest.objects.count() == 1
    elif way == "a code":
        answer = hand_in(browser)
    else:
        state = begin(browser) if way == "a sign-in" else before
        answer = come_back(browser, state)

    assert answer.status_code == 409
    assert "erasure_pending" in answer.content.decode()
    assert way != "a code" or service.requests == []
    assert rows_of_ours().get("LinkedIdentity") is None


def test_a_row_that_is_held_gets_no_new_consent(service):
    """The person comes back with the identity that is being deleted."""
    with held():
        asked_by_the_service(make_identity(make_user()))

    answer = sign_in(Client())

    assert answer.status_code == 409
    assert "erasure_pending" in answer.content.decode()
    assert LinkedIdentity.objects.get().consent == "revoked"


# The site's own code refuses


def refuse(**_signal):
    raise RuntimeError("ada@example.org")


@contextmanager
def held():
    """The site's own code holds each identity."""
    signals.pre_delete.connect(refuse, sender=LinkedIdentity)
    yield
    signals.pre_delete.disconnect(refuse, sender=LinkedIdentity)


@pytest.mark.parametrize("is_held", [False, True])
def test_the_account_page_says_that_the_deletion_waits(failing, is_held):
    """Also if the site's own code holds the emptied row."""
    user = make_user()
    with held() if is_held else nullcontext():
        asked_by_the_service(make_identity(user))
    assert LinkedIdentity.objects.exists() == is_held

    page = browser_of(user).get(reverse("identity:account")).content.decode()

    assert "Your data is erased" in page
    assert "Your account is being deleted" in page
    assert reverse("identity:login") not in page
    assert reverse("identity:connect") not in page


def test_what_the_site_holds_is_found_wherever_it_is_moved(failing):
    """Emptied at once; nobody comes back by it; deleted when it is let go."""
    former, survivor = make_user("former"), make_user("survivor")
    identity = make_identity(former)
    with held():
        asked_by_the_service(identity)
        LinkedIdentity.objects.update(user=survivor)
        assert LinkedIdentity.objects.get().consent == "revoked"
        assert withdrawal.waits_for_erasure(
            survivor.pk,
            subject_digest=identity.subject_digest,
        )
    failing()
    assert done().counts["linkedidentity"] == 1
    assert rows_of_ours() == {}
    assert User.objects.get(username="survivor").is_active


def test_a_row_that_the_site_holds_is_emptied(failing):
    """Also one that it revoked itself. It goes though the policy's part raises for ever."""
    identity = make_identity(make_user(), consent="revoked")
    make_grant(identity)
    make_claim(identity)
    with held():
        asked_by_the_service(identity)
    assert not TokenGrant.objects.exists()
    assert not StoredClaim.objects.filter(value__isnull=False).exists()
    assert LinkedIdentity.objects.get().kyc_level == ""
    make_due()
    pending_erasures.retry()
    assert rows_of_ours() == {}
    receipt = ErasureReceipt.objects.get()
    assert receipt.subject_digest == ""
    assert receipt.erased_at is None


def test_of_a_row_that_was_held_each_signal_is_sent_once(heard):
    """With its user, who is found when it is let go."""
    with held():
        asked_by_the_service(make_identity(make_user()))
    done()
    key = User.objects.get().pk
    names = ("data_erased", "identity_unlinked", "sessions_ended")
    assert sorted(of_users(heard)) == [(name, key) for name in names]


def test_a_new_consent_of_a_subject_that_was_held_stays():
    """The site deleted the row by itself, and the person came back."""
    with held():
        asked_by_the_service(make_identity(make_user("former")))
    User.objects.all().delete()
    make_identity(make_user("new"))
    done()
    assert LinkedIdentity.objects.get().consent == "granted"


def test_a_receipt_that_is_joined_keeps_its_counts(failing):
    """First the link is deleted; another one, which the site moves there, is held."""
    user = make_user()
    asked_by_the_service(make_identity(user))
    deleted = ErasureReceipt.objects.get().counts["linkedidentity"]
    other = make_identity(user, subject="subject-2")
    with held():
        asked_by_the_service(other)
    assert ErasureReceipt.objects.get().counts["linkedidentity"] == deleted == 1


class AskingAgain(IdentityPolicy):
    """Its part asks for the same erasure."""

    asked: ClassVar[list[bool]] = []

    def erase_user(self, user):
        self.asked.append(erasure.erase_account(user).erased_at is None)
        super().erase_user(user)


def test_a_policy_may_ask_for_the_same_erasure(use_policy):
    """It joins the one that is being tried, and does not call itself."""
    use_policy(AskingAgain)
    AskingAgain.asked.clear()
    asked_by_the_service(make_identity(make_user()))

    receipt = done()

    assert receipt.counts["user"] == 1
    assert AskingAgain.asked == [True]


def test_a_second_request_joins_the_first(failing):
    """Tried by itself, it would find an account that is gone."""
    identity = make_identity(make_user())
    asked_by_the_service(identity)
    asked_by_the_person(identity)
    failing()
    assert not done().account_was_gone


# The site deletes first


@pytest.mark.parametrize("ask", ASKED)
@pytest.mark.parametrize("by_query", [True, False])
def test_the_receipt_says_that_the_site_deleted_the_account(failing, ask, by_query):
    """The policy's ``erase_user`` did not run, so data may be left. The doctor lists it."""
    ask(make_identity(make_user()))
    if by_query:
        User.objects.all().delete()
    else:
        User.objects.get().delete()
    receipt = done()
    assert receipt.account_was_gone
    assert receipt.account_kept == ""
    assert receipt.counts.get("user", 0) == 0
    said = said_by("identity_doctor", may_fail=True)
    assert "accounts that the site deleted before erase_user ran: 1" in said


def test_the_command_says_that_the_account_was_gone(failing, monkeypatch):
    """If the site deletes it while the operator waits."""
    user = make_user()
    make_identity(user)
    before = pending_erasures.attempt

    def late(*given, **more):
        User.objects.all().delete()
        return before(*given, **more)

    monkeypatch.setattr(pending_erasures, "attempt", late)
    said = said_by("identity_erase", "subject-1", "--yes")
    assert "erase_user did not run" in said
