"""A re-fetch stores what is proven, revokes what is revoked, and never overtakes a revocation."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.core.cache import cache
from django.db import connections
from django.utils import timezone

from django_identity import signals
from django_identity.lifecycle import key_sets
from django_identity.lifecycle.upkeep import Refetched
from django_identity.models import Consent, LinkedIdentity, StoredClaim, TokenGrant
from tests.factories import make_claim, make_grant, make_identity, make_user
from tests.fake_service import FakeService, answer, html
from tests.lifecycle.refetching import refetched

pytestmark = pytest.mark.django_db(transaction=True)

REJECTED = answer({"success": False, "error": {"code": "x"}}, status="401 Unauthorized")


@pytest.fixture
def identity(service: FakeService) -> LinkedIdentity:
    due = timezone.now() - timedelta(seconds=1)
    made = make_identity(make_user(), refetch_due_at=due, scopes=["claims:read"])
    make_grant(made)
    return LinkedIdentity.objects.get(pk=made.pk)


def held() -> dict[str, bool]:
    """Claim -> whether it is proven and stands."""
    return {
        claim.claim_type: claim.valid_until is not None and not claim.revoked
        for claim in StoredClaim.objects.all()
    }


def expire_token() -> None:
    TokenGrant.objects.update(access_expires_at=timezone.now())


def with_claims(service: FakeService, *, revoked: tuple[str, ...] = (), **changes: Any) -> None:
    listed = [
        {"claim_type": name, "provider": "KYC", "revoked": name in revoked}
        for name in {*service.disclosed, *revoked}
    ]
    body = {
        "user_id": service.subject,
        "claims": listed,
        "credential": service.bend(service.credential()),
        "credential_format": "dc+sd-jwt",
        **changes,
    }
    service.answers["claims"] = {"success": True, "data": body}


def in_the_meantime(**columns: Any) -> Callable[[], None]:
    def change() -> None:
        try:
            LinkedIdentity.objects.all().change(**columns)
        finally:
            connections.close_all()

    return change


def test_one_refresh_and_one_read(service: FakeService, identity: LinkedIdentity) -> None:
    """The whole upkeep of a day: claims stored, due again at about three quarters of the life."""
    expire_token()
    assert refetched(identity) is Refetched.STORED
    assert [name for name, _, _ in service.requests] == ["jwks", "token", "claims"]
    assert held() == {"age_over_18": True}
    identity.refresh_from_db()
    assert identity.last_error == ""
    due_in = (identity.refetch_due_at - timezone.now()).total_seconds() / 3600
    assert 0.65 * 24 - 0.1 < due_in < 0.85 * 24


def test_gone_and_revoked_claims_close(service: FakeService, identity: LinkedIdentity) -> None:
    """What is listed no more is removed; what is said to be revoked is revoked, proof or not."""
    make_claim(identity, "unique_human")
    make_claim(identity, "kyc_verified")
    service.disclosed = {"age_over_18": True, "kyc_verified": True}
    with_claims(service, revoked=("kyc_verified",))
    assert refetched(identity) is Refetched.STORED
    assert held() == {"age_over_18": True, "kyc_verified": False}


def test_a_value_without_a_provider_proves_nothing_for_a_revoked_one(
    service: FakeService, identity: LinkedIdentity
) -> None:
    """Of two providers the one whose claim is revoked keeps no value and no proof."""
    service.disclosed = {"age_over_18": True}
    listed = [
        {"claim_type": "age_over_18", "provider": provider, "revoked": provider == "A"}
        for provider in ("A", "B")
    ]
    with_claims(service, claims=listed)
    assert refetched(identity) is Refetched.STORED
    rows = StoredClaim.objects.order_by("provider")
    assert [(row.provider, row.value, row.revoked) for row in rows] == [
        ("A", None, True), ("B", True, False),
    ]  # fmt: skip


def test_an_empty_list_needs_no_credential(service: FakeService, identity: LinkedIdentity) -> None:
    """If nothing is listed any more, nothing is held any more."""
    make_claim(identity)
    with_claims(service, claims=[], credential=None)
    assert refetched(identity) is Refetched.STORED
    assert held() == {}


def test_an_older_answer_brings_nothing_back_after_an_empty_one(
    service: FakeService, identity: LinkedIdentity
) -> None:
    """A cache of the service still had the answer from before the revocation."""
    service.payload["iat"] = int(time.time()) - 3600
    with_claims(service)
    stale = service.answers["claims"]
    service.payload["iat"] = int(time.time())
    with_claims(service)
    assert refetched(identity) is Refetched.STORED
    with_claims(service, claims=[], credential=None)
    assert refetched(identity) is Refetched.STORED
    service.answers["claims"] = stale
    assert refetched(identity) is Refetched.FAILED
    assert held() == {}


def test_a_revocation_in_a_bad_answer_outdates_a_refetch_under_way(
    service: FakeService, identity: LinkedIdentity
) -> None:
    """As every writer it raises the version, so the other answer is discarded."""
    make_claim(identity)
    listed = [
        {"claim_type": name, "provider": "KYC", "revoked": name == "age_over_18"}
        for name in ("age_over_18", "unique_human")
    ]
    with_claims(service, claims=listed, credential=None)
    before = identity.version
    assert refetched(identity) is Refetched.FAILED
    identity.refresh_from_db()
    assert not held()["age_over_18"]
    assert identity.version == before + 2  # the revocation, and the failure
    assert identity.refetch_failures == 1


def test_unchanged_claims_are_no_news(service: FakeService, identity: LinkedIdentity) -> None:
    """``claims_changed`` is sent when what the claims say has changed, not when they are renewed;
    their rows stay.
    """
    heard: list[LinkedIdentity] = []

    def hear(*, identity: LinkedIdentity, **_kwargs: object) -> None:
        heard.append(identity)

    signals.claims_changed.connect(hear)
    try:
        refetched(identity)
        rows = list(StoredClaim.objects.values_list("pk", flat=True))
        identity.refresh_from_db()
        refetched(identity)
    finally:
        signals.claims_changed.disconnect(hear)
    assert heard == [identity]
    assert list(StoredClaim.objects.values_list("pk", flat=True)) == rows


@pytest.mark.parametrize(
    "break_it",
    [
        lambda service: service.payload.update(aud="another-client"),
        lambda service: service.payload.update(sub="another-subject"),
        lambda service: service.payload.update(environment="live"),
        lambda service: service.payload.update(exp=1),
        lambda service: setattr(service, "bend", lambda text: text.replace("~", "~WyJ4Il0~", 1)),
    ],
    ids=["aud", "sub", "environment", "exp", "unlisted"],
)
def test_a_rejected_credential_changes_nothing_but_may_revoke(
    service: FakeService, identity: LinkedIdentity, break_it: Callable[[FakeService], None]
) -> None:
    """Whatever check fails: the held claims stand as they are, but for those said to be revoked."""
    make_claim(identity)
    make_claim(identity, "unique_human")
    break_it(service)
    with_claims(service, revoked=("unique_human",))
    assert refetched(identity) is Refetched.FAILED
    assert held() == {"age_over_18": True, "unique_human": False}
    identity.refresh_from_db()
    assert (identity.refetch_failures, identity.last_error) == (1, "credential_rejected")


@pytest.mark.parametrize(
    ("ahead", "outcome"), [(290, Refetched.STORED), (310, Refetched.FAILED)], ids=["a bit", "far"]
)
def test_the_services_clock_may_be_a_little_ahead(
    service: FakeService, identity: LinkedIdentity, ahead: int, outcome: Refetched
) -> None:
    """Clocks differ by minutes; a credential from further in the future is not believed."""
    service.payload["iat"] = int(time.time()) + ahead
    assert refetched(identity) is outcome
    assert held() == ({"age_over_18": True} if outcome is Refetched.STORED else {})


def test_a_credential_that_lives_longer_is_stored_for_a_day(
    service: FakeService, identity: LinkedIdentity
) -> None:
    """24 hours is the service's word; whatever the credential says, its claims end with them."""
    service.payload["exp"] = int(time.time()) + 30 * 86_400
    assert refetched(identity) is Refetched.STORED
    a_day_on = timezone.now() + timedelta(hours=24)
    identity.refresh_from_db()
    assert identity.credential_expires_at <= a_day_on
    assert StoredClaim.objects.get().valid_until <= a_day_on
    assert identity.refetch_due_at < a_day_on


