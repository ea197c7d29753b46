"""What the site's policy decides about an account that is to be erased."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.urls import reverse

from django_identity.exceptions import NoOtherWayIn
from django_identity.lifecycle import disconnecting, erasure
from django_identity.lifecycle.operators import interventions
from django_identity.models import ErasureReceipt, LinkedIdentity
from django_identity.policy import IdentityPolicy
from tests.deliveries import deliver
from tests.factories import make_identity, make_identity_by_code, make_user
from tests.views.connect.pages import browser_of

pytestmark = pytest.mark.django_db(transaction=True)


class Deleting(IdentityPolicy):
    erasure = "delete"


class Forbidding(IdentityPolicy):
    people_may_erase = False


class Auditing(IdentityPolicy):
    audit_erasures = True


class NeverKeeping(IdentityPolicy):
    def keeps_account(self, user: Any, *, made_for_identity: bool) -> bool:
        return False


class DeletingEverybody(NeverKeeping):
    erasure = "delete"


class Asking(IdentityPolicy):
    """Nobody has another way in."""

    def has_other_way_in(self, user: Any) -> bool:
        return False


class Bursting(IdentityPolicy):
    @property
    def people_may_erase(self) -> bool:  # type: ignore[override]  # as a site may write it
        raise RuntimeError("burst")


def use(settings: Any, policy: type) -> None:
    path = f"{__name__}.{policy.__name__}"
    settings.DJANGO_IDENTITY = {**settings.DJANGO_IDENTITY, "POLICY": path}


def test_nobody_erases_themselves_where_the_policy_forbids_it(settings: Any) -> None:
    use(settings, Forbidding)
    user = make_user()
    make_identity(user)
    browser = browser_of(user)
    for ask in (browser.get, browser.post):
        assert ask(reverse("identity:erase")).status_code == 302
    page = browser.get(reverse("identity:account")).content.decode()
    assert "Erase my data" not in page
    user.refresh_from_db()
    assert user.is_active
    assert not ErasureReceipt.objects.exists()
    assert erasure.erase_account(user).erased_at is not None


def test_a_policy_that_raises_erases_nothing(settings: Any) -> None:
    """The answer is a 500."""
    use(settings, Bursting)
    user = make_user()
    make_identity(user)
    browser = browser_of(user)
    browser.raise_request_exception = False
    assert browser.post(reverse("identity:erase")).status_code == 500
    assert LinkedIdentity.objects.get().consent == "granted"
    assert not ErasureReceipt.objects.exists()


@pytest.mark.parametrize("policy", [IdentityPolicy, Deleting])
@pytest.mark.parametrize("by", ["person", "service"])
def test_the_policy_erases_the_account(settings: Any, policy: type, by: str) -> None:
    if policy is Deleting:
        use(settings, policy)
    user = make_user()
    make_identity(user)
    if by == "person":
        erasure.erase_account(user)
    else:
        deliver("data.deletion_requested")
        erasure.retry_pending()
    assert ErasureReceipt.objects.get().counts["user"] == 1
    assert User.objects.filter(pk=user.pk).exists() is (policy is not Deleting)
    assert not LinkedIdentity.objects.exists()


def test_no_request_waits_for_an_audit(settings: Any) -> None:
    """A worker erases then."""
    use(settings, Auditing)
    user = make_user()
    make_identity(user)
    receipt = erasure.erase_account(user)
    assert receipt.erased_at is None
    assert erasure.retry_pending() == 1
    receipt.refresh_from_db()
    assert receipt.audit is not None


@pytest.mark.parametrize("policy", [NeverKeeping, DeletingEverybody])
@pytest.mark.parametrize("by", ["service", "command"])
def test_a_strangers_code_never_erases_the_account(
    settings: Any, policy: type, by: str
) -> None:
    """Though the policy keeps nobody. It is not asked."""
    use(settings, policy)
    user = make_user()
    make_identity_by_code(user)
    if by == "service":
        deliver("data.deletion_requested")
        erasure.retry_pending()
    else:
        erasure.erase_subject("test", "subject-1")
    receipt = ErasureReceipt.objects.get()
    assert receipt.erased_at is not None
    assert receipt.account_kept == "older"
    assert receipt.counts["linkedidentity"] == 1
    user.refresh_from_db()
    assert user.is_active


def test_a_full_sign_in_that_confirmed_the_code_erases_it(settings: Any) -> None:
    """If the policy keeps nobody: it is the owner's own wish then."""
    use(settings, NeverKeeping)
    make_identity(make_user(), account_made=False)
    deliver("data.deletion_requested")
    erasure.retry_pending()
    assert ErasureReceipt.objects.get().account_kept == ""
    assert not User.objects.get().is_active


def test_the_policy_is_asked_for_another_way_in(settings: Any) -> None:
    """By the operator, the page and the API."""
    use(settings, Asking)
    identity = make_identity(make_user())
    with pytest.raises(NoOtherWayIn):
        disconnecting.disconnect(identity)
    assert interventions.disconnect([identity]) == [identity]
    browser = browser_of(identity.user)
    browser.post(reverse("identity:disconnect"))
    browser.post(reverse("identity_api:disconnect"))
    assert LinkedIdentity.objects.exists()
