"""What operators do to identities and events: asked first, allowed by name, written down."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client, override_settings
from django.urls import reverse
from django.utils import timezone

from django_identity.lifecycle.requirements import Requirement
from django_identity.lifecycle.standing import standing_of
from django_identity.models import (
    Consent,
    ErasureReceipt,
    LinkedIdentity,
    StoredClaim,
    TokenGrant,
)
from django_identity.policy import IdentityPolicy
from tests.admin.operators import (
    EVENTS,
    IDENTITIES,
    IDENTITY,
    OVERVIEW,
    RECEIPT,
    RECEIPTS,
    page,
    press,
    said,
    staff,
    still_there,
    superuser,
)
from tests.factories import make_claim, make_event, make_grant, make_identity, make_user
from tests.fake_service import FakeService, html

pytestmark = pytest.mark.django_db

SUBJECT = "subject-1"
ADDRESS = "ada@example.org"
ACTIONS = ("refetch", "revoke", "erase")
WEBHOOK_SECRET = "a-webhook-secret-for-tests-alone"


@pytest.fixture
def operator() -> Client:
    return superuser()


@pytest.fixture
def identity(service: FakeService) -> LinkedIdentity:
    """Somebody whom the service knows, with a live grant and nothing proven."""
    made = make_identity(
        make_user("ada", email="ada@example.org"), subject=SUBJECT,
        scopes=["profile:read", "kyc:read", "claims:read"],
    )  # fmt: skip
    make_grant(made)
    return made


@pytest.mark.parametrize("action", ["revoke", "disconnect", "erase"])
def test_what_cannot_be_undone_asks_first(
    operator: Client, identity: LinkedIdentity, service: FakeService, action: str
) -> None:
    """Without the confirmation nothing happens but a page, which names the person."""
    question = press(operator, action, identity)
    assert question.status_code == 200
    assert "ada" in question.content.decode()
    assert service.requests == []
    assert standing_of(identity.user).is_linked
    assert not LogEntry.objects.exists()


@pytest.mark.parametrize("action", ACTIONS)
def test_an_action_needs_its_own_permission(
    identity: LinkedIdentity, service: FakeService, action: str
) -> None:
    """Every permission but this one is not enough, and the button is not shown."""
    others = [other for other in ACTIONS if other != action]
    allowed = [f"{other.partition('_')[0]}_linkedidentity" for other in others]
    browser = staff("view_linkedidentity", *allowed)
    text = page(browser, IDENTITY, identity.pk)
    assert f'value="{action}"' not in text
    assert all(f'value="{other}"' in text for other in others)
    press(browser, action, identity, confirmed="yes")
    assert service.requests == []
    assert standing_of(identity.user).is_linked
    assert not LogEntry.objects.exists()


def test_a_refetch_opens_the_gate(operator: Client, identity: LinkedIdentity) -> None:
    """The claims are there when the page is, and the message says how many were fetched."""
    answer = press(operator, "refetch", identity, confirmed="yes")
    assert answer["Location"] == reverse(IDENTITY, args=[identity.pk])
    assert "Re-fetched." in said(operator)
    assert standing_of(identity.user).shortfall(Requirement("age_over_18")) is None


def test_a_refetch_that_fails_says_why(
    operator: Client, identity: LinkedIdentity, service: FakeService
) -> None:
    """In words, and the identity keeps what it had."""
    make_claim(identity)
    service.answers["claims"] = html("503 Service Unavailable")
    press(operator, "refetch", identity, confirmed="yes")
    text = said(operator)
    assert "The last re-fetch failed:" in text
    assert "could not be reached" in text
    assert standing_of(identity.user).shortfall(Requirement("age_over_18")) is None


def test_a_refetch_of_several_makes_them_due(
    operator: Client, identity: LinkedIdentity, service: FakeService
) -> None:
    """Those without consent excepted; nothing is fetched while the operator waits."""
    other = make_identity(make_user("b"), subject="b")
    gone = make_identity(make_user("gone"), subject="gone", consent=Consent.REVOKED)
    press(operator, "refetch", identity, other, gone)
    assert "Re-fetches that are due now: 2" in said(operator)
    due = LinkedIdentity.objects.filter(refetch_due_at__lte=timezone.now())
    assert {each.pk for each in due} == {identity.pk, other.pk}
    assert service.requests == []


def test_too_many_are_refused(operator: Client, identity: LinkedIdentity) -> None:
    """One at a time is erased."""
    other = make_identity(make_user("b"), subject="another")
    press(operator, "erase", identity, other, confirmed="yes")
    assert "Choose 1 identity." in said(operator)
    assert still_there(identity)


def test_a_revocation_is_at_once(operator: Client, identity: LinkedIdentity) -> None:
    """Gates closed, grant and credential gone; the identity itself stays to be looked at."""
    make_claim(identity)
    press(operator, "revoke", identity, confirmed="yes")
    assert "1 identity was revoked." in said(operator)
    assert not standing_of(identity.user).is_linked
    assert not TokenGrant.objects.exists()
    assert not StoredClaim.objects.exclude(value=None).exists()
    press(operator, "revoke", identity, confirmed="yes")
    assert "Consent revoked" in page(operator, IDENTITY, identity.pk)


def test_an_erasure_says_what_goes(operator: Client, identity: LinkedIdentity) -> None:
    """The person by name, what becomes of the account, and a way out."""
    text = press(operator, "erase", identity).content.decode()
    assert ">ada<" in text
    assert "The account is treated as the site&#x27;s policy says" in text
    assert ">Cancel</a>" in text


def test_a_revoked_identity_offers_no_refetch(operator: Client, identity: LinkedIdentity) -> None:
    """There is nothing to fetch, to check or to revoke."""
    press(operator, "revoke", identity, confirmed="yes")
    text = page(operator, IDENTITY, identity.pk)
    assert 'value="refetch"' not in text
    assert 'value="erase"' in text
    assert "ended by this site on" in text


def test_a_newcomer_is_known_by_the_address(operator: Client, service: FakeService) -> None:
    """An account that the package made has a generated user name, which tells nobody anything."""
    made = make_identity(make_user(f"identity-{'a' * 32}", email=ADDRESS))
    assert f">{ADDRESS}<" in page(operator, IDENTITIES)
    history = operator.get(reverse("admin:django_identity_linkedidentity_history", args=[made.pk]))
    assert f"default/test #{made.pk}" in history.content.decode()
    assert f"user #{made.user_id}" in page(staff("view_linkedidentity"), IDENTITIES)


def test_an_erasure_leaves_a_receipt(operator: Client, identity: LinkedIdentity) -> None:
    """Identity, grant and claims are gone; the receipt and the log name nobody."""
    make_claim(identity)
    press(operator, "erase", identity, confirmed="yes")
    assert "The person was erased." in said(operator)
    assert not LinkedIdentity.objects.exists()
    receipt = ErasureReceipt.objects.get()
    assert receipt.erased_at is not None
    assert (receipt.identity_id, receipt.user_id) == (None, None)


def test_what_was_done_is_written_down_without_anybodys_data(
    operator: Client, identity: LinkedIdentity
) -> None:
    """Django's log says who did what to which row: no subject, name or address."""
    event = make_event(identity, "claim.issued")
    for action in ACTIONS[:3]:
        press(operator, action, identity, confirmed="yes")
    press(operator, "replay", event, into=EVENTS, confirmed="yes")
    press(operator, "erase", identity, confirmed="yes")
    lines = [f"{line.object_repr} {line.change_message}" for line in LogEntry.objects.all()]
    assert len(lines) == 4
    for personal in (SUBJECT, "ada", "example.org", "event-0"):
        assert not any(personal in line for line in lines)


