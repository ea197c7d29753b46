"""While an erasure is pending, and what the site or somebody else does meanwhile."""

import io
import itertools
from collections.abc import Callable
from contextlib import contextmanager, suppress
from typing import ClassVar

import pytest
from django.contrib.auth.models import Group, User
from django.core.management import CommandError, call_command
from django.db import IntegrityError, connection, transaction
from django.db.models import signals
from django.db.transaction import TransactionManagementError
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from django_identity import database
from django_identity import signals as our_signals
from django_identity.lifecycle.ground import withdrawal
from django_identity.lifecycle.leaving import disconnecting, erasure, pending_erasures
from django_identity.lifecycle.operators import interventions
from django_identity.models import (
    AuthorizationRequest,
    ErasureReceipt,
    LinkedIdentity,
    StoredClaim,
    TokenGrant,
    WebhookEvent,
)
from django_identity.policy import IdentityPolicy
from tests.deliveries import SECRET, deliver
from tests.example_counts import spread
from tests.factories import (
    make_claim,
    make_event,
    make_grant,
    make_identity,
    make_identity_by_code,
    make_user,
)
from tests.fake_service import PROFILE
from tests.sign_in import sign_in
from tests.views.connect.pages import browser_of, hand_in

pytestmark = pytest.mark.django_db(transaction=True)


class Failing(IdentityPolicy):
    """Its part raises until it is mended."""

    is_mended = False

    def erase_user(self, user):
        if not self.is_mended:
            raise RuntimeError
        super().erase_user(user)


class NeverKeeping(IdentityPolicy):
    def keeps_account(self, user, *, made_for_identity):
        return False


def with_policy(settings, policy):
    given = settings.DJANGO_IDENTITY
    path = f"{__name__}.{policy.__name__}"
    settings.DJANGO_IDENTITY = {**given, "POLICY": path}


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
Asked = Callable[[LinkedIdentity], None]


@pytest.fixture
def failing(settings, monkeypatch):
    """The site's part raises. Call it to mend the policy."""
    with_policy(settings, Failing)
    return lambda: monkeypatch.setattr(Failing, "is_mended", True)


# What is ours is gone at once


def content():
    """What the stored events say about anybody."""
    rows = WebhookEvent.objects.exclude(subject="", event_id="", payload__isnull=True)
    return list(rows)


def completed_by(user):
    return AuthorizationRequest.objects.create(
        state_digest="s",
        browser_digest="b",
        environment="test",
        completed_by=user,
        outcome="completed",
        expires_at=timezone.now(),
    )


def rows_of_ours():
    """How many rows each table has that could say something about a person."""
    models = (LinkedIdentity, TokenGrant, StoredClaim, AuthorizationRequest)
    counts = {model.__name__: model.objects.count() for model in models}
    return {name: number for name, number in counts.items() if number}


@pytest.mark.parametrize("ask", ASKED)
def test_nothing_of_ours_waits_for_the_site(failing, ask):
    """Whatever the site's part raises, and however often."""
    user = make_user()
    identity = make_identity(user)
    make_claim(identity)
    make_grant(identity)
    make_event(identity, "kyc.verified")
    ask(identity)
    for _ in range(3):
        make_due()
        pending_erasures.retry()
    assert rows_of_ours() == {}
    assert content() == []
    receipt = ErasureReceipt.objects.get()
    assert (receipt.account, receipt.subject_digest) == (str(user.pk), "")
    assert receipt.error == "RuntimeError"

    failing()
    assert done().counts["user"] == 1
    assert not User.objects.get().is_active


@pytest.mark.parametrize("ask", ASKED)
def test_a_merge_meanwhile_erases_no_survivor(failing, ask):
    """The site moves every row that points at the account, and deletes it."""
    former, survivor = make_user("former"), make_user("survivor")
    ask(make_identity(former))
    for relation in User._meta.related_objects:
        rows = relation.related_model._default_manager
        rows.filter(**{relation.field.name: former}).update(
            **{relation.field.name: survivor}
        )
    former.delete()
    failing()
    assert done().account_was_gone
    assert User.objects.get() == survivor
    assert survivor.is_active


def test_an_older_account_stays():
    asked_by_the_service(make_identity(make_user(), account_made=False))
    assert done().account_kept == "older"
    assert User.objects.get().is_active


