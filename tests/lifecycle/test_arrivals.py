"""What re-fetches, sign-ins and codes bring, and what they do not: anything older than is known.

An answer may come from a cache, and the service's clock may differ.
"""

import time
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from django_identity.lifecycle.leaving import disconnecting
from django_identity.models import AuthorizationRequest, LinkedIdentity, StoredClaim
from tests.credentials import issuer
from tests.deliveries import deliver
from tests.factories import make_grant, make_identity, make_identity_by_code, make_user
from tests.lifecycle.refetches import refetched
from tests.sign_in import begin, come_back, is_signed_in, sign_in
from tests.views.connect.pages import browser_of, hand_in

pytestmark = pytest.mark.django_db(transaction=True)


def proven():
    rows = StoredClaim.objects.exclude(valid_until=None).filter(revoked_at=None)
    return set(rows.values_list("claim_type", flat=True))


A_DAY = 86_400
A_MONTH = 30 * A_DAY
NAMES = {"A": "age_over_18", "U": "unique_human"}
CLAIMS = (*NAMES.values(),)


class Answer(NamedTuple):
    """``proves``, ``revokes``: letters of claims. ``at``: when the credential was issued, in
    seconds from now, or None without one. ``timed``: whether it says so, beside its end.
    """

    proves: str = ""
    at: int | None = 0
    revokes: str = ""
    timed: bool = True


class Revoked(NamedTuple):
    """An event about this claim, or about all of them."""

    claim: str
    at: float
    provider: str = ""


#: Each step, and the letters of the claims that are proven after it.
HISTORIES = {
    "a revoked claim counts again by a later credential": [
        (Revoked("A", -60.5), ""),
        (Answer("A", -62), ""),
        (Answer("A", -61), "A"),
    ],
    "and by one whose end tells its time": [
        (Revoked("A", -60.5), ""),
        (Answer("A", -62, timed=False), ""),
        (Answer("A", -61, timed=False), "A"),
    ],
    "an end that is too late tells no time": [
        (Revoked("A", -7200), ""),
        (Answer("A", 310, timed=False), ""),
        (Answer("A", A_MONTH, timed=False), ""),
    ],
    "a former one without a time, after a list that revokes": [
        (Answer("A", -60, timed=False), "A"),
        (Answer(at=None, revokes="A"), ""),
        (Answer("A", -60, timed=False), ""),
        (Answer("A", 100, timed=False), "A"),
    ],
    "a list that revokes is later than the stored credential": [
        (Answer("A", 240), "A"),
        (Answer("A", 240, revokes="A"), ""),
        (Answer("A", 240), ""),
        (Answer("A", 241), "A"),
        (Answer(at=None, revokes="A"), ""),
        (Answer("A", 241), ""),
    ],
    "the same answer after an empty one": [
        (Answer("A"), "A"),
        (Answer(at=None), ""),
        (Answer(at=None), ""),
        (Answer("A"), ""),
        (Answer("A", 1), "A"),
    ],
    "a revoked claim that is listed no more": [
        (Answer("A", -90), "A"),
        (Revoked("A", -60), ""),
        (Answer("", -80), ""),
        (Answer("", -50), ""),
        (Answer("A", -70), ""),
        (Answer("A", -40), "A"),
    ],
    "an older credential leaves the stored proof": [
        (Answer("A"), "A"),
        (Answer("U", -7200), "A"),
        (Answer("U", -7200, timed=False), "A"),
        (Answer("A", None), "A"),
    ],
    "one without a time leaves that of the newest": [
        (Answer("A"), "A"),
        (Answer("U", A_MONTH, timed=False), "U"),
        (Answer("A", -10), "U"),
    ],
    "an answer that cannot be used may revoke": [
        (Answer("AU"), "AU"),
        (Answer("A", -7200, revokes="U"), "A"),
        (Answer("", None, revokes="A"), ""),
    ],
    "revoked before it was stored, by another name of its provider": [
        (Answer("", -7200), ""),
        (Revoked("A", -600, "other"), ""),
        (Answer("AU", -1800), "U"),
        (Answer("AU", 0), "AU"),
    ],
    "the former credential after an event": [
        (Answer("A", 0), "A"),
        (Revoked("A", 0), ""),
        (Answer("A", 0), ""),
        (Answer("A", 2), "A"),
    ],
    "by a clock that is ahead": [
        (Answer("A", 240), "A"),
        (Revoked("A", 240), ""),
        (Answer("A", 240), ""),
        (Answer("A", 242), "A"),
    ],
    "all revoked before one was stored": [
        (Answer("", -7200), ""),
        (Revoked("", -600), ""),
        (Answer("AU", -1800), ""),
        (Answer("AU", 0), "AU"),
    ],
}


