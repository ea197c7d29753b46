"""A re-fetch stores what is proven, revokes what is revoked, and never overtakes a revocation."""

import time
from datetime import UTC, datetime, timedelta

import pytest
from django.core.management import call_command
from django.db import DataError
from django.utils import timezone

from django_identity import signals
from django_identity.lifecycle.minute import upkeep
from django_identity.lifecycle.minute.upkeep import Refetched
from django_identity.lifecycle.said import due
from django_identity.lifecycle.standing.standing import standing_of
from django_identity.models import Consent, LinkedIdentity, StoredClaim, TokenGrant
from django_identity.models.choices import NEVER
from django_identity.reasons import Reason
from django_identity.requirements import RequiredClaim
from tests.deliveries import deliver
from tests.factories import make_claim, make_grant, make_identity, make_user
from tests.fake_service import REJECTED, html, http
from tests.lifecycle.broken_statements import refused
from tests.lifecycle.grants import announced
from tests.lifecycle.refetches import refetched

pytestmark = pytest.mark.django_db(transaction=True)

HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
LEVEL_TOO = {"scopes": ["kyc:read", "claims:read"], "kyc_said_at": None}


@pytest.fixture(autouse=True)
def _linked(service):
    """One person who is due, with a live token."""
    past = timezone.now() - timedelta(seconds=1)
    make_grant(make_identity(make_user(), refetch_due_at=past, scopes=["claims:read"]))


def row():
    return LinkedIdentity.objects.get()


def due_in():
    return row().refetch_due_at - timezone.now()


def held():
    """Claim -> whether it is proven and stands."""
    return {
        claim.claim_type: claim.valid_until is not None and not claim.revoked
        for claim in StoredClaim.objects.all()
    }


def expire_token(**columns):
    TokenGrant.objects.update(access_expires_at=timezone.now(), **columns)


def listed(*names, revoked=()):
    return [
        {"claim_type": name, "provider": "KYC", "revoked": name in revoked}
        for name in {*names, *revoked}
    ]


def with_claims(service, *, revoked=(), **changes):
    body = {
        "user_id": service.subject,
        "claims": listed(*service.disclosed, revoked=revoked),
        "credential": service.bend(service.credential()),
        "credential_format": "dc+sd-jwt",
        **changes,
    }
    service.answers["claims"] = {"success": True, "data": body}


# What is stored


ACME = {"provider": "Acme"}


def by(*providers, revoked=()):
    """The claim as these providers' own, in the answer's list."""
    return [
        {"claim_type": "kyc_verified", "provider": name, "revoked": name in revoked}
        for name in providers
    ]


@pytest.mark.parametrize(
    ("signed", "listed_by", "reason", "is_said"),
    [
        ({}, by("One", "Two", revoked=("One",)), None, False),
        (ACME, by("Acme"), None, False),
        (ACME, by("Acme", "Other"), None, False),
        (ACME, [], None, False),
        (ACME, by("acme"), Reason.NOT_CONFIRMED, True),
        (ACME, by(""), Reason.NOT_CONFIRMED, True),
        (ACME, by("One", "Two"), Reason.NOT_CONFIRMED, True),
        (ACME, by("One", "Two", revoked=("One",)), Reason.REVOKED, True),
        (ACME, by("One", revoked=("One",)), Reason.REVOKED, False),
        ({"provider": {"a": 1}}, by("KYC"), Reason.NOT_CONFIRMED, True),
        ({"provider": ""}, by("KYC"), Reason.NOT_CONFIRMED, True),
    ],
    ids=[
        "without one",
        "same",
        "one of two",
        "unlisted",
        "spelled otherwise",
        "none",
        "two others",
        "one of them revoked",
        "another, revoked",
        "no text",
        "an empty text",
    ],
)
def test_two_names_of_a_provider_prove_nothing(
    service,
    signed,
    listed_by,
    reason,
    is_said,
    caplog,
):
    """Its gate stays closed, no other claim is lost, and one log line tells the operators why.

    What is revoked of one provider keeps no value.
    """
    value = {"verified": True, **signed}
    service.disclosed = {"age_over_18": True, "kyc_verified": value}
    with_claims(service, claims=[*listed("age_over_18"), *listed_by])

    assert refetched(row()) is Refetched.STORED

    assert row().last_error == ""
    assert row().refetch_failures == 0
    lines = [each for each in caplog.records if "claims.unproven" in each.message]
    assert [each.__dict__["claims"] for each in lines] == ["kyc_verified"] * is_said
    closed = standing_of(row().user).shortfall(RequiredClaim("kyc_verified"))
    assert (closed and closed.reason) == reason
    values = StoredClaim.objects.filter(value__isnull=False, claim_type="kyc_verified")
    assert [each.revoked for each in values] == [False] * (reason is None)
    assert held()["age_over_18"]