def test_an_erasure_by_code_alone_is_done_at_once():
    make_identity_by_code(make_user())
    deliver("data.deletion_requested")
    receipt = ErasureReceipt.objects.get()
    assert receipt.erased_at is not None
    assert (receipt.account_kept, receipt.account_was_gone) == ("older", False)
    assert rows_of_ours() == {}
    assert User.objects.get().is_active


@pytest.mark.parametrize("way", [sign_in, hand_in], ids=["a sign-in", "a code"])
def test_nobody_links_to_an_account_that_waits(failing, service, settings, way):
    """The address is that account's, too. The code is not sent, so it stays good."""
    settings.DJANGO_IDENTITY = service.settings(
        WEBHOOK_SECRETS=[SECRET], POLICY=f"{__name__}.Failing"
    )
    user = make_user(email=PROFILE["email"])
    asked_by_the_service(make_identity(user))
    sent = len(service.requests)
    response = way(Client() if way is sign_in else browser_of(user))
    assert response.status_code == 409
    assert "erasure_pending" in response.content.decode()
    assert way is sign_in or len(service.requests) == sent
    assert rows_of_ours().get("LinkedIdentity") is None


# The site's own code refuses


SENDERS = (
    LinkedIdentity, TokenGrant, StoredClaim, WebhookEvent, AuthorizationRequest, ErasureReceipt,
)  # fmt: skip
SIGNALS = ("pre_save", "post_save", "pre_delete", "post_delete")
TAKING_AWAY = ("data.deletion_requested", "consent.revoked")


def refuse(**_signal):
    raise RuntimeError("ada@example.org")


@pytest.mark.parametrize("is_held", [False, True])
def test_the_account_page_says_that_the_deletion_waits(failing, is_held):
    """Also if the site's own code holds the emptied row."""
    user = make_user()
    if is_held:
        signals.pre_delete.connect(refuse, sender=LinkedIdentity)
    try:
        asked_by_the_service(make_identity(user))
    finally:
        signals.pre_delete.disconnect(refuse, sender=LinkedIdentity)
    assert LinkedIdentity.objects.exists() == is_held

    page = browser_of(user).get(reverse("identity:account")).content.decode()

    assert "Your data is erased" in page
    assert "Your account is being deleted" in page
    assert reverse("identity:login") not in page
    assert reverse("identity:connect") not in page


def test_who_waits_is_not_sent_to_the_service(failing):
    """To agree there to a link that the callback refuses. The button of a gate says so at once."""
    user = make_user()
    asked_by_the_service(make_identity(user))
    pressed = browser_of(user).post(reverse("identity:login"), {"next": "/adults/"})
    assert pressed.status_code == 409
    assert "This account is being deleted." in pressed.content.decode()
    assert not AuthorizationRequest.objects.exists()


@pytest.mark.parametrize(
    ("sender", "name", "link", "event_type"),
    spread(
        itertools.product(
            SENDERS, SIGNALS, (make_identity, make_identity_by_code), TAKING_AWAY
        ),
        every=3,
    ),
)
def test_a_receiver_that_raises_keeps_no_consent(
    sender, name, link, event_type, caplog
):
    """Before and after each save and deletion of ours."""
    user = make_user()
    identity = link(user)
    make_claim(identity)
    make_grant(identity)
    request = completed_by(user)
    signal = getattr(signals, name)
    signal.connect(refuse, sender=sender)
    try:
        assert deliver(event_type).status_code == 200
    finally:
        signal.disconnect(refuse, sender=sender)
    assert not LinkedIdentity.objects.filter(consent="granted").exists()
    assert not TokenGrant.objects.exists()
    assert not StoredClaim.objects.filter(value__isnull=False).exists()
    if event_type == "data.deletion_requested":
        assert content() == []
        make_due()
        pending_erasures.retry()
        assert not LinkedIdentity.objects.exists()
        assert not AuthorizationRequest.objects.filter(pk=request.pk).exists()
    assert "ada@example.org" not in caplog.text


