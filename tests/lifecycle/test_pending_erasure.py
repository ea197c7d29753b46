"""While an erasure is pending, and what the site or somebody else does meanwhile."""

import io
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from django_identity.exceptions import LinkingRefused
from django_identity.lifecycle.arriving import connect
from django_identity.lifecycle.ground import withdrawal
from django_identity.lifecycle.leaving import erasure
from django_identity.lifecycle.operators import interventions
from django_identity.models import ErasureReceipt, LinkedIdentity, WebhookEvent
from django_identity.policy import IdentityPolicy
from tests.deliveries import deliver
from tests.factories import make_event, make_identity, make_identity_by_code, make_user
from tests.views.connect.pages import browser_of

pytestmark = pytest.mark.django_db(transaction=True)


class Failing(IdentityPolicy):
    """Its part raises until it is mended."""

    is_mended = False

    def erase_user(self, user: Any) -> None:
        if not self.is_mended:
            raise RuntimeError
        super().erase_user(user)


class NeverKeeping(IdentityPolicy):
    def keeps_account(self, user: Any, *, made_for_identity: bool) -> bool:
        return False


def with_policy(settings: Any, policy: type) -> None:
    given = settings.DJANGO_IDENTITY
    path = f"{__name__}.{policy.__name__}"
    settings.DJANGO_IDENTITY = {**given, "POLICY": path}


def make_due() -> None:
    ErasureReceipt.objects.filter(erased_at=None).update(next_attempt_at=timezone.now())


def done() -> ErasureReceipt:
    """The receipt, after a worker has come by."""
    make_due()
    erasure.retry_pending()
    receipt = ErasureReceipt.objects.get()
    assert receipt.erased_at is not None
    return receipt


def asked_by_the_service(identity: LinkedIdentity) -> None:
    deliver("data.deletion_requested", subject=identity.subject)


def asked_by_the_person(identity: LinkedIdentity) -> None:
    """Pending, because the site's part raises."""
    assert erasure.erase_account(identity.user).erased_at is None


ASKED = [asked_by_the_service, asked_by_the_person]
Asked = Callable[[LinkedIdentity], None]