@pytest.mark.parametrize("order", [1, -1])
def test_a_claim_that_is_listed_twice_is_revoked_if_one_of_them_is(service, order):
    both = [*listed("age_over_18"), *listed(revoked=("age_over_18",))]
    with_claims(service, claims=both[::order])
    assert refetched(row()) is Refetched.STORED
    assert held() == {"age_over_18": False}


def test_a_claim_ends_with_what_ends_first(service):
    """The credential, or the claim: as listed or in its value. What cannot be read is long past."""
    soon = (timezone.now() + HOUR).isoformat()
    late = (timezone.now() + 999 * HOUR).isoformat()
    service.disclosed = {
        "listed": True,
        "value": {"verified": True, "expires_at": soon},
        "odd": {"verified": True, "expires_at": "soon"},
        "number": {"expires_at": 7},
        "endless": {"expires_at": None},
        "listed late": True,
        "late": {"verified": True, "expires_at": late},
    }
    ends_of_list = {"listed": soon, "listed late": late}
    with_claims(
        service,
        claims=[
            {**listed(name)[0], "expires_at": ends_of_list[name]}
            for name in ends_of_list
        ],
    )
    assert refetched(row()) is Refetched.STORED
    ends = {claim.claim_type: claim.valid_until for claim in StoredClaim.objects.all()}
    assert ends["listed"] == ends["value"] == datetime.fromisoformat(soon)
    assert ends["odd"] == ends["number"] == NEVER
    for name in ("endless", "listed late", "late"):
        assert ends[name] == row().credential_expires_at


def test_a_second_answer_replaces_what_the_first_one_said(service):
    """The row stays, with its key. A claim that is only listed has no value: None, not null.

    ``claims_changed`` is sent when what the claims say has changed, not at each renewal.
    """
    with announced(signals.claims_changed) as heard:
        refetched(row())
        refetched(row())
    assert heard == [row()]
    first = StoredClaim.objects.get()
    service.disclosed = {"age_over_18": {"verified": True}}
    refetched(row())
    again = StoredClaim.objects.get()
    assert again.pk == first.pk
    assert again.created_at == first.created_at
    assert again.value == {"verified": True}

    service.disclosed = {"unique_human": True}
    with_claims(service, claims=listed("age_over_18", "unique_human"))
    refetched(row())
    assert held() == {"age_over_18": False, "unique_human": True}
    assert StoredClaim.objects.get(value__isnull=True) == first


def test_a_credential_that_lives_longer_is_stored_for_a_day(service):
    """24 hours is the service's word; whatever the credential says, its claims end with them.

    One at its end, such as a cache gives, is not asked for again without a pause.
    """
    service.payload["exp"] = int(time.time()) + 30 * 86_400
    assert refetched(row()) is Refetched.STORED
    a_day_on = timezone.now() + 24 * HOUR
    assert row().credential_expires_at <= a_day_on
    assert StoredClaim.objects.get().valid_until <= a_day_on
    assert due_in() < 24 * HOUR
    service.payload["exp"] = int(time.time()) + 60
    assert refetched(row()) is Refetched.STORED
    assert due_in() > 4 * MINUTE


