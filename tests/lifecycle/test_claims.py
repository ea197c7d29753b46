"""A re-fetch stores what is proven, revokes what is revoked, and never overtakes a revocation."""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core.management import call_command
from django.db import DataError, connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from django_identity import signals
from django_identity.lifecycle.minute.upkeep import Refetched
from django_identity.lifecycle.said import due
from django_identity.lifecycle.standing.standing import standing_of
from django_identity.models import Consent, LinkedIdentity, StoredClaim, TokenGrant
from django_identity.models.choices import NEVER
from django_identity.reasons import Reason
from django_identity.requirements import RequiredClaim
from tests.credentials import issuer
from tests.factories import make_claim, make_grant, make_identity, make_user
from tests.fake_service import REJECTED, FakeService, html, http
from tests.lifecycle.grants import announced
from tests.lifecycle.refetches import refetched

pytestmark = pytest.mark.django_db(transaction=True)

HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
LEVEL_TOO = {"scopes": ["kyc:read", "claims:read"], "kyc_said_at": None}


@pytest.fixture(autouse=True)
def _linked(service: FakeService) -> None:
    """One person who is due, with a live token."""
    past = timezone.now() - timedelta(seconds=1)
    make_grant(make_identity(make_user(), refetch_due_at=past, scopes=["claims:read"]))


def row() -> LinkedIdentity:
    return LinkedIdentity.objects.get()


def due_in() -> timedelta:
    due_at = row().refetch_due_at
    assert due_at is not None
    return due_at - timezone.now()


def held() -> dict[str, bool]:
    """Claim -> whether it is proven and stands."""
    return {
        claim.claim_type: claim.valid_until is not None and not claim.revoked
        for claim in StoredClaim.objects.all()
    }


def expire_token(**columns: Any) -> None:
    TokenGrant.objects.update(access_expires_at=timezone.now(), **columns)


def listed(*names: str, revoked: tuple[str, ...] = ()) -> list[dict[str, object]]:
    return [
        {"claim_type": name, "provider": "KYC", "revoked": name in revoked}
        for name in {*names, *revoked}
    ]


def with_claims(
    service: FakeService, *, revoked: tuple[str, ...] = (), **changes: Any
) -> None:
    body = {
        "user_id": service.subject,
        "claims": listed(*service.disclosed, revoked=revoked),
        "credential": service.bend(service.credential()),
        "credential_format": "dc+sd-jwt",
        **changes,
    }
    service.answers["claims"] = {"success": True, "data": body}


# What is stored


def test_one_refresh_and_one_read(service: FakeService) -> None:
    """The whole upkeep of a day: claims stored, due again at about three quarters of the life."""
    expire_token()
    assert refetched(row()) is Refetched.STORED
    assert [name for name, _, _ in service.requests] == ["jwks", "token", "claims"]
    assert held() == {"age_over_18": True}
    assert row().last_error == ""
    assert 0.65 * 24 * HOUR - MINUTE < due_in() < 0.85 * 24 * HOUR


def test_gone_and_revoked_claims_close(service: FakeService) -> None:
    """What is listed no more is removed; what is said to be revoked is revoked, proof or not."""
    make_claim(row(), "unique_human")
    make_claim(row(), "kyc_verified")
    service.disclosed = {"age_over_18": True, "kyc_verified": True}
    with_claims(service, revoked=("kyc_verified",))
    assert refetched(row()) is Refetched.STORED
    assert held() == {"age_over_18": True, "kyc_verified": False}


def test_a_value_without_a_provider_proves_nothing_for_a_revoked_one(
    service: FakeService,
) -> None:
    """Of two providers the one whose claim is revoked keeps no value and no proof."""
    service.disclosed = {"age_over_18": True}
    both = [
        {"claim_type": "age_over_18", "provider": provider, "revoked": provider == "A"}
        for provider in ("A", "B")
    ]
    with_claims(service, claims=both)
    assert refetched(row()) is Refetched.STORED
    rows = StoredClaim.objects.order_by("provider")
    assert [(each.provider, each.value, each.revoked) for each in rows] == [
        ("A", None, True), ("B", True, False),
    ]  # fmt: skip