def test_an_answer_about_somebody_else_revokes_nothing(
    service: FakeService, identity: LinkedIdentity
) -> None:
    """Another ``user_id``: the answer is not about this person in any part."""
    make_claim(identity)
    with_claims(service, revoked=("age_over_18",), user_id="somebody-else")
    assert refetched(identity) is Refetched.FAILED
    assert held() == {"age_over_18": True}


@pytest.mark.parametrize("changes", [{"iat": int(time.time()) - 7200}, None], ids=["old", "none"])
def test_an_older_credential_or_none_is_not_taken(
    service: FakeService, identity: LinkedIdentity, changes: dict[str, Any] | None
) -> None:
    """A replay of an older credential, or an answer without one, leaves the stored proof."""
    refetched(identity)
    identity.refresh_from_db()
    issued_at = identity.credential_issued_at
    if changes:
        service.payload.update(changes)
        service.disclosed = {"unique_human": True}
        with_claims(service)
    else:
        with_claims(service, credential=None)
    assert refetched(identity) is Refetched.FAILED
    identity.refresh_from_db()
    assert identity.credential_issued_at == issued_at
    assert held() == {"age_over_18": True}


def test_failures_back_off_on_the_row(service: FakeService, identity: LinkedIdentity) -> None:
    """From a minute to six hours, by chance, and visible; the first success forgets them."""
    service.answers["claims"] = {"success": True, "data": {}}
    for failures in range(1, 4):
        assert refetched(identity) is Refetched.FAILED
        identity.refresh_from_db()
        pause = (identity.refetch_due_at - timezone.now()).total_seconds()
        assert 30 * 2 ** (failures - 1) - 1 < pause <= 60 * 2 ** (failures - 1)
        assert (identity.refetch_failures, identity.last_error) == (failures, "malformed_answer")
    LinkedIdentity.objects.update(refetch_failures=30_000)
    identity.refresh_from_db()
    refetched(identity)
    identity.refresh_from_db()
    assert identity.refetch_due_at <= timezone.now() + timedelta(hours=6)
    service.answers.clear()
    assert refetched(identity) is Refetched.STORED
    identity.refresh_from_db()
    assert (identity.refetch_failures, identity.last_error) == (0, "")


