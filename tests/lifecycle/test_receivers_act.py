"""Receivers of the site that act: they save or delete what they are told about, or forbid it."""

import itertools
from contextlib import contextmanager, suppress

import pytest
from django.contrib.auth.models import Group, User
from django.contrib.auth.signals import user_logged_out
from django.db import IntegrityError
from django.db.models import ProtectedError
from django.db.models import signals as model_signals
from django.db.transaction import TransactionManagementError
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from django_identity import database, signals
from django_identity.gates import Gate, closed_to
from django_identity.lifecycle.leaving import disconnecting, erasure, pending_erasures
from django_identity.lifecycle.operators import interventions
from django_identity.models import (
    AuthorizationRequest,
    Consent,
    ErasureReceipt,
    LinkedIdentity,
    StoredClaim,
    TokenGrant,
    WebhookEvent,
)
from tests.databases import dangling, pointed_at
from tests.deliveries import deliver
from tests.example_counts import spread
from tests.factories import (
    again,
    make_claim,
    make_grant,
    make_identity,
    make_identity_by_code,
    make_user,
)
from tests.lifecycle.test_erasure import Deleting, lived
from tests.lifecycle.test_forgetting import content
from tests.lifecycle.test_pending_erasure import make_due, refuse
from tests.sign_in import is_signed_in, sign_in

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def notes():
    """A site ends its own tokens by a number at the account, and saves all of it."""

    def note(user, **_signal):
        user.is_staff = False
        user.save()

    for each in (signals.sessions_ended, signals.identity_unlinked, user_logged_out):
        each.connect(note, weak=False)


def note_the_visit(get_response):
    """A middleware of a site that notes at the account when somebody was last there."""

    def middleware(request):
        user = request.user
        was_there = user.is_authenticated
        response = get_response(request)
        if was_there:
            user.save()
        return response

    return middleware


#: The page signs them out afterwards, of which Django tells with the request's user.
ERASE = {
    "event": lambda _: (deliver("data.deletion_requested"), pending_erasures.retry()),
    "operator": lambda _: interventions.erase(LinkedIdentity.objects.get()),
    "themselves": lambda browser: browser.post(reverse("identity:erase")),
    "the site": lambda _: User.objects.all().delete(),
}


@pytest.mark.parametrize("deletes", [False, True], ids=["anonymised", "deleted"])
@pytest.mark.parametrize("erase", ERASE)
def test_nobody_is_stored_again(service, settings, use_policy, notes, erase, deletes):
    """What receivers get is the account as it is after the erasure."""
    browser = lived(service, settings)
    settings.MIDDLEWARE = [*settings.MIDDLEWARE, f"{__name__}.note_the_visit"]
    if deletes:
        use_policy(Deleting)
    assert User.objects.get().first_name == "Augusta"
    ERASE[erase](browser)
    assert not LinkedIdentity.objects.exists()
    left = User.objects.values_list("first_name", "last_name", "email")
    assert not any("".join(texts) for texts in left)


# Who leaves at the moment of the sign-in


def removes_the_link(user):
    user.set_password("another way in")
    user.save()
    disconnecting.disconnect(LinkedIdentity.objects.get(user=user))


ACTS = {
    "deletes the account": lambda user: user.delete(),
    "erases it": erasure.erase_account,
    "disables it": lambda user: User.objects.filter(pk=user.pk).update(is_active=False),
    "removes the link": removes_the_link,
}


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("same", [True, False], ids=["same instance", "another one"])
def test_whom_a_receiver_turns_away_is_not_signed_in(service, act, same):
    """With a page, whatever became of the account."""

    def turn_away(user, **_signal):
        ACTS[act](user if same else User.objects.get(pk=user.pk))

    browser = Client()
    signals.identity_linked.connect(turn_away)
    assert sign_in(browser).status_code < 500
    assert not is_signed_in(browser)


# Rows that the site does not let go


@contextmanager
def protected(identity):
    """By a receiver of the site."""

    def protect(**_signal):
        raise ProtectedError("a loan", {identity})

    model_signals.pre_delete.connect(protect, sender=LinkedIdentity)
    yield
    model_signals.pre_delete.disconnect(protect, sender=LinkedIdentity)


@pytest.mark.parametrize("way", [protected, pointed_at], ids=["site", "database"])
def test_a_link_by_code_that_is_protected_is_emptied(way):
    """The site's loans point at the row, or the database alone refuses, at the commit.

    The consent ends at once all the same. Later the row may go.
    """
    user = make_user()
    identity = make_identity_by_code(user)
    verified = Gate(kyc_level="level_2")
    assert closed_to(verified, again(user)) is None
    with way(identity):
        deliver("consent.revoked")
    assert closed_to(verified, again(user))
    emptied = LinkedIdentity.objects.get()
    assert emptied.consent == Consent.REVOKED
    assert emptied.connect_person == ""
    assert disconnecting.disconnect(identity)


def test_a_receiver_that_erases_the_account_is_told_once():
    """The erasure that it asks for ends no sessions again, so it is not called for ever."""
    make_identity(make_user())
    asked = []

    def erase(user, **_signal):
        asked.append(user)
        erasure.erase_account(user)

    signals.sessions_ended.connect(erase)
    deliver("consent.revoked")
    assert len(asked) <= 3
    assert not LinkedIdentity.objects.exists()
    assert not ErasureReceipt.objects.filter(erased_at=None).exists()


def test_a_row_that_points_at_nobody_protects_no_link():
    """Something else has left it, in a database that does not look."""
    make_identity_by_code(make_user())
    with dangling():
        deliver("consent.revoked")
    assert not LinkedIdentity.objects.exists()


# Receivers that raise, and those that swallow an error


SENDERS = (
    LinkedIdentity,
    TokenGrant,
    StoredClaim,
    WebhookEvent,
    AuthorizationRequest,
    ErasureReceipt,
)
SIGNALS = ("pre_save", "post_save", "pre_delete", "post_delete")
TAKING_AWAY = ("data.deletion_requested", "consent.revoked")


@pytest.mark.parametrize(
    ("sender", "name", "link", "event_type"),
    spread(
        itertools.product(
            SENDERS,
            SIGNALS,
            (make_identity, make_identity_by_code),
            TAKING_AWAY,
        ),
        every=3,
    ),
)
def test_a_receiver_that_raises_keeps_no_consent(
    sender,
    name,
    link,
    event_type,
    caplog,
):
    """Before and after each save and deletion of ours."""
    user = make_user()
    identity = link(user)
    make_claim(identity)
    make_grant(identity)
    request = AuthorizationRequest.objects.create(
        environment="test",
        completed_by=user,
        expires_at=timezone.now(),
    )
    signal = getattr(model_signals, name)
    signal.connect(refuse, sender=sender)
    assert deliver(event_type).status_code == 200
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


def swallow(**_signal):
    """Many sites write a row that may be there, and open no savepoint for it."""
    Group.objects.create(name="audited")
    with suppress(IntegrityError):
        Group.objects.create(name="audited")


@pytest.fixture
def swallowing(monkeypatch):
    """As on MySQL, where no statement of ours follows the deletion."""
    monkeypatch.setattr(database, "_dangling", lambda models: set())
    model_signals.post_delete.connect(swallow, sender=LinkedIdentity)


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