@pytest.mark.parametrize("action", ACTIONS)
def test_an_action_on_a_row_that_is_gone_does_nothing(
    operator: Client, identity: LinkedIdentity, action: str
) -> None:
    """Somebody erased the person while the list or the question stood open."""
    LinkedIdentity.objects.filter(pk=identity.pk).delete()
    assert press(operator, action, identity, confirmed="yes").status_code == 302
    assert not LogEntry.objects.exists()
    assert not ErasureReceipt.objects.exists()


def test_an_operator_removes_a_stranger_and_keeps_the_only_way_in(operator: Client) -> None:
    """A later link always goes; the one that made the account stays without another way in."""
    later = make_identity(make_user("victim"), account_made=False)
    made = make_identity(make_user("ada"), subject="subject-2")
    made.user.set_unusable_password()
    made.user.save()
    chosen = {"action": "disconnect", "_selected_action": [later.pk, made.pk], "confirmed": "yes"}
    operator.post("/admin/django_identity/linkedidentity/", chosen)
    assert list(LinkedIdentity.objects.all()) == [made]
    text = said(operator)
    assert "1 link was removed." in text
    assert "The link of ada stays: it is the only way in to the account." in text


class Protecting(IdentityPolicy):
    """A site whose own part of an erasure fails until it is mended."""

    is_mended = False

    def keeps_account(self, user: Any, *, made_for_identity: bool) -> bool:
        return False

    def erase_user(self, user: Any) -> None:
        if not self.is_mended:
            raise RuntimeError("a loan is open")
        super().erase_user(user)


def test_a_pending_erasure_is_marked_and_tried_now(
    operator: Client, identity: LinkedIdentity, service: FakeService
) -> None:
    """On the list, the person's page and the overview; the receipt then says what it covered."""
    given = {"default": service.settings(POLICY=f"{__name__}.Protecting")}
    with override_settings(DJANGO_IDENTITY=given):
        press(operator, "erase", identity, confirmed="yes")
        receipt = ErasureReceipt.objects.get()
        assert "erasure pending" in page(operator, IDENTITIES)
        assert "An erasure of this person is pending." in page(operator, IDENTITY, identity.pk)
        assert "Erasures are pending." in page(operator, OVERVIEW)
        press(operator, "try_now", receipt, into=RECEIPTS)
        assert "1 erasure is still pending." in page(operator, RECEIPTS)
        reader = staff("view_erasurereceipt")
        press(reader, "try_now", receipt, into=RECEIPTS)
        receipt.refresh_from_db()
        assert receipt.attempts == 2, "without the permission nothing is tried"
        Protecting.is_mended = True
        press(operator, "try_now", receipt, into=RECEIPTS)
        Protecting.is_mended = False
        assert "1 erasure is done." in page(operator, RECEIPTS)
        text = page(operator, RECEIPT, receipt.pk)
    assert "Try now" not in text
    assert "Linked identities: 1" in text
    assert "Events: 0" in text
