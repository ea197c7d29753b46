"""The site's policy is asked with what opens gates, and never with the credential itself."""

from datetime import timedelta
from functools import partial
from typing import Any, ClassVar

import pytest
from django.contrib.auth.models import User
from django.http import HttpResponseRedirect
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from django_identity.exceptions import ConfigurationError
from django_identity.gates import claims_of
from django_identity.lifecycle.leaving import disconnecting, erasure
from django_identity.lifecycle.said import key_sets
from django_identity.models import Consent, LinkedIdentity, StoredClaim, TokenGrant
from django_identity.policy import IdentityPolicy
from tests.deliveries import deliver
from tests.factories import (
    AN_HOUR_AGO,
    make_claim,
    make_grant,
    make_identity,
    make_user,
)
from tests.fake_service import html
from tests.lifecycle.conftest import Asked
from tests.sign_in import begin, is_signed_in, sign_in
from tests.views.connect.pages import browser_of, hand_in

pytestmark = pytest.mark.django_db(transaction=True)

ADULT = {"age_over_18": True}
REASON = "A circle is a contract, so everybody in it is an adult."


class AdultsAlone(IdentityPolicy):
    """One line for all doors."""

    doors = ("sign_up_refused", "link_not_allowed", "sign_in_not_allowed")
    reasons = dict.fromkeys(doors, REASON)

    def may_sign_up(self, *_about, claims, **_more):
        return "age_over_18" in claims

    may_link = may_sign_in = may_sign_up

    def update_user(self, user, *, profile, **_about):
        user.first_name = profile.first_name
        user.save()


@pytest.fixture
def adults(service, use_policy):
    use_policy(AdultsAlone)
    return service


def shown():
    return [claims for _, claims in Asked.questions]


# What it is shown


def test_each_question_is_asked_with_the_claims(asking):
    """Whether they may come before anything is written; whether they sign in when all is stored."""
    asking.disclosed = {"age_over_18": True, "country_resident": "NG"}
    proven = {"age_over_18": True, "country_resident": "NG"}
    sign_in(Client())
    user = User.objects.get()
    sign_in(Client())
    LinkedIdentity.objects.all().delete()
    sign_in(browser_of(user))
    assert Asked.names() == [
        *("may_sign_up", "may_sign_in"),
        *("may_sign_in", "update_user"),
        "may_link",
    ]
    assert shown() == [proven] * 5
    assert claims_of(User.objects.get()) == proven


def list_as_revoked(service):
    answer = service.good("claims")
    for claim in answer["data"]["claims"]:
        claim["revoked"] = True
    service.answers["claims"] = answer


PROVES_NOTHING = {
    "denied": lambda service: service.disclosed.update(age_over_18=False),
    "denied in an object": lambda service: service.disclosed.update(
        age_over_18={"verified": False, "value": True},
    ),
    "listed as revoked": list_as_revoked,
    "not in the credential": lambda service: service.disclosed.clear(),
    "of a credential that fails a check": lambda service: service.payload.update(
        aud="another",
    ),
    "of a credential that has run out": lambda service: service.payload.update(exp=1),
    "of an answer that cannot be read": lambda service: service.answers.update(
        claims=html(),
    ),
    "revoked on the way": lambda service: service.meanwhile.update(
        claims=partial(deliver, "claim.revoked"),
    ),
    "not consented to": lambda service: service.token.update(
        scope="profile:read kyc:read",
    ),
}


@pytest.mark.parametrize("case", PROVES_NOTHING)
def test_what_opens_no_gate_is_not_shown(asking, case):
    PROVES_NOTHING[case](asking)
    for _ in range(2):
        sign_in(Client())
    assert set(Asked.names()) == {
        "may_sign_up",
        "may_sign_in",
        "update_user",
    }
    assert shown() == [{}] * 4
    assert claims_of(User.objects.get()) == {}


def test_a_claim_that_is_not_kept_is_not_shown(asking, settings):
    """Else a site would decide by what its gates never see."""
    asking.disclosed = {"age_over_18": True, "country_resident": "NG"}
    kept = {"KEEP_CLAIMS": ["age_over_18"]}
    settings.DJANGO_IDENTITY = {**settings.DJANGO_IDENTITY, **kept}
    sign_in(Client())
    assert shown() == [ADULT] * 2


