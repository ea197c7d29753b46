"""What the site's policy decides about an erasure."""

from typing import Any, ClassVar

import pytest
from django.contrib.auth.models import User
from django.urls import reverse

from django_identity.exceptions import NoOtherWayIn
from django_identity.lifecycle.leaving import disconnecting, erasure, pending_erasures
from django_identity.lifecycle.operators import interventions
from django_identity.models import ErasureReceipt, LinkedIdentity
from django_identity.policy import IdentityPolicy
from tests.deliveries import deliver
from tests.factories import make_identity, make_identity_by_code, make_user
from tests.views.connect.pages import browser_of

pytestmark = pytest.mark.django_db(transaction=True)


class Recording(IdentityPolicy):
    """Notes that it has run."""

    ran: ClassVar[list[str]] = []

    def erase_user(self, user: Any) -> None:
        assert User.objects.filter(pk=user.pk).exists()
        self.ran.append(type(self).__name__)
        super().erase_user(user)


class Anonymising(Recording):
    pass


class Deleting(Recording):
    erasure = "delete"


class Forbidding(Recording):
    people_may_erase = False


class Keeping(Recording):
    def keeps_account(self, user: Any, *, made_for_identity: bool) -> bool:
        return True


class Asking(IdentityPolicy):
    """Nobody has another way in."""

    def has_other_way_in(self, user: Any) -> bool:
        return False


class Bursting(IdentityPolicy):
    @property
    def people_may_erase(self) -> bool:  # type: ignore[override]  # as a site may write it
        raise RuntimeError("burst")


@pytest.fixture(autouse=True)
def _forget() -> None:
    Recording.ran.clear()


def policy(settings: Any, chosen: type) -> None:
    settings.DJANGO_IDENTITY = {
        **settings.DJANGO_IDENTITY,
        "POLICY": f"{__name__}.{chosen.__name__}",
    }


def linked(**fields: Any) -> User:
    """An account that a full sign-in made."""
    user = make_user(**fields)
    make_identity(user)
    return user


# The person


def test_a_policy_may_let_nobody_erase_themselves(settings):
    policy(settings, Forbidding)
    user = linked()
    browser = browser_of(user)
    for ask in (browser.get, browser.post):
        assert ask(reverse("identity:erase")).status_code == 302
    assert (
        "Erase my data" not in browser.get(reverse("identity:account")).content.decode()
    )
    user.refresh_from_db()
    assert user.is_active
    assert not ErasureReceipt.objects.exists()


def test_an_operator_erases_whom_the_policy_lets_not_erase_themselves(settings):
    policy(settings, Forbidding)
    user = linked()
    assert not erasure.may_erase_themselves(user)
    assert erasure.erase_account(user).erased_at is not None
    assert Recording.ran == ["Forbidding"]


def test_a_policy_that_raises_erases_nothing(settings):
    """The answer is a 500."""
    policy(settings, Bursting)
    browser = browser_of(linked())
    browser.raise_request_exception = False
    assert browser.post(reverse("identity:erase")).status_code == 500
    assert LinkedIdentity.objects.get().consent == "granted"
    assert not ErasureReceipt.objects.exists()
    assert Recording.ran == []


# Who runs


@pytest.mark.parametrize("chosen", [Anonymising, Deleting])
@pytest.mark.parametrize("by", ["person", "service"])
def test_the_policy_erases_once(settings, chosen, by):
    policy(settings, chosen)
    user = linked()
    if by == "person":
        erasure.erase_account(user)
    else:
        deliver("data.deletion_requested")
        pending_erasures.retry()
    assert Recording.ran == [chosen.__name__]
    assert ErasureReceipt.objects.get().counts["user"] == 1
    assert User.objects.filter(pk=user.pk).exists() is (chosen is Anonymising)
    assert not LinkedIdentity.objects.exists()


@pytest.mark.parametrize("by", ["person", "service"])
def test_a_policy_keeps_the_account(settings, by):
    policy(settings, Keeping)
    user = linked()
    if by == "person":
        erasure.erase_account(user)
    else:
        deliver("data.deletion_requested")
    pending_erasures.retry()
    receipt = ErasureReceipt.objects.get()
    assert receipt.erased_at is not None
    assert receipt.account_kept == "policy"
    assert Recording.ran == []
    user.refresh_from_db()
    assert user.is_active
    assert not LinkedIdentity.objects.exists()


def test_staff_stay(settings):
    policy(settings, Deleting)
    receipt = erasure.erase_account(linked(is_staff=True))
    assert receipt.account_kept == "privileged"
    assert Recording.ran == []


def test_a_code_alone_never_erases_the_account(settings):
    """Though the policy keeps nobody. It is not asked."""
    policy(settings, NeverKeeping)
    user = make_user()
    make_identity_by_code(user, subject="stranger")
    assert not erasure.may_erase_themselves(user)
    deliver("data.deletion_requested", subject="stranger")
    pending_erasures.retry()
    receipt = ErasureReceipt.objects.get()
    assert receipt.erased_at is not None
    assert receipt.account_kept == "older"
    assert receipt.counts["linkedidentity"] == 1
    user.refresh_from_db()
    assert user.is_active
    assert not LinkedIdentity.objects.exists()
    assert Recording.ran == []


class NeverKeeping(Recording):
    def keeps_account(self, user: Any, *, made_for_identity: bool) -> bool:
        return False


def test_the_command_never_erases_the_account_for_a_code_alone(settings):
    policy(settings, NeverKeeping)
    user = make_user()
    make_identity_by_code(user)
    receipt = erasure.erase_subject("subject-1")
    assert receipt.account_kept == "older"
    user.refresh_from_db()
    assert user.is_active


def test_a_full_sign_in_that_confirmed_the_code_erases_it(settings):
    """If the policy keeps nobody: it is the owner's own wish then."""
    policy(settings, NeverKeeping)
    make_identity(make_user(), account_made=False)
    deliver("data.deletion_requested")
    pending_erasures.retry()
    assert ErasureReceipt.objects.get().account_kept == ""
    assert not User.objects.get().is_active


# Another way in


def test_a_policy_may_know_no_other_way_in(settings):
    policy(settings, Asking)
    identity = make_identity(make_user())
    with pytest.raises(NoOtherWayIn):
        disconnecting.disconnect(identity)
    assert interventions.disconnect([identity]) == [identity]
    browser = browser_of(identity.user)
    browser.post(reverse("identity:disconnect"))
    browser.post(reverse("identity_api:disconnect"))
    assert LinkedIdentity.objects.exists()
