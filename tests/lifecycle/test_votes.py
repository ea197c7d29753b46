"""One account, several applications: their policies decide together, and nobody chooses one."""

from typing import Any, ClassVar

import pytest
from django.contrib.auth.models import User
from django.test import Client
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


class Recording(IdentityPolicy):
    """Each notes that it has run, and in which order."""

    ran: ClassVar[list[str]] = []

    def erase_user(self, user: Any) -> None:
        assert User.objects.filter(pk=user.pk).exists()
        self.ran.append(type(self).__name__)
        super().erase_user(user)


class Anonymising(Recording):
    pass


class Other(Recording):
    pass


class Deleting(Recording):
    erasure = "delete"


class DeletingToo(Recording):
    erasure = "delete"


class Forbidding(Recording):
    people_may_erase = False


class Keeping(Recording):
    def keeps_account(self, user: Any, *, made_for_identity: bool) -> bool:
        return True


class Auditing(Recording):
    audit_erasures = True


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


def policies(settings: Any, **chosen: type) -> None:
    """Applications with these policies, in this order."""
    given = settings.DJANGO_IDENTITY["default"]
    settings.DJANGO_IDENTITY = {
        alias: {**given, "POLICY": f"{__name__}.{site.__name__}"}
        for alias, site in chosen.items()
    }


def linked_by(*aliases: str, **fields: Any) -> User:
    """An account with a full sign-in under each of these; the first made it."""
    user = make_user(**fields)
    for number, alias in enumerate(aliases, start=1):
        made = number == 1
        make_identity(
            user, subject=f"subject-{number}", application=alias, account_made=made
        )
    return user


# The person


@pytest.mark.parametrize("address", ["default", "second"])
@pytest.mark.parametrize(
    "aliases", [("default",), ("default", "second"), ("second", "default")]
)
def test_no_address_chooses_the_policy(
    settings: Any, address: str, aliases: tuple[str, ...]
) -> None:
    """``default`` lets nobody erase themselves: neither at its address nor at another one."""
    policies(settings, default=Forbidding, second=Anonymising)
    user = linked_by(*aliases)
    browser = browser_of(user)
    for ask in (browser.get, browser.post):
        answer = ask(reverse("identity:erase", args=[address]))
        assert answer.status_code == 302
    assert (
        "Erase my data" not in browser.get(reverse("identity:account")).content.decode()
    )
    user.refresh_from_db()
    assert user.is_active
    assert not ErasureReceipt.objects.exists()


@pytest.mark.parametrize("address", ["default", "second"])
def test_who_has_nothing_under_the_forbidding_application_may_erase(
    settings: Any, address: str
) -> None:
    policies(settings, default=Forbidding, second=Anonymising)
    user = linked_by("second")
    assert (
        browser_of(user).post(reverse("identity:erase", args=[address])).status_code
        == 200
    )
    assert Recording.ran == ["Anonymising"]
    assert not LinkedIdentity.objects.exists()


@pytest.mark.parametrize("application", ["second", "gone"])
def test_a_strangers_code_and_an_alias_that_is_gone_have_no_vote(
    settings: Any, application: str
) -> None:
    """Under a policy that would keep everybody, and lets nobody erase themselves."""
    policies(settings, default=Anonymising, second=Keeping)
    user = linked_by("default")
    if application == "second":
        make_identity_by_code(user, subject="stranger", application=application)
    else:
        make_identity(user, subject="old", application=application, account_made=False)
    assert erasure.may_erase_themselves(user)
    assert erasure.erase_account(user).account_kept == ""
    assert Recording.ran == ["Anonymising"]
    assert not LinkedIdentity.objects.exists()


def test_links_under_aliases_that_are_gone_ask_the_default_application(
    settings: Any,
) -> None:
    policies(settings, default=Forbidding, second=Anonymising)
    user = linked_by("gone", "gone-too")
    assert not erasure.may_erase_themselves(user)
    assert erasure.erase_account(user).erased_at is not None
    assert Recording.ran == ["Forbidding"]


def test_a_policy_that_raises_erases_nothing(settings: Any) -> None:
    """The answer is a 500."""
    policies(settings, default=Bursting, second=Anonymising)
    user = linked_by("default", "second")
    browser = browser_of(user)
    browser.raise_request_exception = False
    for address in ("default", "second"):
        assert (
            browser.post(reverse("identity:erase", args=[address])).status_code == 500
        )
    assert LinkedIdentity.objects.filter(consent="granted").count() == 2
    assert not ErasureReceipt.objects.exists()
    assert Recording.ran == []


# Who runs