def test_an_older_credential_shows_nothing_of_its_own(asking):
    """It could replay a claim that was revoked since. What is stored is proven still."""
    sign_in(Client())
    Asked.questions.clear()
    LinkedIdentity.objects.update(
        credential_issued_at=timezone.now() + timedelta(minutes=1),
    )
    asking.disclosed = {"age_over_18": True, "unique_human": True}
    sign_in(Client())
    assert shown() == [ADULT, ADULT]
    assert claims_of(User.objects.get()) == ADULT


class Levels(IdentityPolicy):
    """Remembers which level it was shown."""

    shown: list[Any] = []

    def may_sign_up(self, *, kyc, **_about):
        self.shown.append(kyc)
        return True

    def update_user(self, user, *, kyc, **_about):
        self.shown.append(kyc)


@pytest.mark.parametrize("is_stated", [False, True])
def test_the_level_is_shown_as_it_stands(service, use_policy, is_stated):
    """What an event has taken back is rejected. One that nobody stated is none, and not empty."""
    use_policy(Levels)
    Levels.shown.clear()
    if is_stated:
        service.meanwhile["claims"] = partial(deliver, "kyc.rejected")
    else:
        service.token["scope"] = "profile:read claims:read"
    sign_in(Client())
    if is_stated:
        assert [level.status for level in Levels.shown] == ["rejected"]
        return
    sign_in(Client())
    assert len(Levels.shown) >= 2
    assert {*Levels.shown} == {None}


def test_a_code_shows_no_claims(asking):
    """But to somebody whom a full sign-in has linked: theirs still open gates."""
    browser = browser_of(make_user())
    hand_in(browser)
    sign_in(browser)
    hand_in(browser, "CNX-AB12-CD35")
    assert Asked.questions == [
        ("may_link", {}),
        ("may_link", ADULT),
        ("update_user", ADULT),
    ]


# What a refusal leaves


def refused(response, code):
    page = response.content.decode()
    assert f"<code>{code}</code>" in page
    return page


def test_a_minor_gets_no_account_and_reads_the_sites_reason(adults):
    adults.disclosed = {"age_over_18": False}
    browser = Client()
    page = refused(sign_in(browser), "sign_up_refused")
    assert REASON in page
    given = {"state": begin(browser), "code": "a-code"}
    address = reverse("identity_api:callback")
    told = browser.post(address, given, content_type="application/json").json()
    assert told["code"] == "sign_up_refused"
    assert told["detail"] == REASON
    assert "not taking new accounts" not in page
    assert not User.objects.exists()
    assert not LinkedIdentity.objects.exists()


def test_a_minors_identity_is_not_linked(adults):
    """Neither anew, nor as the confirmation of a link by code, which stays one."""
    adults.disclosed = {"age_over_18": False}
    user = make_user()
    browser = browser_of(user)
    page = refused(sign_in(browser), "link_not_allowed")
    assert REASON in page
    assert "may not be linked" not in page
    assert not LinkedIdentity.objects.exists()
    identity = make_identity(user, account_made=False, linked_via="connect")
    before = LinkedIdentity.objects.values().get()
    refused(sign_in(browser), "link_not_allowed")
    assert LinkedIdentity.objects.values().get() == before
    assert not TokenGrant.objects.filter(identity=identity).exists()


@pytest.mark.parametrize("consent", [Consent.GRANTED, Consent.REVOKED])
def test_of_somebody_who_returns_only_the_session_is_refused(adults, consent):
    """What they brought stays stored, so that what is gone opens no gate in another session."""
    adults.disclosed = {"age_over_18": False, "country_resident": "NG"}
    user = make_user(first_name="Before")
    revoked_at = AN_HOUR_AGO if consent == Consent.REVOKED else None
    identity = make_identity(user, consent=consent, revoked_at=revoked_at)
    make_claim(identity)
    make_grant(identity)
    elsewhere = browser_of(user)
    browser = Client()
    page = refused(sign_in(browser), "sign_in_not_allowed")
    assert REASON in page
    assert "password" not in page.partition("<main")[2]
    assert not is_signed_in(browser)
    assert is_signed_in(elsewhere)
    identity.refresh_from_db()

    assert identity.consent == Consent.GRANTED
    assert claims_of(User.objects.get()) == {"country_resident": "NG"}
    assert StoredClaim.objects.count() == 2
    assert User.objects.get().first_name == "Before"