def listed(letters, *, revoked):
    return [
        {"claim_type": NAMES[each], "provider": "KYC", "revoked": revoked}
        for each in letters
    ]


def play(service, step, now):
    """From now on the service gives this answer."""
    valid = "".join(each for each in step.proves if each not in step.revokes)
    service.disclosed = {NAMES[each]: True for each in step.proves}
    at = now + (step.at or 0)
    service.payload = {"iat": at if step.timed else issuer.ABSENT, "exp": at + A_DAY}
    data = {
        "user_id": service.subject,
        "claims": listed(valid, revoked=False) + listed(step.revokes, revoked=True),
        "credential": None if step.at is None else service.credential(),
    }
    service.answers["claims"] = {"success": True, "data": data}


@pytest.mark.parametrize("history", HISTORIES.values(), ids=HISTORIES)
@pytest.mark.parametrize("way", ["re-fetch", "sign-in"])
def test_what_is_proven_after_each_step(service, way, history):
    past = timezone.now() - timedelta(seconds=1)
    make_grant(make_identity(make_user(), refetch_due_at=past, scopes=["claims:read"]))
    now = int(time.time())
    for number, (step, letters) in enumerate(history):
        if isinstance(step, Revoked):
            about = {"claim_type": NAMES[step.claim]} if step.claim else {}
            about |= {"provider": step.provider} if step.provider else {}
            at = datetime.fromtimestamp(now + step.at, UTC)
            deliver("claim.revoked", at=at, **about)
        else:
            play(service, step, now)
            if way == "re-fetch":
                refetched(LinkedIdentity.objects.get())
            else:
                assert sign_in(Client()).status_code == 302
        assert proven() == {NAMES[each] for each in letters}, number


def test_an_older_sign_in_that_ends_later_is_not_the_newest(service):
    """The events between the two stay superseded."""
    sign_in(Client())
    newest = LinkedIdentity.objects.get().signed_in_at
    browser = Client()
    state = begin(browser)
    AuthorizationRequest.objects.update(
        created_at=newest - timezone.timedelta(minutes=30),
    )
    come_back(browser, state)
    assert is_signed_in(browser)
    assert LinkedIdentity.objects.get().signed_in_at == newest


def test_an_answer_that_cannot_be_used_is_asked_for_again(service):
    """The row says why. A credential that is older could replay a claim that was revoked since."""
    sign_in(Client())
    service.payload = {"iat": int(time.time()) - 7200}
    sign_in(Client())
    row = LinkedIdentity.objects.get()
    assert row.last_error == "malformed_answer"
    assert row.refetch_failures == 0
    assert row.is_due
    service.payload = {}
    assert refetched(row) == "stored"
    assert LinkedIdentity.objects.get().last_error == ""


def test_a_code_brings_no_level_that_is_older_than_the_known_one(service):
    user, now = make_user(), timezone.now()
    make_identity_by_code(user, kyc_status="rejected", kyc_said_at=now)
    service.connect["issued_at"] = (now - timezone.timedelta(minutes=1)).isoformat()
    hand_in(browser_of(user))
    assert LinkedIdentity.objects.get().kyc_status == "rejected"


WAYS_IN = ["a new link", "a new account", "a first link", "a new consent"]


@pytest.mark.parametrize("way_in", WAYS_IN)
def test_an_older_credential_proves_nothing_by_any_way_in(service, way_in):
    """Nobody knows any more which claim was revoked, so none counts, but at a link that stayed."""
    now = int(time.time())
    service.payload["iat"] = now - 60
    service.disclosed = dict.fromkeys(CLAIMS, True)
    if way_in != "a first link":
        sign_in(Client())
    revoked_at = timezone.now() - timedelta(seconds=30)
    deliver("claim.revoked", at=revoked_at, claim_type="age_over_18")
    browser = Client()
    if way_in == "a new account":
        User.objects.get().delete()
    elif way_in == "a new link":
        User.objects.update(password="x")
        disconnecting.disconnect(LinkedIdentity.objects.get())
        browser = browser_of(User.objects.get())
    elif way_in == "a new consent":
        StoredClaim.objects.all().delete()
        deliver("consent.revoked")

    sign_in(browser)

    stays = {"unique_human"} if way_in == "a new consent" else set()
    assert proven() == stays
    assert refetched(LinkedIdentity.objects.get()) == "stored"
    assert proven() == stays
    service.payload["iat"] = now - 10
    assert refetched(LinkedIdentity.objects.get()) == "stored"
    assert proven() == {*CLAIMS}


def test_a_code_that_somebody_else_redeemed_is_used(service):
    """Also for a person who has an identity."""
    hand_in(browser_of(make_user()))
    eve = make_identity(make_user("eve"), subject="subject-2").user
    assert "connect_code_used" in hand_in(browser_of(eve)).content.decode()
