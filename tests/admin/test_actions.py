"""What operators do to identities and events: asked first, allowed by name, written down."""

import html
import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.test import override_settings
from django.urls import reverse
from django.utils import timezone

from django_identity.admin import actions, events, receipts
from django_identity.gates import claims_of
from django_identity.lifecycle.standing.standing import standing_of
from django_identity.models import Consent, ErasureReceipt, LinkedIdentity, TokenGrant
from django_identity.policy import IdentityPolicy
from tests import fake_service
from tests.admin.operators import (
    ADDRESS,
    EVENTS,
    IDENTITIES,
    IDENTITY,
    OVERVIEW,
    RECEIPT,
    RECEIPTS,
    page,
    press,
    staff,
)
from tests.factories import (
    LONG_AGO,
    again,
    make_claim,
    make_event,
    make_grant,
    make_identity,
    make_identity_by_code,
    make_user,
)
from tests.fake_service import FakeService

pytestmark = pytest.mark.django_db

ACTIONS = ("refetch", "revoke", "erase")


@pytest.fixture
def identity(service: FakeService) -> LinkedIdentity:
    """Somebody whom the service knows, with a live grant and nothing proven."""
    scopes = ["profile:read", "kyc:read", "claims:read"]
    made = make_identity(make_user("ada", email=ADDRESS), scopes=scopes)
    make_grant(made)
    return made


@pytest.mark.parametrize(
    ("action", "asked", "of_two", "cost"),
    [
        (
            "revoke",
            "Revoke ada at this site?",
            "Revoke 2 identities at this site?",
            "Gates close at once",
        ),
        (
            "disconnect",
            "Disconnect ada?",
            "Disconnect 2 identities?",
            "The link is deleted",
        ),
        ("erase", "Erase ada?", "", "Everything that this site holds"),
    ],
)
def test_what_cannot_be_undone_asks_first(
    operator,
    identity,
    service,
    action,
    asked,
    of_two,
    cost,
):
    other = make_identity(make_user("kemi"), subject="another")
    one = press(operator, action, identity).content.decode()
    several = press(operator, action, identity, other).content.decode()

    for words in (f"<h1>{asked}</h1>", ">ada<", ">Cancel</a>", f"<p>{cost}"):
        assert words in one
    assert not of_two or f"<h1>{of_two}</h1>" in several
    assert service.requests == []
    assert standing_of(identity.user).is_linked
    assert not LogEntry.objects.exists()


@pytest.mark.parametrize(
    ("action", "said", "is_linked"),
    [
        ("refetch", "Re-fetched.", True),
        ("revoke", "1 identity was revoked.", False),
        ("disconnect", "1 link was removed.", False),
        ("erase", "The person was erased.", False),
    ],
)
def test_an_action_is_done_at_once_and_said(
    operator,
    identity,
    service,
    action,
    said,
    is_linked,
):
    User.objects.filter(pk=identity.user_id).update(password="a password")

    press(operator, action, identity, confirmed="yes")

    assert said in page(operator, IDENTITIES)
    assert standing_of(again(identity.user)).is_linked is is_linked
    assert bool(claims_of(again(identity.user))) is is_linked
    assert ErasureReceipt.objects.exists() is (action == "erase")
    line = LogEntry.objects.get()
    written = f"{line.object_repr} {line.change_message}"
    assert not [word for word in (identity.subject, "ada", ADDRESS) if word in written]


def test_an_action_may_be_about_several(operator, identity, service):
    other = make_identity(make_user("b"), subject="b")
    gone = make_identity(make_user("gone"), subject="gone", consent=Consent.REVOKED)
    by_code = make_identity_by_code(make_user("by code"), subject="by-code")

    press(operator, "refetch", identity, other, gone, by_code)
    assert "Re-fetches that are due now: 2" in page(operator, IDENTITIES)
    press(operator, "erase", identity, other, confirmed="yes")
    assert "People are erased one at a time" in page(operator, IDENTITIES)

    due = LinkedIdentity.objects.filter(refetch_due_at__lte=timezone.now())
    assert {each.pk for each in due} == {identity.pk, other.pk}
    assert service.requests == []