def test_what_cannot_be_stored_opens_nothing(service):
    """A NUL or an endless name in a signed claim is no reason to lose the others."""
    service.disclosed = {"age_over_18": True, "nul": "a\0b", "n" * 300: True}
    with_claims(service, claims=[])
    assert refetched(row()) is Refetched.STORED
    assert held() == {"age_over_18": True}
    assert StoredClaim.objects.get().provider == ""


def test_claims_and_credential_are_stored_together(caplog):
    """If the claims cannot be written the row says nothing of a newer credential.

    The log quotes nothing of them, and the next row has its turn.
    """
    both = [row().pk, make_identity(make_user("eve"), subject="subject-2").pk]
    with refused("INSERT", "storedclaim", error=DataError):
        results = [*upkeep.refetch_these(both)]
    assert results == [Refetched.FAILED, Refetched.REAUTHORIZATION_NEEDED]
    LinkedIdentity.objects.get(subject="subject-2").user.delete()
    assert row().credential_issued_at is None
    assert row().last_error == "unexpected_error"
    assert row().refetch_failures == 1
    assert "DataError" in caplog.text
    assert "subject-1" not in caplog.text


@pytest.mark.parametrize(
    ("scopes", "calls"),
    [
        (["profile:read"], ["token"]),
        (["profile:read", "kyc:read"], ["token", "kyc"]),
        (["claims:read"], ["jwks", "token", "claims"]),
        ([], ["token"]),
    ],
    ids=["neither", "level", "claims", "nothing"],
)
def test_what_the_consent_covers_is_read(service, scopes, calls):
    """A grant that nothing else uses is refreshed, well before its 30 days are over."""
    LinkedIdentity.objects.update(scopes=scopes, kyc_said_at=timezone.now() - 24 * HOUR)
    expire_token()
    assert refetched(row()) is Refetched.STORED
    assert [name for name, _, _ in service.requests] == calls
    days = due_in() / (24 * HOUR)
    assert (19 < days < 26) if calls == ["token"] else (0.6 < days < 1.7)


# What is not believed


UNPROVEN = {
    "aud": ({"aud": "another-client"}, "credential_rejected"),
    "sub": ({"sub": "another-subject"}, "credential_rejected"),
    "environment": ({"environment": "live"}, "credential_rejected"),
    "exp": ({"exp": 1}, "credential_rejected"),
    "no credential": ({}, "malformed_answer"),
}


@pytest.mark.parametrize(("changes", "error"), UNPROVEN.values(), ids=UNPROVEN)
def test_an_answer_without_a_proof_changes_nothing_but_may_revoke(
    service,
    changes,
    error,
):
    """The claims stand as they are, but for those that are said to be revoked.

    As every writer it raises the version, so that a re-fetch under way is discarded.
    """
    make_claim(row())
    make_claim(row(), "unique_human")
    version = row().version
    service.payload = changes
    beside = {} if changes else {"credential": None}
    names = ("age_over_18", "unique_human")
    with_claims(service, claims=listed(*names, revoked=names[1:]), **beside)

    assert refetched(row()) is Refetched.FAILED

    assert held() == {"age_over_18": True, "unique_human": False}
    assert row().refetch_failures == 1
    assert row().last_error == error
    assert row().version == version + 2  # the revocation, and the failure


def test_a_revoked_claim_that_is_listed_no_more_keeps_no_value(service):
    """The row stays until a credential is stored that is younger than the revocation."""
    now = int(time.time())
    make_claim(row(), value={"a": 1}, revoked_at=datetime.fromtimestamp(now, UTC))
    service.disclosed = {}
    for issued_at, stored in ((now - 60, 1), (now, 0)):
        service.payload["iat"] = issued_at
        with_claims(service)
        assert refetched(row()) is Refetched.STORED
        assert StoredClaim.objects.count() == stored
        assert not StoredClaim.objects.filter(value__isnull=False).exists()