@pytest.fixture
def told():
    names: list[str] = []
    ours = ("data_erased", "sessions_ended", "identity_unlinked")
    receivers = []
    for name in ours:

        def note(*, name=name, **_signal):
            names.append(name)

        getattr(our_signals, name).connect(note)
        receivers.append((getattr(our_signals, name), note))
    yield names
    for signal, note in receivers:
        signal.disconnect(note)


@pytest.mark.parametrize("refuses", [False, True])
def test_each_signal_is_sent_once(told, refuses):
    make_identity(make_user())
    if refuses:
        signals.pre_delete.connect(refuse, sender=LinkedIdentity)
    try:
        deliver("data.deletion_requested")
    finally:
        signals.pre_delete.disconnect(refuse, sender=LinkedIdentity)
    done()
    assert sorted(told) == ["data_erased", "identity_unlinked", "sessions_ended"]


def test_what_the_site_holds_is_found_wherever_it_is_moved(failing):
    """Emptied at once; nobody comes back by it; deleted when it is let go."""
    former, survivor = make_user("former"), make_user("survivor")
    identity = make_identity(former)
    signals.pre_delete.connect(refuse, sender=LinkedIdentity)
    try:
        asked_by_the_service(identity)
        LinkedIdentity.objects.update(user=survivor)
        assert LinkedIdentity.objects.get().consent == "revoked"
        assert withdrawal.waits_for_erasure(
            survivor.pk, subject_digest=identity.subject_digest
        )
    finally:
        signals.pre_delete.disconnect(refuse, sender=LinkedIdentity)
    failing()
    assert done().counts["linkedidentity"] == 1
    assert rows_of_ours() == {}
    assert User.objects.get(username="survivor").is_active


def swallow(**_signal):
    """Many sites write a row that may be there, and open no savepoint for it."""
    Group.objects.create(name="audited")
    with suppress(IntegrityError):
        Group.objects.create(name="audited")


@pytest.fixture
def swallowing(monkeypatch):
    """As on MySQL, where no statement of ours follows the deletion."""
    monkeypatch.setattr(database, "_dangling", lambda models: set())
    signals.post_delete.connect(swallow, sender=LinkedIdentity)
    yield
    signals.post_delete.disconnect(swallow, sender=LinkedIdentity)


@pytest.mark.parametrize("event_type", ["data.deletion_requested", "consent.revoked"])
@pytest.mark.parametrize("link", [make_identity, make_identity_by_code])
@pytest.mark.usefixtures("swallowing")
def test_an_error_that_the_site_swallows_keeps_no_consent(link, event_type):
    """Django rolls the deletion back without a word."""
    make_grant(link(make_user()))
    assert deliver(event_type).status_code == 200
    assert not LinkedIdentity.objects.filter(consent="granted").exists()
    assert not TokenGrant.objects.exists()


@pytest.mark.usefixtures("swallowing")
def test_a_deletion_that_was_rolled_back_is_an_error():
    """Nobody is told that a link is gone that is there, and no loop waits for it to go."""
    identity = make_identity(make_user(), account_made=False)
    with pytest.raises(TransactionManagementError):
        disconnecting.disconnect(identity)
    with pytest.raises(TransactionManagementError):
        list(interventions.delete_links(LinkedIdentity.objects.all()))
    assert LinkedIdentity.objects.get().consent == "granted"


@contextmanager
def held():
    """The site's own code holds each identity."""
    signals.pre_delete.connect(refuse, sender=LinkedIdentity)
    try:
        yield
    finally:
        signals.pre_delete.disconnect(refuse, sender=LinkedIdentity)


def test_a_row_that_the_site_revoked_itself_is_emptied_too():
    identity = make_identity(make_user(), consent="revoked")
    make_grant(identity)
    make_claim(identity)
    with held():
        asked_by_the_service(identity)
    assert not TokenGrant.objects.exists()
    assert not StoredClaim.objects.filter(value__isnull=False).exists()
    assert LinkedIdentity.objects.get().kyc_level == ""


def test_a_held_row_waits_for_no_account(failing):
    """The policy's part raises for ever, and what is ours goes all the same."""
    with held():
        asked_by_the_service(make_identity(make_user()))
    make_due()
    pending_erasures.retry()
    assert rows_of_ours() == {}
    receipt = ErasureReceipt.objects.get()
    assert (receipt.subject_digest, receipt.erased_at) == ("", None)


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