def test_a_refetch_that_fails_says_why(operator, identity, service):
    service.answers["claims"] = fake_service.html("503 Service Unavailable")
    press(operator, "refetch", identity, confirmed="yes")
    text = page(operator, IDENTITIES)
    assert "The last re-fetch failed:" in text
    assert "could not be reached" in text
    assert LogEntry.objects.get().change_message == "Re-fetch now"


def test_a_newcomer_is_known_by_the_address(operator, service):
    """An account that the package made has a generated user name, which tells nobody anything."""
    made = make_identity(make_user(f"identity-{'a' * 32}", email=ADDRESS))
    assert f">{ADDRESS}<" in page(operator, IDENTITIES)
    history = operator.get(
        reverse("admin:django_identity_linkedidentity_history", args=[made.pk]),
    )
    assert f"test #{made.pk}" in history.content.decode()
    assert f"user #{made.user_id}" in page(staff("view_linkedidentity"), IDENTITIES)


def test_after_an_action_the_list_stands_as_it_was_filtered(operator, identity):
    """And so it does if the operator leaves the question."""
    filtered = f"{reverse(IDENTITIES)}?consent__exact=granted&q=ada"
    chosen = {"action": "revoke", "_selected_action": identity.pk}
    asked = operator.post(filtered, chosen).content.decode()
    assert f'href="{html.escape(filtered)}">Cancel' in asked
    confirmed = operator.post(filtered, {**chosen, "confirmed": "yes"})
    assert confirmed["Location"] == filtered


@pytest.mark.parametrize(
    ("action", "into", "most", "module"),
    [
        ("refetch", IDENTITIES, "MOST_REFETCHED", actions),
        ("replay", EVENTS, "MOST_REPLAYED", events),
        ("try_now", RECEIPTS, "TRIED_AT_ONCE", receipts),
    ],
)
def test_what_an_action_leaves_is_said(
    operator,
    identity,
    monkeypatch,
    action,
    into,
    most,
    module,
):
    """All of a list can be chosen, and an action does so many at once."""
    monkeypatch.setattr(module, most, 2)
    others = [make_identity(make_user(n), subject=n) for n in "bc"]
    for each in (identity, *others):
        make_event(each, "claim.issued")
        ErasureReceipt.objects.create(requested_at=timezone.now())
    left = "Only the first 2 were taken. Choose the others again."

    press(operator, action, identity, into=into, select_across="1")
    assert left in page(operator, into)
    press(operator, action, *others, into=into)
    assert left not in page(operator, into)


@pytest.mark.parametrize("action", ACTIONS)
def test_an_action_on_a_row_that_is_gone_does_nothing(operator, identity, action):
    LinkedIdentity.objects.filter(pk=identity.pk).delete()
    answer = press(operator, action, identity, confirmed="yes")
    assert answer.status_code == 302
    assert "identities at most" not in page(operator, IDENTITIES)
    assert not LogEntry.objects.exists()
    assert not ErasureReceipt.objects.exists()


def test_an_operator_removes_a_stranger_and_keeps_the_only_way_in(operator):
    later = make_identity(make_user("victim"), account_made=False)
    made = make_identity(make_user("ada"), subject="subject-2")
    made.user.set_unusable_password()
    made.user.save()
    press(operator, "disconnect", later, made, confirmed="yes")
    assert list(LinkedIdentity.objects.all()) == [made]
    text = page(operator, IDENTITIES)
    assert "1 link was removed." in text
    assert "The link of ada stays: it is the only way in to the account." in text


class Protecting(IdentityPolicy):
    """A site whose own part of an erasure fails."""

    def keeps_account(self, user: Any, *, made_for_identity: bool) -> bool:
        return False

    def erase_user(self, user: Any) -> None:
        raise RuntimeError("a loan is open")