@pytest.mark.parametrize("behind", [2, 300])
def test_a_credential_that_is_dated_back_is_fetched_again_soon(service, behind):
    """By the service's clock, or by custom: the claim is listed, and seems revoked since."""
    make_claim(row())
    deliver("claim.revoked", subject=service.subject)
    service.payload["iat"] = int(time.time()) - behind
    with_claims(service)
    assert refetched(row()) is Refetched.STORED
    assert held() == {"age_over_18": False}
    assert due_in() < 6 * MINUTE

    service.payload["iat"] = int(time.time()) + 2
    with_claims(service)
    assert refetched(row()) is Refetched.STORED
    assert held() == {"age_over_18": True}
    assert due_in() > HOUR


def test_a_list_with_an_old_entry_beside_a_new_one_is_not_asked_again_soon(service):
    """A claim that was revoked once, and issued anew: the list says no more the next time."""
    entry = {"claim_type": "age_over_18", "provider": "KYC"}
    with_claims(service, claims=[entry | {"revoked": True}, entry])
    assert refetched(row()) is Refetched.STORED
    assert due_in() > HOUR


def test_what_never_says_anything_younger_is_not_asked_again_and_again(service):
    """Such as a credential from a cache, or without a time of issue."""
    make_claim(row(), revoked_at=timezone.now() - 2 * HOUR)
    service.payload["iat"] = int(time.time()) - 3 * 3600
    with_claims(service)
    assert refetched(row()) is Refetched.STORED
    assert held() == {"age_over_18": False}
    assert due_in() > HOUR


def test_an_answer_about_somebody_else_revokes_nothing(service):
    """Another ``user_id``: the answer is not about this person in any part."""
    make_claim(row())
    with_claims(service, revoked=("age_over_18",), user_id="somebody-else")
    assert refetched(row()) is Refetched.FAILED
    assert held() == {"age_over_18": True}


@pytest.mark.parametrize(
    ("ahead", "outcome"),
    [(290, Refetched.STORED), (310, Refetched.FAILED)],
    ids=["a bit", "far"],
)
def test_the_services_clock_may_be_a_little_ahead(service, ahead, outcome):
    """Clocks differ by minutes; a credential from further in the future is not believed."""
    service.payload["iat"] = int(time.time()) + ahead
    assert refetched(row()) is outcome
    assert held() == ({"age_over_18": True} if outcome is Refetched.STORED else {})


@pytest.mark.parametrize(
    "event",
    [
        {"consent": Consent.REVOKED},
        {"signed_in_at": timezone.now()},
        {"refetch_due_at": timezone.now()},
    ],
    ids=["revoked", "signed in anew", "due anew"],
)
@pytest.mark.parametrize("fails", [True, False])
def test_what_comes_first_wins(service, event, *, fails):
    """A revocation, a sign-in or an event while the answer or the failure is on its way: nothing
    of it is stored.
    """
    change = LinkedIdentity.objects.all().change
    service.meanwhile["claims"] = lambda: change(**event)
    if fails:
        service.answers["claims"] = html()
    assert refetched(row()) is (Refetched.OUTAGE if fails else Refetched.OVERTAKEN)
    assert held() == {}
    assert row().credential_issued_at is None
    assert row().refetch_failures == 0
    assert all(getattr(row(), name) == value for name, value in event.items())


# Failures


def test_failures_back_off_on_the_row(service):
    """From a minute to six hours, by chance, and visible; the first success forgets them."""
    service.answers["claims"] = {"success": True, "data": {}}
    for failures in range(1, 4):
        assert refetched(row()) is Refetched.FAILED
        most = MINUTE * 2 ** (failures - 1)
        assert most / 2 - timedelta(seconds=1) < due_in() <= most
        assert row().refetch_failures == failures
        assert row().last_error == "malformed_answer"
    LinkedIdentity.objects.update(refetch_failures=30_000)
    refetched(row())
    assert due_in() <= 6 * HOUR
    service.answers.clear()
    assert refetched(row()) is Refetched.STORED
    assert row().refetch_failures == 0
    assert row().last_error == ""