@pytest.mark.parametrize("code", ["keys_unavailable", "malformed_answer"])
@pytest.mark.parametrize("who", ["new", "links", "returns"])
def test_claims_that_could_not_be_read_ask_to_try_again(adults, who, code):
    """No is then no judgement of the person: the page says why, and not the site's reason.

    Somebody who returns is in by what is proven still, if that can be judged.
    """
    browser = browser_of(make_user()) if who == "links" else Client()
    if who == "returns":
        sign_in(Client())
    users = User.objects.count()
    if code == "keys_unavailable":
        adults.answers = {"jwks": html("503 Down")}
        key_sets.forget()
    else:
        answer = adults.good("claims")
        answer["data"]["credential"] = None
        adults.answers["claims"] = answer

    response = sign_in(browser)

    if (who, code) == ("returns", "malformed_answer"):
        assert is_signed_in(browser)
        return
    page = refused(response, code)
    assert "Try again" in page
    assert REASON not in page
    assert User.objects.count() == users
    assert LinkedIdentity.objects.count() == (who == "returns")


# What it answers


class Answers(IdentityPolicy):
    """The same to every question."""

    answer: ClassVar[Any] = True

    def may_sign_up(self, *_about, **_more):
        return self.answer

    may_link = may_sign_in = may_accept_connect_answer = may_sign_up
    has_other_way_in = keeps_account = may_sign_up


async def _no():
    return False


@pytest.fixture(params=["redirect", "text", "coroutine"])
def odd_answer(request, service, use_policy, monkeypatch):
    """Each is true, and none says yes. The name of its class."""
    unawaited = _no()
    answer = {
        "redirect": HttpResponseRedirect("/not-for-you/"),
        "text": "no",
        "coroutine": unawaited,
    }[request.param]
    use_policy(Answers)
    monkeypatch.setattr(Answers, "answer", answer)
    yield type(answer).__name__
    unawaited.close()


def says_what_it_returned(caplog, method, returned):
    [detail] = [
        record.detail for record in caplog.records if getattr(record, "detail", "")
    ]
    assert detail == (f"The policy's {method} returned {returned}, not True or False.")
    caplog.clear()


def test_only_true_lets_a_person_in(odd_answer, caplog):
    """A site that returns a redirect, or writes ``async``, wants to refuse."""
    browser = Client()
    refused(sign_in(browser), "configuration")
    says_what_it_returned(caplog, "may_sign_up", odd_answer)

    known = make_user("known")
    refused(sign_in(browser_of(known)), "configuration")
    says_what_it_returned(caplog, "may_link", odd_answer)
    refused(hand_in(browser_of(known)), "configuration")
    says_what_it_returned(caplog, "may_accept_connect_answer", odd_answer)
    assert not LinkedIdentity.objects.exists()

    make_identity(known)
    refused(sign_in(browser), "configuration")
    says_what_it_returned(caplog, "may_sign_in", odd_answer)
    assert not is_signed_in(browser)
    assert User.objects.get() == known


def test_only_true_opens_another_way_in_and_keeps_an_account(odd_answer):
    user = make_user()
    identity = make_identity(user)
    with pytest.raises(ConfigurationError, match=f"has_other_way_in .* {odd_answer},"):
        disconnecting.disconnect(identity)
    receipt = erasure.erase_account(user)
    assert receipt.erased_at is None
    assert receipt.error == "ConfigurationError"


@pytest.mark.parametrize("answer", [None, "", 0], ids=repr)
def test_what_is_empty_is_a_no(service, use_policy, monkeypatch, answer):
    """Such as ``claims.get("age_over_18")``, or a method without a ``return``."""
    use_policy(Answers)
    monkeypatch.setattr(Answers, "answer", answer)
    refused(sign_in(Client()), "sign_up_refused")
    assert not User.objects.exists()
