"""Erasure: which account goes with its identity, and which one stays."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User, UserManager
from django.core.management import CommandError, call_command
from django.db.models import QuerySet
from django.test import Client

from django_identity.lifecycle.erasure import erasure
from django_identity.lifecycle.events import receipts
from django_identity.models import (
    AccountKept,
    ErasureReceipt,
    LinkedIdentity,
    StoredClaim,
    digest,
)
from django_identity.policy import IdentityPolicy
from tests.deliveries import deliver
from tests.faces.conftest import service, sign_in
from tests.hostile import HostileService
from tests.records import make_claim, make_identity, make_user

__all__ = ["service"]

pytestmark = pytest.mark.django_db(transaction=True)


def erase() -> ErasureReceipt:
    deliver("data.deletion_requested", subject="subject-1")
    erasure.retry_pending()
    return ErasureReceipt.objects.earliest("pk")


def set_policy(settings: Any, name: str) -> None:
    given = settings.DJANGO_IDENTITY["default"]
    settings.DJANGO_IDENTITY = {"default": {**given, "POLICY": f"{__name__}.{name}"}}


def test_an_older_account_keeps_its_way_in() -> None:
    """The person had it before the link: what is ours goes, and the receipt says that it stays."""
    ada = make_user(email="ada@example.org", first_name="Augusta")
    make_claim(make_identity(ada, account_made=False))
    browser = Client()
    browser.force_login(ada)
    receipt = erase()
    assert (receipt.account_kept, receipt.counts["user"]) == (AccountKept.OLDER, 0)
    assert receipt.erased_at is not None
    assert not LinkedIdentity.objects.exists()
    assert not StoredClaim.objects.exists()
    ada.refresh_from_db()
    assert (ada.is_active, ada.email, ada.check_password("a password")) == (
        True, "ada@example.org", True,
    )  # fmt: skip
    assert "_auth_user_id" in browser.session


@pytest.mark.parametrize("mark", ["is_staff", "is_superuser"])
def test_an_operators_account_keeps_its_way_in(mark: str) -> None:
    """The service's word must not take a site's administrator away."""
    ada = make_user(**{mark: True})
    make_identity(ada)
    assert erase().account_kept == AccountKept.PRIVILEGED
    ada.refresh_from_db()
    assert ada.is_active


class ErasesAll(IdentityPolicy):
    def keeps_account(self, user: Any, *, made_for_identity: bool) -> bool:
        return False


class ErasesNone(IdentityPolicy):
    def keeps_account(self, user: Any, *, made_for_identity: bool) -> bool:
        return True


def test_the_policy_may_decide_otherwise(settings: Any) -> None:
    set_policy(settings, "ErasesAll")
    ada = make_user(is_staff=True)
    make_identity(ada, account_made=False)
    assert erase().account_kept == ""
    ada.refresh_from_db()
    assert not ada.is_active


def test_the_policy_may_keep_every_account(settings: Any) -> None:
    set_policy(settings, "ErasesNone")
    make_identity(make_user())
    assert erase().account_kept == AccountKept.POLICY
    assert User.objects.get().is_active


def test_an_account_made_by_a_sign_in_goes_with_it(service: HostileService, settings: Any) -> None:
    """And a person who signed in to link an older account keeps that."""
    given = {**service.settings(), "WEBHOOK_SECRETS": ["a-webhook-secret-for-tests-alone"]}
    settings.DJANGO_IDENTITY = {"default": given}
    sign_in(Client())
    assert LinkedIdentity.objects.get().account_made
    erase()
    assert not User.objects.get().is_active


class Visible(UserManager["User"]):
    def get_queryset(self) -> Any:
        return super().get_queryset().exclude(username="banned")


@pytest.fixture
def banned() -> Iterator[User]:
    """An account that the user model's own manager hides."""
    user = make_user("banned", email="banned@example.org")
    make_identity(user)
    hiding = Visible()
    hiding.model = User
    kept = User._meta.__dict__.copy()
    User._meta.__dict__.update(default_manager=hiding)
    yield user
    User._meta.__dict__.clear()
    User._meta.__dict__.update(kept)


def test_a_hidden_account_is_erased_too(banned: User) -> None:
    """A ban must not keep a person's data: the receipt would say that it is gone."""
    receipt = erase()
    [(is_active, email)] = all_accounts()
    assert (receipt.counts["user"], is_active, email) == (1, False, "")


def all_accounts() -> list[tuple[bool, str]]:
    return list(QuerySet(User).values_list("is_active", "email"))


class Deletes(IdentityPolicy):
    erasure = "delete"


def test_a_delete_that_only_hides_closes_no_receipt(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A soft delete leaves everything: the receipt stays pending and says why."""
    set_policy(settings, "Deletes")
    make_identity(make_user())
    monkeypatch.setattr(User, "delete", lambda user: None)
    receipt = erase()
    assert (receipt.erased_at, receipt.error) == (None, "AccountStillThere")
    assert LinkedIdentity.objects.exists()


def test_each_subject_of_an_erased_account_leaves_a_receipt(settings: Any) -> None:
    """By it a later event about that subject is recognised, and names nobody."""
    given = settings.DJANGO_IDENTITY["default"]
    settings.DJANGO_IDENTITY = {"default": given, "shop": {**given, "CLIENT_ID": "shop-client"}}
    ada = make_user()
    make_identity(ada)
    make_identity(ada, subject="her-other", application="shop")
    erase()
    [other] = receipts.of_subject(digest("shop", "test", "her-other"))
    assert (other.application, other.erased_at is not None) == ("shop", True)
    assert other.counts["linkedidentity"] == 1


def test_the_command_says_that_the_account_stays() -> None:
    make_identity(make_user(), account_made=False)
    said = io.StringIO()
    call_command("identity_erase", "subject-1", yes=True, stdout=said)
    assert "The account stays" in said.getvalue()


def test_people_of_an_application_that_is_gone_can_be_erased() -> None:
    """Its alias was renamed, or it is of the other environment by now: what is stored decides."""
    make_identity(make_user(), application="renamed", environment="live")
    said = io.StringIO()
    where = {"application": "renamed", "environment": "live"}
    call_command("identity_erase", "subject-1", **where, yes=True, stdout=said)
    assert not LinkedIdentity.objects.exists()
    assert not User.objects.get().is_active
    [receipt] = receipts.of_subject(digest("renamed", "live", "subject-1"))
    assert receipt.erased_at is not None


def test_an_application_that_never_was_is_a_mistake() -> None:
    with pytest.raises(CommandError, match="no application"):
        call_command("identity_erase", "subject-1", application="mistyped", yes=True)


def test_an_account_that_cannot_be_disabled_is_erased(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user model may have no ``is_active``: its emptied account does not count as kept."""
    make_identity(make_user(email="ada@example.org"))
    monkeypatch.setattr(User, "is_active", True)
    kept = [field for field in User._meta.concrete_fields if field.name != "is_active"]
    monkeypatch.setitem(User._meta.__dict__, "concrete_fields", kept)
    receipt = erase()
    assert (receipt.account_kept, receipt.counts["user"]) == ("", 1)