@pytest.mark.parametrize(
    ("chosen", "ran"),
    [
        ((Anonymising, Other), ["Anonymising", "Other"]),
        ((Anonymising, Anonymising), ["Anonymising"]),
        ((Deleting, Anonymising), ["Anonymising", "Deleting"]),
        ((Deleting, DeletingToo), ["Deleting"]),
    ],
)
@pytest.mark.parametrize("by", ["person", "service"])
def test_each_policy_erases_once_and_the_deleting_one_last(
    settings: Any, chosen: tuple[type, type], ran: list[str], by: str
) -> None:
    """None runs for an account that is gone. The service's request asks all of them, too."""
    first, second = chosen
    policies(settings, default=first, second=second)
    user = linked_by("default", "second")
    if by == "person":
        erasure.erase_account(user)
    else:
        deliver("data.deletion_requested")
        erasure.retry_pending()
    assert Recording.ran == ran
    assert ErasureReceipt.objects.get().counts["user"] == 1
    assert User.objects.filter(pk=user.pk).exists() is not issubclass(Deleting, chosen)
    assert not LinkedIdentity.objects.exists()


@pytest.mark.parametrize("by", ["person", "service", "second subject"])
def test_any_policy_keeps_the_account(settings: Any, by: str) -> None:
    policies(settings, default=Deleting, second=Keeping)
    user = linked_by("default", "second")
    if by == "person":
        erasure.erase_account(user)
    elif by == "service":
        deliver("data.deletion_requested")
    else:
        deliver("data.deletion_requested", subject="subject-2", application="second")
    erasure.retry_pending()
    receipt = ErasureReceipt.objects.get()
    assert receipt.erased_at is not None
    assert receipt.account_kept == ("older" if by == "second subject" else "policy")
    assert Recording.ran == []
    user.refresh_from_db()
    assert user.is_active
    left = {"person": [], "service": ["subject-2"], "second subject": ["subject-1"]}
    assert list(LinkedIdentity.objects.values_list("subject", flat=True)) == left[by]


def test_staff_stay_under_all_policies(settings: Any) -> None:
    policies(settings, default=Deleting, second=Anonymising)
    receipt = erasure.erase_account(linked_by("default", "second", is_staff=True))
    assert receipt.account_kept == "privileged"
    assert Recording.ran == []


@pytest.mark.parametrize("asks", ["default", "second"])
def test_an_audit_follows_if_any_asks_for_it(settings: Any, asks: str) -> None:
    """No request waits for it: a worker erases then."""
    chosen = {"default": Anonymising, "second": Anonymising, asks: Auditing}
    policies(settings, **chosen)
    receipt = erasure.erase_account(linked_by("default", "second"))
    assert receipt.erased_at is None
    assert erasure.retry_pending() == 1
    receipt.refresh_from_db()
    assert receipt.audit is not None


# A request by a code alone


@pytest.mark.parametrize("site", [Anonymising, Deleting])
@pytest.mark.parametrize("before", [False, True])
def test_a_strangers_code_never_erases_the_account(
    settings: Any, site: type, before: bool
) -> None:
    """Though the policy keeps nobody. It is not asked; with or without an own link beside it."""
    policies(settings, default=site, second=NeverKeeping)
    user = linked_by("default") if before else make_user()
    make_identity_by_code(user, subject="stranger", application="second")
    deliver("data.deletion_requested", subject="stranger", application="second")
    erasure.retry_pending()
    receipt = ErasureReceipt.objects.get()
    assert receipt.erased_at is not None
    assert receipt.account_kept == "older"
    assert receipt.counts["linkedidentity"] == 1
    user.refresh_from_db()
    assert user.is_active
    assert user.linked_identities.count() == int(before)
    assert Recording.ran == []


class NeverKeeping(Recording):
    def keeps_account(self, user: Any, *, made_for_identity: bool) -> bool:
        return False


def test_the_command_never_erases_the_account_for_a_code_alone(settings: Any) -> None:
    policies(settings, default=NeverKeeping)
    user = make_user()
    make_identity_by_code(user)
    receipt = erasure.erase_subject("default", "test", "subject-1")
    assert receipt.account_kept == "older"
    user.refresh_from_db()
    assert user.is_active


def test_a_full_sign_in_that_confirmed_the_code_erases_it(settings: Any) -> None:
    """If the policy keeps nobody: it is the owner's own wish then."""
    policies(settings, default=NeverKeeping)
    make_identity(make_user(), account_made=False)
    deliver("data.deletion_requested")
    erasure.retry_pending()
    assert ErasureReceipt.objects.get().account_kept == ""
    assert not User.objects.get().is_active


# Another way in


def test_the_policy_of_the_links_own_application_asks_for_another_way_in(
    settings: Any,
) -> None:
    """Not that of the default application."""
    policies(settings, default=Anonymising, second=Asking)
    identity = make_identity(make_user(), application="second")
    with pytest.raises(NoOtherWayIn):
        disconnecting.disconnect(identity)
    assert interventions.disconnect([identity]) == [identity]
    browser = browser_of(identity.user)
    browser.post(reverse("identity:disconnect", args=["second"]))
    browser.post(reverse("identity_api:disconnect", args=["second"]))
    assert LinkedIdentity.objects.exists()


def test_the_default_applications_policy_asks_nobody_else(settings: Any) -> None:
    policies(settings, default=Asking, second=Anonymising)
    identity = make_identity(make_user(), application="second")
    browser: Client = browser_of(identity.user)
    browser.post(reverse("identity:disconnect", args=["second"]))
    assert not LinkedIdentity.objects.exists()