def test_whose_a_held_row_was_is_told():
    heard = []

    def note(*, user, **_signal):
        heard.append(user.pk)

    our_signals.data_erased.connect(note)
    with held():
        asked_by_the_service(make_identity_by_code(make_user()))
    done()
    assert heard == [User.objects.get().pk]


class AskingAgain(IdentityPolicy):
    """Its part asks for the same erasure."""

    asked: ClassVar[list[bool]] = []

    def erase_user(self, user):
        self.asked.append(erasure.erase_account(user).erased_at is None)
        super().erase_user(user)


def test_a_policy_may_ask_for_the_same_erasure(settings):
    """It joins the one that is being tried, and does not call itself."""
    with_policy(settings, AskingAgain)
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


def test_a_repeat_a_month_later_finds_nobody():
    make_identity(make_user())
    deliver("data.deletion_requested", event_id="evt-1")
    done()
    deliver("data.deletion_requested", event_id="evt-2")
    assert ErasureReceipt.objects.count() == 1


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
    assert (receipt.account_kept, receipt.counts.get("user", 0)) == ("", 0)
    assert "accounts that the site deleted before erase_user ran: 1" in doctor()


def test_a_deletion_by_the_site_that_rolls_back_leaves_the_request(failing):
    user = make_user()
    asked_by_the_service(make_identity(user))
    with pytest.raises(KeyError):
        roll_back_a_deletion(user)
    failing()
    receipt = done()
    assert not receipt.account_was_gone
    assert receipt.counts["user"] == 1


def roll_back_a_deletion(user):
    with transaction.atomic():
        user.delete()
        raise KeyError


@pytest.mark.parametrize("ask", ASKED)
def test_a_receipt_that_is_done_points_at_nobody(failing, ask):
    """No key, no digest, no id of an event and no text of the person."""
    user = make_user()
    identity = make_identity(user)
    ask(identity)
    failing()
    receipt = done()
    assert (receipt.account, receipt.subject_digest) == (None, "")
    held = [
        str(getattr(receipt, each.attname)) for each in receipt._meta.concrete_fields
    ]
    known = (identity.subject, identity.subject_digest, "evt_", "ada")
    assert [text for text in held if any(part in text for part in known)] == []


# What an operator sees


def doctor():
    out = io.StringIO()
    with suppress(CommandError, SystemExit):
        call_command("identity_doctor", stdout=out)
    return out.getvalue()


def test_the_doctor_lists_what_sql_left():
    """Events with content of somebody who is not linked."""
    identity = make_identity(make_user())
    make_event(identity, "kyc.verified")
    assert "not linked" not in doctor()
    LinkedIdentity.objects.filter(pk=identity.pk)._raw_delete(connection.alias)
    assert "events with content of somebody who is not linked: 1" in doctor()
    call_command("identity_erase", identity.subject, "--yes", stdout=io.StringIO())
    assert "not linked" not in doctor()


@pytest.mark.parametrize("ask", ASKED)
def test_an_operator_sees_whom_a_pending_erasure_is_about(failing, ask):
    """The account that waits; then nobody."""
    identity = make_identity(make_user())
    make_identity(make_user("other"), subject="subject-2")
    ask(identity)
    receipt = ErasureReceipt.objects.get()
    assert interventions.concerned_by(receipt) == identity.user
    failing()
    assert interventions.concerned_by(done()) is None


def test_the_command_says_that_the_account_was_gone(failing, monkeypatch):
    """If the site deletes it while the operator waits."""
    user = make_user()
    make_identity(user)
    before = pending_erasures.attempt

    def late(*given, **more):
        User.objects.all().delete()
        return before(*given, **more)

    monkeypatch.setattr(pending_erasures, "attempt", late)
    out = io.StringIO()
    call_command("identity_erase", "subject-1", "--yes", stdout=out)
    assert "erase_user did not run" in out.getvalue()


def test_the_admin_shows_it(admin_client):
    receipt = ErasureReceipt.objects.create(
        requested_at=timezone.now(),
        erased_at=timezone.now(),
        account_was_gone=True,
    )
    name = "admin:django_identity_erasurereceipt_change"
    page = admin_client.get(reverse(name, args=[receipt.pk])).content.decode()
    assert "Account deleted before" in page