OOPS = html("500 Oops")
SLOW = http(b"", status="429 Slow")
PENDING = {"retry_at": timezone.now() + 24 * HOUR}
DEAD = Refetched.REAUTHORIZATION_NEEDED
#: What fails, of somebody whose token has run out, and whose level is due if keys can be had:
#: the result, how often a token and the claims were asked for, and what the row says.
FAILURES = {
    "keys": ({"jwks": OOPS}, Refetched.OUTAGE, (0, 0), "keys_unavailable"),
    "tokens": ({"token": OOPS}, Refetched.OUTAGE, (1, 0), "service_unavailable"),
    "claims": ({"claims": OOPS}, Refetched.OUTAGE, (1, 1), "service_unavailable"),
    "slow tokens": ({"token": SLOW}, Refetched.NOT_NOW, (1, 0), "rate_limited"),
    "a slow level": ({"kyc": SLOW}, Refetched.NOT_NOW, (1, 0), "rate_limited"),
    "a refused token": ({"claims": REJECTED}, DEAD, (1, 1), "reauthorization_needed"),
    "a refresh elsewhere": (PENDING, Refetched.FAILED, (0, 0), "refresh_pending"),
}


@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES)
def test_what_fails_is_retried_or_ends_the_grant(service, failure):
    """Without keys nothing is spent. A fresh token that is refused means the consent is gone."""
    answers, result, calls, code = failure
    if "jwks" not in answers:
        LinkedIdentity.objects.update(**LEVEL_TOO)
    service.kyc = {"kyc_level": "level_3"}
    expire_token(**(answers if answers is PENDING else {}))
    if answers is not PENDING:
        service.answers.update(answers)

    with announced() as heard:
        assert refetched(row()) is result

    assert (service.calls("token"), service.calls("claims")) == calls
    assert row().last_error == code
    grant = TokenGrant.objects.get()
    assert grant.needs_reauthorization is (result is DEAD)
    assert heard == [row()] * (result is DEAD)
    if result is DEAD:
        assert grant.access_token == ""
        assert row().refetch_due_at is None
    else:
        assert row().refetch_failures == 1
        assert timedelta() < due_in() <= 2 * MINUTE
    # The level is the service's own word, which needs no credential.
    has_level = answers.get("claims") is OOPS
    assert (row().kyc_level == "level_3") is has_level


def test_a_level_that_cannot_be_read_stops_no_claims(service, capsys):
    """The claims are stored, and the level is asked for again after a growing pause."""
    LinkedIdentity.objects.update(**LEVEL_TOO)
    service.answers["kyc"] = html("500 Oops")
    call_command("identity_upkeep")
    said = capsys.readouterr().out
    assert said == "re-fetches, stored, but the level could not be read: 1\n"
    assert held() == {"age_over_18": True}
    assert due_in() <= MINUTE
    assert row().refetch_failures == 1
    assert row().last_error == "service_unavailable"
    assert refetched(row()) is Refetched.LEVEL_UNREAD
    assert row().refetch_failures == 2
    del service.answers["kyc"]
    assert refetched(row()) is Refetched.STORED
    assert row().refetch_failures == 0
    assert row().last_error == ""


@pytest.mark.parametrize(
    ("digest", "share"),
    [("00000000", 0.65), ("7fffffff", 0.75), ("ffffffff", 0.85)],
)
def test_due_at_three_quarters_give_or_take_a_tenth(digest, share):
    """The place in the spread is the identity's own, so that it stays when the day is over."""
    now = timezone.now()
    identity = LinkedIdentity(subject_digest=digest + "0" * 56, scopes=["claims:read"])
    due_at = due.after_answers(identity, claims_until=now + 24 * HOUR)
    assert (due_at - now) / (24 * HOUR) == pytest.approx(share, abs=0.001)
