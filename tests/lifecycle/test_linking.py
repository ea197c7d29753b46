"""Linking: one decision table, one transaction, and few tries of codes."""

from functools import partial
from pathlib import Path

import pytest
from django.contrib.auth.models import AnonymousUser, Group, User
from django.db.models.signals import pre_save
from django.test import Client
from django.utils import timezone

from django_identity import signals
from django_identity.exceptions import FlowError, InvalidConnectCode
from django_identity.lifecycle.arriving import connect
from django_identity.lifecycle.arriving.decisions import DECISIONS, Subject
from django_identity.lifecycle.arriving.request import Arrival
from django_identity.models import (
    ConnectRedemption,
    Consent,
    LinkedIdentity,
    LinkedVia,
    StoredClaim,
    TokenGrant,
)
from django_identity.policy import IdentityPolicy
from tests.concurrency import at_once
from tests.deliveries import deliver
from tests.factories import LONG_AGO, make_identity, make_user
from tests.fake_service import refusal
from tests.lifecycle.conftest import Asked
from tests.lifecycle.grants import announced
from tests.sign_in import begin, come_back, is_signed_in, sign_in
from tests.views.connect.pages import browser_of, hand_in

pytestmark = pytest.mark.django_db(transaction=True)

ROOT = Path(__file__).resolve().parent.parent.parent
#: How the row is linked, of each state that has one.
STATES = {
    Subject.CONNECT: {"linked_via": LinkedVia.CONNECT},
    Subject.OAUTH: {},
    Subject.REVOKED: {"consent": Consent.REVOKED, "revoked_at": LONG_AGO},
    Subject.CONNECT_ELSEWHERE: {"linked_via": LinkedVia.CONNECT},
    Subject.OAUTH_ELSEWHERE: {},
}
ALL_ASKED = ("may_sign_up", "may_link", "may_sign_in")


#: How the subject is linked -> what follows a sign-in, a link, a renewal and a code: how it is
#: linked then and what the policy is asked, or the refusal. By hand, as a second opinion.
RULES = {
    Subject.NONE: (
        "oauth may_sign_up may_sign_in",
        "oauth may_link",
        "subject_changed",
        "connect may_link",
    ),
    Subject.HOLDS_ANOTHER: (
        "",
        "user_holds_another",
        "subject_changed",
        "user_holds_another",
    ),
    Subject.CONNECT: ("linked_by_code", "oauth may_link", "oauth may_link", "connect"),
    Subject.OAUTH: ("oauth may_sign_in", "oauth", "oauth", "oauth"),
    Subject.REVOKED: ("oauth may_sign_in", "oauth", "oauth", "linked_before"),
    Subject.CONNECT_ELSEWHERE: (
        "",
        "linked_by_code",
        "subject_changed",
        "subject_taken",
    ),
    Subject.OAUTH_ELSEWHERE: ("", "subject_taken", "subject_changed", "subject_taken"),
}
CASES = {
    (arrival, subject): rule
    for subject, rules in RULES.items()
    for arrival, rule in zip(Arrival, rules, strict=True)
    if rule
}


def write_rows(ada, bob, subject):
    if subject in STATES:
        owner = bob if subject.value.endswith("another account") else ada
        make_identity(owner, account_made=False, **STATES[subject])
    if subject is Subject.HOLDS_ANOTHER:
        make_identity(ada, subject="subject-2", consent=Consent.REVOKED)


@pytest.mark.parametrize("case", CASES, ids=" / ".join)
def test_each_row_of_the_table_decides_who_may_link(asking, case):
    """Each row of the table, through the pages."""
    arrival, subject = case
    ada, bob = make_user("ada"), make_user("bob")
    browser = Client() if arrival is Arrival.SIGN_IN else browser_of(ada)
    if arrival is Arrival.CODE:
        write_rows(ada, bob, subject)
        response = hand_in(browser)
    else:
        if arrival is Arrival.RENEW:
            make_identity(ada, subject="subject-3")
        state = begin(browser)
        LinkedIdentity.objects.all().delete()
        write_rows(ada, bob, subject)
        response = come_back(browser, state)
    asked = [name for name in Asked.names() if name in ALL_ASKED]
    then, *asks = CASES[case].split()
    if then not in LinkedVia.values:
        assert f"<code>{then}</code>" in response.content.decode()
        assert asked == []
        return

    identity = LinkedIdentity.objects.get(subject="subject-1")
    assert identity.consent == Consent.GRANTED
    assert identity.linked_via == then
    assert identity.revoked_at is None
    assert asked == asks


def test_every_case_is_in_the_table():
    """A sign-in is in no account, so nothing is of another one."""
    cases = {(arrival, each) for arrival, row in DECISIONS.items() for each in row}
    assert cases == CASES.keys()