@pytest.fixture
def failing(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """The site's part raises. Call it to mend the policy."""
    with_policy(settings, Failing)
    return lambda: monkeypatch.setattr(Failing, "is_mended", True)


# Nothing of ours deletes its row


@pytest.mark.parametrize("by", ["service", "operator"])
@pytest.mark.parametrize("link", [make_identity, make_identity_by_code])
def test_a_revocation_empties_what_is_being_erased(
    settings: Any, link: Any, by: str
) -> None:
    """A link by code too: deleted, it would close the receipt with nothing done."""
    identity = link(make_user())
    make_event(identity, "kyc.verified")
    deliver("data.deletion_requested")
    if by == "service":
        deliver("consent.revoked")
    else:
        assert interventions.revoke([identity]) == 1
    assert LinkedIdentity.objects.get().consent == "revoked"
    receipt = done()
    assert receipt.counts["linkedidentity"] == 1
    assert receipt.counts["webhookevent"] >= 2
    assert not LinkedIdentity.objects.exists()
    assert not WebhookEvent.objects.exclude(subject="").exists()


@pytest.mark.parametrize("by", ["person", "api", "undo", "operator"])
def test_nobody_disconnects_what_is_being_erased(by: str) -> None:
    """The person, their undo, and the operator are refused."""
    user = make_user()
    identity = make_identity_by_code(user)
    deliver("data.deletion_requested")
    browser = browser_of(user)
    if by == "person":
        assert browser.post(reverse("identity:disconnect")).status_code == 409
    elif by == "api":
        assert browser.post(reverse("identity_api:disconnect")).status_code == 409
    elif by == "undo":
        assert browser.post(reverse("identity:connected")).status_code == 409
        with pytest.raises(LinkingRefused):
            connect.undo(user)
    else:
        assert interventions.disconnect([identity]) == [identity]
    assert LinkedIdentity.objects.exists()
    assert done().counts["linkedidentity"] == 1


# The site deletes first


@pytest.mark.parametrize("ask", ASKED)
@pytest.mark.parametrize("by_query", [True, False])
def test_the_account_is_treated_if_the_site_deletes_the_identity(
    failing: Callable[[], None], ask: Asked, by_query: bool
) -> None:
    """The receipt remembers the account, and that the identity made it."""
    identity = make_identity(make_user())
    ask(identity)
    if by_query:
        LinkedIdentity.objects.all().delete()
    else:
        LinkedIdentity.objects.get().delete()
    failing()
    receipt = done()
    assert (receipt.account_kept, receipt.counts["user"]) == ("", 1)
    assert not receipt.account_was_gone
    assert not User.objects.get().is_active


def test_an_older_account_stays_if_the_site_deletes_the_identity() -> None:
    identity = make_identity(make_user(), account_made=False)
    asked_by_the_service(identity)
    LinkedIdentity.objects.all().delete()
    assert done().account_kept == "older"
    assert User.objects.get().is_active


def test_nobody_is_linked_to_an_account_that_is_still_to_be_treated(
    failing: Callable[[], None],
) -> None:
    """The identity is gone, and the account's turn comes."""
    user = make_user()
    asked_by_the_service(make_identity(user))
    LinkedIdentity.objects.all().delete()
    assert withdrawal.is_being_erased(make_identity(user, consent="revoked"))


@pytest.mark.parametrize("ask", ASKED)
@pytest.mark.parametrize("by_query", [True, False])
def test_the_receipt_says_that_the_site_deleted_the_account(
    failing: Callable[[], None], ask: Asked, by_query: bool
) -> None:
    """The policy's ``erase_user`` did not run, so data may be left. The doctor lists it."""
    identity = make_identity(make_user())
    ask(identity)
    if by_query:
        User.objects.all().delete()
    else:
        User.objects.get().delete()
    receipt = done()
    assert receipt.account_was_gone
    assert (receipt.account_kept, receipt.counts["user"]) == ("", 0)
    assert "accounts that the site deleted before erase_user ran: 1" in doctor()


def test_a_deletion_by_the_site_that_rolls_back_leaves_the_request(
    failing: Callable[[], None],
) -> None:
    user = make_user()
    asked_by_the_service(make_identity(user))
    with pytest.raises(KeyError):
        roll_back_a_deletion(user)
    failing()
    receipt = done()
    assert not receipt.account_was_gone
    assert receipt.counts["user"] == 1


def roll_back_a_deletion(user: User) -> None:
    with transaction.atomic():
        user.delete()
        raise KeyError


def test_a_request_by_code_is_not_about_the_account() -> None:
    """Not even after the site has deleted link or account."""
    make_identity_by_code(make_user())
    deliver("data.deletion_requested")
    receipt = ErasureReceipt.objects.get()
    assert receipt.user_id is None
    LinkedIdentity.objects.all().delete()
    receipt = done()
    assert (receipt.account_kept, receipt.account_was_gone) == ("older", False)
    assert User.objects.get().is_active


def test_two_requests_for_one_account_end_together(failing: Callable[[], None]) -> None:
    """The second one would find an account that is gone."""
    identity = make_identity(make_user())
    asked_by_the_service(identity)
    asked_by_the_person(identity)
    failing()
    make_due()
    assert erasure.retry_pending() == 1
    receipts = ErasureReceipt.objects.all()
    assert [each.erased_at is not None for each in receipts] == [True, True]
    assert not any(each.account_was_gone for each in receipts)


@pytest.mark.parametrize("ask", ASKED)
def test_a_receipt_that_is_done_points_at_nobody(
    failing: Callable[[], None], ask: Asked
) -> None:
    """No key, no digest, no id of an event and no text of the person."""
    user = make_user()
    identity = make_identity(user)
    ask(identity)
    failing()
    receipt = done()
    assert (receipt.user_id, receipt.identity_id) == (None, None)
    held = [
        str(getattr(receipt, each.attname)) for each in receipt._meta.concrete_fields
    ]
    known = (identity.subject, identity.subject_digest, "evt_", "ada")
    assert [text for text in held if any(part in text for part in known)] == []


# What an operator sees


def doctor() -> str:
    out = io.StringIO()
    with suppress(CommandError, SystemExit):
        call_command("identity_doctor", stdout=out)
    return out.getvalue()


def test_the_doctor_lists_what_sql_left() -> None:
    """Events with content of somebody who is not linked."""
    identity = make_identity(make_user())
    make_event(identity, "kyc.verified")
    assert "not linked" not in doctor()
    LinkedIdentity.objects.filter(pk=identity.pk)._raw_delete(connection.alias)
    assert "events with content of somebody who is not linked: 1" in doctor()
    call_command("identity_erase", identity.subject, "--yes", stdout=io.StringIO())
    assert "not linked" not in doctor()


@pytest.mark.parametrize("ask", ASKED)
def test_an_operator_sees_whom_a_pending_erasure_is_about(
    failing: Callable[[], None], ask: Asked
) -> None:
    """The subject that the service named, or the identity of the account; then nobody."""
    identity = make_identity(make_user())
    make_identity(make_user("other"), subject="subject-2")
    ask(identity)
    assert interventions.concerned_by(ErasureReceipt.objects.get()).get() == identity
    failing()
    assert not interventions.concerned_by(done()).exists()


def test_the_command_says_that_the_account_was_gone(
    failing: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the site deletes it while the operator waits."""
    user = make_user()
    make_identity(user)
    before = erasure.attempt

    def late(*given: Any, **more: Any) -> bool:
        User.objects.all().delete()
        return before(*given, **more)

    monkeypatch.setattr(erasure, "attempt", late)
    out = io.StringIO()
    call_command("identity_erase", "subject-1", "--yes", stdout=out)
    assert "erase_user did not run" in out.getvalue()


def test_the_admin_shows_it(admin_client: Client) -> None:
    receipt = ErasureReceipt.objects.create(
        requested_at=timezone.now(),
        erased_at=timezone.now(),
        account_was_gone=True,
    )
    name = "admin:django_identity_erasurereceipt_change"
    page = admin_client.get(reverse(name, args=[receipt.pk])).content.decode()
    assert "Account deleted before" in page


# The site moves the identity


@pytest.mark.parametrize(("is_gone", "kept"), [(False, ""), (True, "older")])
def test_an_identity_that_the_site_has_moved_is_erased(
    is_gone: bool, kept: str
) -> None:
    """The account that it came with goes, and the one that took it over stays."""
    former = make_user("former")
    survivor = make_user("survivor")
    identity = make_identity(former, account_made=True)
    make_event(identity, "kyc.verified")
    asked_by_the_service(identity)
    LinkedIdentity.objects.update(user=survivor)
    if is_gone:
        former.delete()
    receipt = done()
    assert (receipt.counts["linkedidentity"], receipt.account_kept) == (1, kept)
    assert not LinkedIdentity.objects.exists()
    assert not WebhookEvent.objects.exclude(subject="").exists()
    assert not User.objects.filter(username="former").exists()
    assert User.objects.get(username="survivor").is_active