def test_a_pending_erasure_is_marked_and_tried_now(operator, identity, service):
    given = service.settings(POLICY=f"{__name__}.Protecting")
    with override_settings(DJANGO_IDENTITY=given):
        press(operator, "erase", identity, confirmed="yes")
        receipt = ErasureReceipt.objects.get()
        assert "still pending" in LogEntry.objects.get().change_message
        ErasureReceipt.objects.update(requested_at=LONG_AGO)
        assert "erasures that are not done: 1" in page(operator, OVERVIEW)
        press(operator, "try_now", receipt, into=RECEIPTS)
        text = page(operator, RECEIPTS)
        assert "1 erasure is still pending." in text
        assert "done." not in text
        receipt.refresh_from_db()
        assert receipt.attempts == 2
    press(operator, "try_now", receipt, into=RECEIPTS)
    assert "1 erasure is done." in page(operator, RECEIPTS)
    text = page(operator, RECEIPT, receipt.pk)

    assert "Try now" not in text
    assert "Connection: 1" in text
    assert "Events: 0" in text


def test_a_replay_makes_the_handlers_due(operator, identity):
    handled = {"attempts": 8, "handled_by": ["shop.handlers.first"]}
    event = make_event(identity, "claim.issued", outcome="failed", **handled)
    leased = {"next_attempt_at": timezone.now() + timedelta(minutes=9), "attempts": 2}
    running = make_event(identity, "claim.issued", **leased)
    empty = make_event(identity, "claim.issued", attempts=8, event_id="", payload=None)
    press(operator, "replay", event, running, empty, into=EVENTS)
    assert "2 events were left out" in page(operator, EVENTS)
    for each in (event, running, empty):
        each.refresh_from_db()
    assert event.attempts == 0
    assert event.handled_at is None
    assert event.handled_by == []
    assert event.next_attempt_at is not None
    assert running.next_attempt_at == leased["next_attempt_at"]
    assert empty.attempts == 8


def text_of(markup: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", markup).split())


@pytest.mark.parametrize("grant", ["live", "dead", "none"])
def test_a_refetch_is_offered_where_it_can_work(operator, identity, grant):
    if grant == "none":
        TokenGrant.objects.all().delete()
    TokenGrant.objects.update(needs_reauthorization=grant == "dead")
    shown = page(operator, IDENTITY, identity.pk)
    assert ("Re-fetch now</button>" in shown) is (grant == "live")


def test_a_pending_erasure_says_what_to_do(operator, identity):
    soon = timezone.now() + timedelta(hours=1, minutes=1)
    receipt = ErasureReceipt.objects.create(
        account=str(identity.user_id),
        requested_at=timezone.now(),
        error="BillingSystemDown",
        next_attempt_at=soon,
    )

    shown = text_of(page(operator, RECEIPT, receipt.pk))
    looked_at = page(staff("view_erasurereceipt"), RECEIPT, receipt.pk)

    for words in (
        "BillingSystemDown",
        "Done: the identity with its tokens",
        "Pending: what the site",
        f"identity.erasure.failed, row {receipt.pk}.",
        "Try now",
        "by itself: in 1 hour.",
        "The account: ada",
    ):
        assert words in shown, words
    # Nobody is told to press a button that is not there.
    assert not re.search("The account:|Try now", looked_at)


@pytest.mark.parametrize(
    ("fields", "policy", "fate"),
    [
        ({}, {}, "The account is emptied and disabled."),
        ({}, {"erasure": "delete"}, "The account is deleted."),
        ({"account_made": False}, {}, "The account stays. It is older than the link."),
        (
            {},
            {"keeps_account": lambda *_, **__: True},
            "The account stays. The site's policy",
        ),
    ],
)
def test_an_erasure_says_beforehand_what_it_does(
    operator,
    monkeypatch,
    fields,
    policy,
    fate,
):
    identity = make_identity(make_user("kemi"), **fields)
    make_claim(identity)
    for name, value in policy.items():
        monkeypatch.setattr(IdentityPolicy, name, value)
    asked = html.unescape(text_of(press(operator, "erase", identity).content.decode()))
    assert fate in asked
    assert "Proofs: 1" in asked