class Refuses(IdentityPolicy):
    """No identity signs in."""

    def may_sign_in(self, user, **_proven):
        return False


def test_a_refused_sign_up_leaves_no_row_of_anybodys(service, use_policy):
    """Not even those that the site has written beside the account."""
    use_policy(Refuses)
    written = []

    def receive(instance, **_kwargs):
        written.append(Group.objects.create(name=f"the site's own {len(written)}"))

    for sender in (User, LinkedIdentity):
        pre_save.connect(receive, sender=sender, weak=False)
    browser = Client()
    assert "sign_in_not_allowed" in sign_in(browser).content.decode()
    assert len(written) > 1
    assert not is_signed_in(browser)
    for model in (Group, User, LinkedIdentity, StoredClaim, TokenGrant):
        assert not model._default_manager.exists()


@pytest.mark.parametrize(
    ("event_type", "is_known", "expected"),
    [
        ("kyc.rejected", False, ["rejected"]),
        ("kyc.rejected", True, ["rejected"]),
        ("claim.revoked", False, []),
        ("claim.revoked", True, [""]),
    ],
)
def test_a_level_that_an_event_changes_on_the_way_is_told_once(
    asking,
    event_type,
    expected,
    *,
    is_known,
):
    """By the event if the person is known, and else by the sign-in, if it changed at all."""
    if is_known:
        sign_in(Client())
    browser = Client()
    state = begin(browser)
    asking.meanwhile["claims"] = partial(deliver, event_type)
    with announced(signals.kyc_changed) as heard:
        come_back(browser, state)
    assert is_signed_in(browser)
    assert [each.kyc_status for each in heard] == expected


def test_a_revocation_that_was_known_before_the_button_keeps_nobody_out(service):
    """Even if its time-stamp is ahead of the site's clock."""
    sign_in(Client())
    deliver("consent.revoked", at=timezone.now() + timezone.timedelta(minutes=3))
    browser = Client()
    sign_in(browser)
    assert is_signed_in(browser)


def test_a_link_that_the_site_itself_revoked_is_one(service):
    """By a column alone: it stays, and the person comes back by it."""
    user = make_user()
    identity = make_identity(user, consent=Consent.REVOKED, kyc_status="", kyc_level="")
    browser = Client()
    with announced(signals.identity_linked) as told:
        sign_in(browser)
        sign_in(Client())
    identity.refresh_from_db()
    assert identity.consent == Consent.GRANTED
    assert identity.kyc_status == "verified"
    assert is_signed_in(browser)
    assert told == []


# Tries of codes in ten minutes: five for each user


INVALID = refusal("INVALID_CONNECT_CODE")


def redeem(user, number=0):
    return connect.redeem(f"CNX-AB12-{number:04}", user=user)


def tried(user, number):
    try:
        redeem(user, number)
    except (InvalidConnectCode, FlowError) as error:
        return error.code
    return ""


def test_five_tries_are_sent_and_the_sixth_waits(service):
    """It says how long, and uses up nobody else's. Ten minutes after each they are free again."""
    user = make_user()
    service.answers["request"] = INVALID
    for number in range(connect.MOST_TRIES):
        assert tried(user, number) == "invalid_connect_code"
    for number in range(6, 16):
        with pytest.raises(FlowError) as refused:
            redeem(user, number)
        assert 590 <= refused.value.retry_after <= 600
    assert service.calls("request") == connect.MOST_TRIES
    assert not ConnectRedemption.objects.filter(outcome="").exists()

    del service.answers["request"]
    ConnectRedemption.objects.update(expires_at=timezone.now())
    assert redeem(user, 20).consent == Consent.GRANTED


def test_tries_at_once_are_counted_too(service):
    """However many codes are handed in at the same moment, five are sent. Others have theirs.

    Handing the same code in again sends nothing, so it counts for nothing.
    """
    service.answers["request"] = INVALID
    user = make_user()
    outcomes = at_once([partial(tried, user, number) for number in range(12)])
    assert sorted(outcomes) == ["invalid_connect_code"] * 5 + ["too_many_tries"] * 7
    assert service.calls("request") == connect.MOST_TRIES
    del service.answers["request"]
    bob = make_user("bob")
    for _repeat in range(connect.MOST_TRIES + 1):
        assert redeem(bob, 20).consent == Consent.GRANTED


@pytest.mark.parametrize(
    "nobody",
    [AnonymousUser(), User(username="new"), None],
    ids=["anonymous", "unsaved", "none"],
)
def test_a_code_of_nobody_is_not_sent(service, nobody):
    """It would be spent, and verify no account."""
    with pytest.raises(ValueError, match="user model"):
        redeem(nobody)
    assert service.calls("request") == 0
