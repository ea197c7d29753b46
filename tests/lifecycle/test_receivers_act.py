"""Receivers of the site that act: they save or delete what they are told about, or forbid it."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.contrib.auth.signals import user_logged_out
from django.db.models import ProtectedError
from django.db.models.signals import pre_delete
from django.test import Client
from django.urls import reverse

from django_identity import signals
from django_identity.gates import Gate, closed_to
from django_identity.lifecycle.leaving import disconnecting, erasure, pending_erasures
from django_identity.lifecycle.operators import interventions
from django_identity.models import Consent, ErasureReceipt, LinkedIdentity
from tests.databases import dangling, pointed_at
from tests.deliveries import deliver
from tests.factories import again, make_identity, make_identity_by_code, make_user
from tests.lifecycle.test_erasure import Deleting, lived, with_policy
from tests.sign_in import is_signed_in, sign_in

pytestmark = pytest.mark.django_db(transaction=True)


def note_at_the_account(user, **_signal):
    """A site ends its own tokens by a number at the account, and saves all of it."""
    user.is_staff = False
    user.save()


@pytest.fixture
def notes():
    told_by = (signals.sessions_ended, signals.identity_unlinked, user_logged_out)
    for signal in told_by:
        signal.connect(note_at_the_account)


def note_the_visit(get_response):
    """A middleware of a site that notes at the account when somebody was last there."""

    def middleware(request):
        user: Any = request.user
        was_there = user.is_authenticated
        response = get_response(request)
        if was_there:
            user.save()
        return response

    return middleware


#: The page signs them out afterwards, of which Django tells with the request's user.
ERASE: dict[str, Callable[[Client], object]] = {
    "event": lambda _: (deliver("data.deletion_requested"), pending_erasures.retry()),
    "operator": lambda _: interventions.erase(LinkedIdentity.objects.get()),
    "themselves": lambda browser: browser.post(reverse("identity:erase")),
    "the site": lambda _: User.objects.all().delete(),
}


@pytest.mark.parametrize("deletes", [False, True], ids=["anonymised", "deleted"])
@pytest.mark.parametrize("erase", ERASE)
def test_nobody_is_stored_again(service, settings, notes, erase, deletes):
    """What receivers get is the account as it is after the erasure."""
    browser = lived(service, settings)
    settings.MIDDLEWARE = [*settings.MIDDLEWARE, f"{__name__}.note_the_visit"]
    if deletes:
        with_policy(settings, Deleting)
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


ACTS: dict[str, Callable[[User], object]] = {
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


def test_a_link_by_code_that_the_site_protects_is_emptied():
    """Its loans point at the row. The consent ends at once all the same."""
    user = make_user()
    identity = make_identity_by_code(user)

    def protect(**_signal):
        raise ProtectedError("a loan", {identity})

    verified = Gate(kyc_level="level_2")
    assert closed_to(verified, again(user)) is None
    pre_delete.connect(protect, sender=LinkedIdentity)
    deliver("consent.revoked")
    assert closed_to(verified, again(user))
    assert LinkedIdentity.objects.get().consent == Consent.REVOKED
    assert LinkedIdentity.objects.get().connect_person == ""
    pre_delete.disconnect(protect, sender=LinkedIdentity)
    # Later it may go.
    assert disconnecting.disconnect(identity)


def test_one_that_only_the_database_protects_is_emptied_too():
    """Some look at the commit alone. Then the event would be refused for ever."""
    user = make_user()
    with pointed_at(make_identity_by_code(user)):
        deliver("consent.revoked")
    assert closed_to(Gate(kyc_level="level_2"), again(user))
    assert LinkedIdentity.objects.get().connect_person == ""


def test_a_receiver_that_erases_the_account_is_told_once():
    """The erasure that it asks for ends no sessions again, so it is not called for ever."""
    make_identity(make_user())
    asked: list[User] = []

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