def test_a_fresh_token_that_is_refused_means_the_consent_is_gone(
    service: FakeService, identity: LinkedIdentity
) -> None:
    """One refresh, one more try; then the grant is dropped and the site hears of it."""
    heard: list[LinkedIdentity] = []

    def hear(*, identity: LinkedIdentity, **_kwargs: object) -> None:
        heard.append(identity)

    service.answers["claims"] = REJECTED
    signals.reauthorization_needed.connect(hear)
    try:
        assert refetched(identity) is Refetched.REAUTHORIZATION_NEEDED
    finally:
        signals.reauthorization_needed.disconnect(hear)
    assert (service.calls("token"), service.calls("claims"), heard) == (1, 2, [identity])
    grant = TokenGrant.objects.get()
    assert (grant.needs_reauthorization, grant.access_token) == (True, "")
    identity.refresh_from_db()
    assert identity.refetch_due_at is None
    assert identity.last_error == "reauthorization_needed"


@pytest.mark.parametrize(
    "event",
    [
        {"consent": Consent.REVOKED},
        {"signed_in_at": timezone.now()},
        {"refetch_due_at": timezone.now()},
    ],
    ids=["revoked", "signed in anew", "due anew"],
)
def test_what_comes_first_wins(
    service: FakeService, identity: LinkedIdentity, event: dict[str, Any]
) -> None:
    """A revocation, a sign-in or an event while the answer is on its way: nothing of it is
    stored.
    """
    service.meanwhile["claims"] = in_the_meantime(**event)
    assert refetched(identity) is Refetched.OVERTAKEN
    assert held() == {}
    row = LinkedIdentity.objects.get()
    assert row.credential_issued_at is None
    assert all(getattr(row, name) == value for name, value in event.items())


def test_a_failure_does_not_hide_an_event(service: FakeService, identity: LinkedIdentity) -> None:
    """An event that made the re-fetch due while another one failed keeps it due."""
    now = timezone.now()
    service.answers["claims"] = html()
    service.meanwhile["claims"] = in_the_meantime(refetch_due_at=now)
    refetched(identity)
    assert LinkedIdentity.objects.get().refetch_due_at == now


def test_no_keys_means_later(service: FakeService, identity: LinkedIdentity) -> None:
    """Without a key set nothing is spent."""
    service.answers["jwks"] = html("500 Oops")
    assert refetched(identity) is Refetched.OUTAGE
    identity.refresh_from_db()
    assert identity.last_error == "keys_unavailable"
    assert service.calls("claims") == 0
    service.answers.clear()
    cache.clear()
    key_sets.forget()
    assert refetched(identity) is Refetched.STORED


def test_what_cannot_be_stored_opens_nothing(
    service: FakeService, identity: LinkedIdentity
) -> None:
    """A NUL or an endless name in a signed claim is no reason to lose the others."""
    service.disclosed = {"age_over_18": True, "nul": "a\0b", "n" * 300: True}
    with_claims(service, claims=[])
    assert refetched(identity) is Refetched.STORED
    assert held() == {"age_over_18": True}


def test_without_consent_nothing_is_read(service: FakeService, identity: LinkedIdentity) -> None:
    """No call is made for a person who took the consent back."""
    LinkedIdentity.objects.update(consent=Consent.REVOKED)
    assert refetched(identity) is None
    assert service.requests == []