def by(*providers: str, revoked: tuple[str, ...] = ()) -> list[dict[str, object]]:
    """The claim as these providers' own, in the answer's list."""
    return [
        {"claim_type": "kyc_verified", "provider": name, "revoked": name in revoked}
        for name in providers
    ]


@pytest.mark.parametrize("named", [{"a": 1}, ["Acme"], 7, ""], ids=str)
def test_a_provider_that_is_no_text_is_another_one(
    service: FakeService, named: object
) -> None:
    """A signed value may name anything: it closes its own gate and loses no other claim."""
    service.disclosed = {
        "age_over_18": True,
        "kyc_verified": {"verified": True, "provider": named},
    }
    with_claims(service)
    assert refetched(row()) is Refetched.STORED
    assert held() == {"age_over_18": True, "kyc_verified": False}


@pytest.mark.parametrize(
    ("listed_by", "reason", "is_said"),
    [
        (by("Acme"), None, False),
        (by("Acme", "Other"), None, False),
        ([], None, False),
        (by("acme"), Reason.NOT_CONFIRMED, True),
        (by(""), Reason.NOT_CONFIRMED, True),
        (by("One", "Two"), Reason.NOT_CONFIRMED, True),
        (by("One", "Two", revoked=("One",)), Reason.REVOKED, True),
        (by("One", revoked=("One",)), Reason.REVOKED, False),
    ],
    ids=["same", "one of two", "unlisted", "spelled otherwise", "none", "two others",
         "one of them revoked", "another, revoked"],
)  # fmt: skip
def test_two_names_of_a_provider_prove_nothing(
    service: FakeService,
    listed_by: list[dict[str, object]],
    reason: Reason | None,
    is_said: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The gate stays closed, nothing is held, and one log line says why to the operators."""
    service.disclosed = {"kyc_verified": {"verified": True, "provider": "Acme"}}
    with_claims(service, claims=listed_by)
    assert refetched(row()) is Refetched.STORED
    assert (row().last_error, row().refetch_failures) == ("", 0)
    lines = [each for each in caplog.records if "claims.unproven" in each.message]
    assert [each.__dict__["claims"] for each in lines] == ["kyc_verified"] * is_said
    closed = standing_of(row().user).shortfall(RequiredClaim("kyc_verified"))
    assert (closed and closed.reason) == reason
    held_values = StoredClaim.objects.filter(value__isnull=False)
    assert held_values.exists() is (reason is None)


def test_one_name_later_opens_the_gate_again(service: FakeService) -> None:
    service.disclosed = {"kyc_verified": {"verified": True, "provider": "Acme"}}
    for name, is_open in (("acme", False), ("Acme", True)):
        with_claims(service, claims=by(name))
        assert refetched(row()) is Refetched.STORED
        assert (
            standing_of(row().user).shortfall(RequiredClaim("kyc_verified")) is None
        ) is is_open


@pytest.mark.parametrize("order", [1, -1])
def test_a_claim_that_is_listed_twice_is_revoked_if_one_of_them_is(
    service: FakeService, order: int
) -> None:
    both = [*listed("age_over_18"), *listed(revoked=("age_over_18",))]
    with_claims(service, claims=both[::order])
    assert refetched(row()) is Refetched.STORED
    assert held() == {"age_over_18": False}


A_DAY = 86_400


def issued(service: FakeService, at: int, *, says_when: bool = True) -> None:
    """From now on the credential was issued then. The specification shows its end alone."""
    service.payload |= {"iat": at if says_when else issuer.ABSENT, "exp": at + A_DAY}


@pytest.mark.parametrize("says_when", [True, False])
def test_a_revoked_claim_counts_again_only_by_a_later_credential(
    service: FakeService, says_when: bool
) -> None:
    """An answer on its way, or from a cache, may be older than the revocation."""
    now = int(time.time())
    make_claim(row(), revoked_at=datetime.fromtimestamp(now + 0.5, UTC))
    for issued_at, counts in ((now - 1, False), (now, True)):
        issued(service, issued_at, says_when=says_when)
        assert refetched(row()) is Refetched.STORED
        assert held() == {"age_over_18": counts}


@pytest.mark.parametrize("revokes", [True, False], ids=["revoked", "listed no more"])
def test_a_former_credential_without_a_time_proves_nothing_again(
    service: FakeService, revokes: bool
) -> None:
    """A cache has it. The next one, which ends later, counts."""
    now = int(time.time())
    issued(service, now - 60, says_when=False)
    assert refetched(row()) is Refetched.STORED
    revoked = ("age_over_18",) if revokes else ()
    with_claims(service, claims=listed(revoked=revoked), credential=None)
    assert refetched(row()) is Refetched.STORED
    for issued_at, counts in ((now - 60, False), (now + 1, True)):
        issued(service, issued_at, says_when=False)
        with_claims(service)
        refetched(row())
        assert any(held().values()) is counts


@pytest.mark.parametrize("seconds", [310, 30 * A_DAY])
def test_a_credential_that_ends_too_late_tells_no_time(
    service: FakeService, seconds: int
) -> None:
    """It may have been issued before the revocation: it does not live for a day."""
    make_claim(row(), revoked_at=timezone.now() - 2 * HOUR)
    issued(service, int(time.time()) + seconds, says_when=False)
    assert refetched(row()) is Refetched.STORED
    assert held() == {"age_over_18": False}
    assert row().credential_issued_at is None


@pytest.mark.parametrize("changes", [{}, {"credential": None}], ids=["usable", "not"])
def test_a_list_that_revokes_is_later_than_the_credential_that_is_stored(
    service: FakeService, changes: dict[str, Any]
) -> None:
    """Though the service's clock is ahead: an older answer from a cache proves nothing again."""
    issued_at = int(time.time()) + 240
    service.payload["iat"] = issued_at
    assert refetched(row()) is Refetched.STORED
    with_claims(service, revoked=("age_over_18",), **changes)
    refetched(row())
    assert held() == {"age_over_18": False}

    with_claims(service)
    refetched(row())
    assert held() == {"age_over_18": False}

    service.payload["iat"] = issued_at + 1
    with_claims(service)
    assert refetched(row()) is Refetched.STORED
    assert held() == {"age_over_18": True}


def test_a_claim_ends_with_what_ends_first(service: FakeService) -> None:
    """The credential, or the claim: as listed or in its value. What cannot be read is long past."""
    soon = (timezone.now() + HOUR).isoformat()
    late = (timezone.now() + 999 * HOUR).isoformat()
    service.disclosed = {
        "listed": True, "value": {"verified": True, "expires_at": soon},
        "odd": {"verified": True, "expires_at": "soon"}, "number": {"expires_at": 7},
        "endless": {"expires_at": None},
        "listed late": True, "late": {"verified": True, "expires_at": late},
    }  # fmt: skip
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


@pytest.mark.parametrize("revoked", [(), ("age_over_18",)], ids=["empty", "revoked"])
def test_a_list_without_a_valid_claim_needs_no_credential(
    service: FakeService, revoked: tuple[str, ...]
) -> None:
    """Nothing is left to prove, so this is no failure, and nothing is held any more."""
    make_claim(row())
    with_claims(service, claims=listed(revoked=revoked), credential=None)
    assert refetched(row()) is Refetched.STORED
    assert not any(held().values())
    assert row().credential_expires_at is None


def test_unchanged_claims_are_no_news(service: FakeService) -> None:
    """``claims_changed`` is sent when what the claims say has changed, not when they are renewed;
    their rows stay.
    """
    with announced(signals.claims_changed) as heard:
        refetched(row())
        rows = list(StoredClaim.objects.values_list("pk", flat=True))
        refetched(row())
    assert heard == [row()]
    assert list(StoredClaim.objects.values_list("pk", flat=True)) == rows


def test_a_renewed_claim_keeps_its_row_and_when_it_was_first_stored(
    service: FakeService,
) -> None:
    """What the second answer says of the claim replaces all that the first one said."""
    refetched(row())
    first = StoredClaim.objects.get()
    service.disclosed = {"age_over_18": {"verified": True}, "unique_human": True}
    refetched(row())
    again = StoredClaim.objects.get(claim_type="age_over_18")
    assert (again.pk, again.created_at) == (first.pk, first.created_at)
    assert again.value == {"verified": True}
    assert held() == {"age_over_18": True, "unique_human": True}


def test_a_claim_that_is_only_listed_again_has_no_value(service: FakeService) -> None:
    """None, and not JSON's null: then it looks as when it was listed for the first time."""
    refetched(row())
    service.disclosed = {"unique_human": True}
    with_claims(service, claims=listed("age_over_18", "unique_human"))
    assert refetched(row()) is Refetched.STORED
    assert held() == {"age_over_18": False, "unique_human": True}
    assert (
        StoredClaim.objects.filter(value__isnull=True).get().claim_type == "age_over_18"
    )


@pytest.mark.parametrize("number", [1, 10])
def test_renewed_claims_are_written_by_one_short_statement(
    service: FakeService, number: int
) -> None:
    """Each row stands in it once. A CASE for each column would be seven times as long."""
    service.disclosed = {f"claim_{position}": True for position in range(number)}
    refetched(row())
    with CaptureQueriesContext(connection) as captured:
        refetched(row())
    written = [each["sql"] for each in captured if "storedclaim" in each["sql"]]
    written = [sql for sql in written if not sql.startswith("SELECT")]
    assert len(written) == 1
    assert len(written[0]) < 700 + 150 * number


def test_a_credential_that_lives_longer_is_stored_for_a_day(
    service: FakeService,
) -> None:
    """24 hours is the service's word; whatever the credential says, its claims end with them."""
    service.payload["exp"] = int(time.time()) + 30 * 86_400
    assert refetched(row()) is Refetched.STORED
    a_day_on = timezone.now() + 24 * HOUR
    assert row().credential_expires_at <= a_day_on
    assert StoredClaim.objects.get().valid_until <= a_day_on
    assert due_in() < 24 * HOUR


def test_what_cannot_be_stored_opens_nothing(service: FakeService) -> None:
    """A NUL or an endless name in a signed claim is no reason to lose the others."""
    service.disclosed = {"age_over_18": True, "nul": "a\0b", "n" * 300: True}
    with_claims(service, claims=[])
    assert refetched(row()) is Refetched.STORED
    assert held() == {"age_over_18": True}
    assert StoredClaim.objects.get().provider == ""


def test_claims_and_credential_are_stored_together() -> None:
    """If the claims cannot be written the row says nothing of a newer credential."""

    def refusing(execute: Any, sql: str, *rest: Any) -> Any:
        if sql.startswith("INSERT") and "storedclaim" in sql:
            raise DataError
        return execute(sql, *rest)

    with connection.execute_wrapper(refusing):
        assert refetched(row()) is Refetched.FAILED
    assert row().credential_issued_at is None
    assert (row().last_error, row().refetch_failures) == ("unexpected_error", 1)


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
def test_what_the_consent_covers_is_read(
    service: FakeService, scopes: list[str], calls: list[str]
) -> None:
    """A grant that nothing else uses is refreshed, well before its 30 days are over."""
    LinkedIdentity.objects.update(scopes=scopes, kyc_said_at=timezone.now() - 24 * HOUR)
    expire_token()
    assert refetched(row()) is Refetched.STORED
    assert [name for name, _, _ in service.requests] == calls
    days = due_in() / (24 * HOUR)
    assert (19 < days < 26) if calls == ["token"] else (0.6 < days < 1.7)


def test_without_consent_nothing_is_read(service: FakeService) -> None:
    """No call is made for a person who took the consent back."""
    LinkedIdentity.objects.update(consent=Consent.REVOKED)
    assert refetched(row()) is None
    assert service.requests == []


# What is not believed


@pytest.mark.parametrize(
    "break_it",
    [
        lambda service: service.payload.update(aud="another-client"),
        lambda service: service.payload.update(sub="another-subject"),
        lambda service: service.payload.update(environment="live"),
        lambda service: service.payload.update(exp=1),
        lambda service: setattr(
            service, "bend", lambda text: text.replace("~", "~WyJ4Il0~", 1)
        ),
    ],
    ids=["aud", "sub", "environment", "exp", "unlisted"],
)
def test_a_rejected_credential_changes_nothing_but_may_revoke(
    service: FakeService, break_it: Callable[[FakeService], None]
) -> None:
    """Whatever check fails: the held claims stand as they are, but for those said to be revoked."""
    make_claim(row())
    make_claim(row(), "unique_human")
    break_it(service)
    with_claims(service, revoked=("unique_human",))
    assert refetched(row()) is Refetched.FAILED
    assert held() == {"age_over_18": True, "unique_human": False}
    assert (row().refetch_failures, row().last_error) == (1, "credential_rejected")


def test_an_answer_without_a_credential_revokes_what_it_says(
    service: FakeService,
) -> None:
    """As every writer it raises the version, so that a re-fetch under way is discarded."""
    make_claim(row())
    make_claim(row(), "unique_human")
    version = row().version
    names = ("age_over_18", "unique_human")
    with_claims(
        service, claims=listed(*names, revoked=("unique_human",)), credential=None
    )
    assert refetched(row()) is Refetched.FAILED
    assert held() == {"age_over_18": True, "unique_human": False}
    assert row().version == version + 2  # the revocation, and the failure
    assert row().refetch_failures == 1


@pytest.mark.parametrize("sent", ["older", "older, without a time", "none"])
def test_an_older_credential_or_none_is_not_taken(
    service: FakeService, sent: str
) -> None:
    """A replay of an older credential, or an answer without one, leaves the stored proof."""
    refetched(row())
    issued_at = row().credential_issued_at
    if sent != "none":
        issued(service, int(time.time()) - 7200, says_when=sent == "older")
        service.disclosed = {"unique_human": True}
    with_claims(service, **({"credential": None} if sent == "none" else {}))
    assert refetched(row()) is Refetched.FAILED
    assert row().credential_issued_at == issued_at
    assert held() == {"age_over_18": True}


def test_an_older_answer_brings_nothing_back_after_an_empty_one(
    service: FakeService,
) -> None:
    """A cache of the service still had the answer from before the revocation."""
    service.payload["iat"] = int(time.time()) - 3600
    with_claims(service)
    stale = service.answers["claims"]
    service.payload["iat"] = int(time.time())
    with_claims(service)
    assert refetched(row()) is Refetched.STORED
    with_claims(service, claims=[], credential=None)
    assert refetched(row()) is Refetched.STORED
    service.answers["claims"] = stale
    assert refetched(row()) is Refetched.FAILED
    assert held() == {}


REVOKED = {"revoked_at": datetime(2100, 1, 1, tzinfo=UTC)}


@pytest.mark.parametrize("columns", [REVOKED, {}], ids=["revoked", "valid"])
def test_the_same_answer_brings_nothing_back_after_an_empty_one(
    service: FakeService, columns: dict[str, Any]
) -> None:
    """The service lists the claim no more, and a cache still has what was stored before."""
    issued_at = int(time.time())
    service.payload["iat"] = issued_at
    with_claims(service)
    stale = service.answers["claims"]
    assert refetched(row()) is Refetched.STORED
    StoredClaim.objects.update(**columns)
    for _ in range(2):
        with_claims(service, claims=[], credential=None)
        assert refetched(row()) is Refetched.STORED
    service.answers["claims"] = stale
    refetched(row())
    assert not any(held().values())

    service.payload["iat"] = issued_at + 1
    with_claims(service)
    assert refetched(row()) is Refetched.STORED
    assert any(held().values()) is not bool(columns)


def test_a_revoked_claim_that_is_listed_no_more_stays_revoked(
    service: FakeService,
) -> None:
    """Until a credential is stored that is younger than the revocation. Its value goes at once."""
    now = int(time.time())
    revoked_at = datetime.fromtimestamp(now, UTC)
    make_claim(row(), value={"age": "over"}, revoked_at=revoked_at)
    service.disclosed = {}
    for issued_at, stored in ((now - 60, 1), (now, 0)):
        service.payload["iat"] = issued_at
        with_claims(service)
        assert refetched(row()) is Refetched.STORED
        assert StoredClaim.objects.count() == stored
        assert not StoredClaim.objects.filter(value__isnull=False).exists()
        assert not StoredClaim.objects.filter(valid_until__isnull=False).exists()
    service.disclosed = {"age_over_18": True}
    service.payload["iat"] = now - 30
    with_claims(service)
    assert refetched(row()) is Refetched.FAILED


def test_a_credential_without_a_time_leaves_that_of_the_newest(
    service: FakeService,
) -> None:
    """Else an older one would be taken after it."""
    assert refetched(row()) is Refetched.STORED
    issued_at = row().credential_issued_at
    issued(service, int(time.time()) + 30 * A_DAY, says_when=False)
    service.disclosed = {"unique_human": True}
    with_claims(service)
    assert refetched(row()) is Refetched.STORED
    assert held() == {"unique_human": True}
    assert row().credential_issued_at == issued_at


def test_an_answer_about_somebody_else_revokes_nothing(service: FakeService) -> None:
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
def test_the_services_clock_may_be_a_little_ahead(
    service: FakeService, ahead: int, outcome: Refetched
) -> None:
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
def test_what_comes_first_wins(
    service: FakeService, event: dict[str, Any], *, fails: bool
) -> None:
    """A revocation, a sign-in or an event while the answer or the failure is on its way: nothing
    of it is stored.
    """
    change = LinkedIdentity.objects.all().change
    service.meanwhile["claims"] = lambda: change(**event)
    if fails:
        service.answers["claims"] = html()
    assert refetched(row()) is (Refetched.OUTAGE if fails else Refetched.OVERTAKEN)
    assert held() == {}
    assert (row().credential_issued_at, row().refetch_failures) == (None, 0)
    assert all(getattr(row(), name) == value for name, value in event.items())


# Failures


def test_failures_back_off_on_the_row(service: FakeService) -> None:
    """From a minute to six hours, by chance, and visible; the first success forgets them."""
    service.answers["claims"] = {"success": True, "data": {}}
    for failures in range(1, 4):
        assert refetched(row()) is Refetched.FAILED
        most = MINUTE * 2 ** (failures - 1)
        assert most / 2 - timedelta(seconds=1) < due_in() <= most
        assert (row().refetch_failures, row().last_error) == (
            failures,
            "malformed_answer",
        )
    LinkedIdentity.objects.update(refetch_failures=30_000)
    refetched(row())
    assert due_in() <= 6 * HOUR
    service.answers.clear()
    assert refetched(row()) is Refetched.STORED
    assert (row().refetch_failures, row().last_error) == (0, "")


@pytest.mark.parametrize("endpoint", ["jwks", "token", "claims"])
def test_an_outage_is_retried_after_a_pause(
    service: FakeService, endpoint: str
) -> None:
    """The row that met it waits: another one is tried first. Without keys nothing is spent."""
    expire_token()
    service.answers[endpoint] = html("500 Oops")
    assert refetched(row()) is Refetched.OUTAGE
    code = "keys_unavailable" if endpoint == "jwks" else "service_unavailable"
    assert (row().refetch_failures, row().last_error) == (1, code)
    assert not TokenGrant.objects.get().needs_reauthorization
    assert timedelta() < due_in() <= 2 * MINUTE
    assert (service.calls("token") == 0) is (endpoint == "jwks")


@pytest.mark.parametrize("is_fresh", [True, False])
def test_a_fresh_token_that_is_refused_means_the_consent_is_gone(
    service: FakeService, *, is_fresh: bool
) -> None:
    """One refresh, one more try; then the grant is dropped and the site hears of it."""
    if is_fresh:
        expire_token()
    service.answers["claims"] = REJECTED
    with announced() as heard:
        assert refetched(row()) is Refetched.REAUTHORIZATION_NEEDED
    assert (service.calls("token"), service.calls("claims")) == (
        1,
        1 if is_fresh else 2,
    )
    grant = TokenGrant.objects.get()
    assert (heard, grant.needs_reauthorization, grant.access_token) == (
        [row()],
        True,
        "",
    )
    assert (row().refetch_due_at, row().last_error) == (None, "reauthorization_needed")


def test_a_refresh_under_way_elsewhere_is_retried_soon(service: FakeService) -> None:
    """It is no outage: the others are served."""
    expire_token(retry_at=timezone.now() + MINUTE)
    assert refetched(row()) is Refetched.FAILED
    assert row().last_error == "refresh_pending"
    assert timedelta() < due_in() <= MINUTE
    assert service.calls("token") == 0


def test_a_credential_at_its_end_is_not_asked_for_without_a_pause(
    service: FakeService,
) -> None:
    """A service that answers from a cache would be asked again and again."""
    service.payload["exp"] = int(time.time()) + 60
    assert refetched(row()) is Refetched.STORED
    assert due_in() > 4 * MINUTE


def test_a_level_that_cannot_be_read_stops_no_claims(service: FakeService) -> None:
    """The claims are stored, and the level is asked for again after a growing pause."""
    LinkedIdentity.objects.update(**LEVEL_TOO)
    service.answers["kyc"] = html("500 Oops")
    assert refetched(row()) is Refetched.LEVEL_UNREAD
    assert held() == {"age_over_18": True}
    assert due_in() <= MINUTE
    assert (row().refetch_failures, row().last_error) == (1, "service_unavailable")
    assert refetched(row()) is Refetched.LEVEL_UNREAD
    assert row().refetch_failures == 2
    del service.answers["kyc"]
    assert refetched(row()) is Refetched.STORED
    assert (row().refetch_failures, row().last_error) == (0, "")


def test_cron_hears_that_claims_are_stored_without_the_level(
    service: FakeService, capsys: pytest.CaptureFixture[str]
) -> None:
    """A service that fails for the level alone is no run in which nothing could be done."""
    LinkedIdentity.objects.update(**LEVEL_TOO, refetch_due_at=timezone.now())
    service.answers["kyc"] = html("500 Oops")
    call_command("identity_upkeep")
    said = capsys.readouterr().out
    assert said == "re-fetches, stored, but the level could not be read: 1\n"


@pytest.mark.parametrize("endpoint", ["kyc", "token"])
def test_a_failure_that_is_not_the_levels_own_ends_the_refetch(
    service: FakeService, endpoint: str
) -> None:
    """A 429, or a token that cannot be had: no further call is made."""
    LinkedIdentity.objects.update(**LEVEL_TOO)
    expire_token()
    service.answers[endpoint] = http(b"", status="429 Slow")
    assert refetched(row()) is Refetched.NOT_NOW
    assert (service.calls("claims"), row().last_error) == (0, "rate_limited")


def test_a_level_is_stored_though_the_claims_cannot_be_read(
    service: FakeService,
) -> None:
    """It is the service's own word, which needs no credential."""
    LinkedIdentity.objects.update(**LEVEL_TOO)
    service.kyc = {"kyc_level": "level_3"}
    service.answers["claims"] = html("500 Oops")
    assert refetched(row()) is Refetched.OUTAGE
    assert (row().kyc_level, row().refetch_failures) == ("level_3", 1)


@pytest.mark.parametrize(
    ("digest", "share"), [("00000000", 0.65), ("7fffffff", 0.75), ("ffffffff", 0.85)]
)
def test_due_at_three_quarters_give_or_take_a_tenth(digest: str, share: float) -> None:
    """The place in the spread is the identity's own, so that it stays when the day is over."""
    now = timezone.now()
    identity = LinkedIdentity(subject_digest=digest + "0" * 56, scopes=["claims:read"])
    due_at = due.after_answers(identity, claims_until=now + 24 * HOUR)
    assert (due_at - now) / (24 * HOUR) == pytest.approx(share, abs=0.001)
