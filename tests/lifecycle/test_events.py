"""Events: each one once, at once, and with one end whatever the order."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from django_identity import conf, handlers, signals
from django_identity.handlers import EventType
from django_identity.lifecycle.erasure import dossier_of
from django_identity.lifecycle.operators.doctor import diagnose
from django_identity.lifecycle.standing import Requirement, standing_of
from django_identity.models import (
    Consent,
    ErasureReceipt,
    LinkedIdentity,
    StoredClaim,
    TokenGrant,
    WebhookEvent,
)
from tests.deliveries import SECRET, deliver, event_body, post
from tests.faces.conftest import sign_in
from tests.hostile import HostileService
from tests.records import make_claim, make_identity, make_user

pytestmark = pytest.mark.django_db(transaction=True)

NOW = timezone.now().replace(microsecond=0)


def linked(**fields: Any) -> LinkedIdentity:
    """A person who signed in an hour ago, with tokens and a proven claim."""
    since = NOW - timedelta(hours=1)
    held = {"consent_changed_at": since, "signed_in_at": since, "kyc_changed_at": since,
            "scopes": ["profile:read", "kyc:read", "claims:read"], **fields}  # fmt: skip
    identity = make_identity(make_user(), **held)
    make_claim(identity)
    TokenGrant.objects.create(
        identity=identity,
        access_token="sealed",
        refresh_token="sealed",
        access_expires_at=NOW + timedelta(hours=1),
    )
    return identity


def outcomes() -> list[str]:
    return list(WebhookEvent.objects.order_by("pk").values_list("outcome", flat=True))


def test_an_event_is_stored_and_applied() -> None:
    """One delivery: one row, and its effect on the identity."""
    identity = linked()
    deliver("kyc.verified", kyc_level="level_1", status="verified", provider="Vendor")
    identity.refresh_from_db()
    assert (identity.kyc_level, identity.kyc_provider) == ("level_1", "Vendor")
    assert identity.refetch_due_at is not None
    event = WebhookEvent.objects.get()
    assert (event.outcome, event.subject) == ("applied", "subject-1")
    assert event.payload["kyc_level"] == "level_1"


def test_a_repeat_does_nothing() -> None:
    """The same event id again is acknowledged, and changes nothing, not even a due date."""
    identity = linked()
    body = event_body("claim.issued")
    assert post(body).status_code == 200
    LinkedIdentity.objects.update(refetch_due_at=None)
    assert post(body).json() == {"received": True}
    identity.refresh_from_db()
    assert identity.refetch_due_at is None
    assert WebhookEvent.objects.count() == 1


@pytest.mark.parametrize(
    "other", ["evt_a", "evt_A ", "Evt_A", "evt_Á", "evt_\u0041\u0301", " evt_A"]
)
def test_ids_are_compared_exactly(other: str) -> None:
    """Case, accents and blanks tell events apart, whatever the collation."""
    for event_id in ("evt_A", other):
        deliver("kyc.verified", event_id=event_id)
    assert WebhookEvent.objects.count() == 2


@pytest.mark.parametrize("other", ["SUBJECT-1", "subject-1 ", " subject-1", "sübject-1"])
def test_subjects_are_compared_exactly(other: str) -> None:
    """An event about ``SUBJECT-1`` is about nobody here."""
    linked()
    deliver("consent.revoked", subject=other)
    assert LinkedIdentity.objects.get().consent == Consent.GRANTED
    assert outcomes() == ["ignored"]


def test_another_applications_event_is_another_subject(settings) -> None:
    """What is delivered to one application changes nothing under the other."""
    given = settings.DJANGO_IDENTITY["default"]
    settings.DJANGO_IDENTITY = {"default": given, "other": given}
    linked(application="other")
    deliver("consent.revoked")
    assert LinkedIdentity.objects.get().consent == Consent.GRANTED


def test_revocation_takes_everything_at_once() -> None:
    """Consent, tokens, claims and credential: gone when the response leaves."""
    identity = linked(credential="sealed", credential_expires_at=NOW + timedelta(hours=1))
    deliver("consent.revoked")
    identity.refresh_from_db()
    assert identity.consent == Consent.REVOKED
    assert (identity.credential, identity.credential_expires_at) == ("", None)
    assert identity.refetch_due_at is None
    assert not TokenGrant.objects.exists()
    assert list(StoredClaim.objects.values_list("revoked", flat=True)) == [True]
    assert not standing_of(identity.user).is_linked


def test_revocation_empties_kyc_and_claim_values_at_once() -> None:
    """The service's terms: stop processing at once."""
    identity = linked(kyc_provider="Vendor", kyc_verified_at=NOW, kyc_checked_at=NOW)
    make_claim(identity, "country_resident", {"country": "NG"}, revoked=True)
    deliver("consent.revoked")
    identity.refresh_from_db()
    kyc = (identity.kyc_level, identity.kyc_status, identity.kyc_provider)
    assert (*kyc, identity.kyc_verified_at, identity.kyc_checked_at) == ("", "", "", None, None)
    assert set(StoredClaim.objects.values_list("value", flat=True)) == {None}


def test_a_grant_and_a_kyc_event_open_nothing_after_a_revocation() -> None:
    """Whichever comes first: the person has to sign in. The KYC data is not even stored."""
    for events in itertools.permutations(["consent.granted", "kyc.verified"]):
        identity = linked()
        deliver("consent.revoked", at=NOW)
        for event_type in events:
            deliver(event_type, at=NOW + timedelta(seconds=1), kyc_level="level_2")
        identity.refresh_from_db()
        assert identity.consent == Consent.GRANTED
        assert not standing_of(identity.user).has_kyc_level("level_1")
        event = WebhookEvent.objects.filter(event_type="kyc.verified").latest("pk")
        assert (event.outcome, event.payload) == ("ignored", None)
        identity.user.delete()


@pytest.mark.parametrize("name", ["consent.revoked", "consent_revoked"])
def test_revocation_has_two_names(name: str) -> None:
    """The policy text calls it otherwise than the list of events."""
    linked()
    deliver(name)
    assert LinkedIdentity.objects.get().consent == Consent.REVOKED
    assert WebhookEvent.objects.get().event_type == "consent.revoked"


def test_a_grant_brings_back_consent_and_nothing_else() -> None:
    """Tokens and claims that a revocation took are gone until the person signs in."""
    identity = linked()
    deliver("consent.revoked", at=NOW)
    deliver("consent.granted", at=NOW + timedelta(seconds=1))
    standing = standing_of(identity.user)
    assert standing.is_linked
    assert standing.proven_claims() == {}
    assert not TokenGrant.objects.exists()


@pytest.mark.parametrize("late", ["consent.revoked", "consent.granted"])
def test_a_grant_beside_an_older_revocation_opens_nothing(late: str) -> None:
    """Whichever comes in last: the consent reads "granted", and the person is told to renew."""
    identity = linked()
    moments = {"consent.revoked": -600, "consent.granted": -300}
    for kind in sorted(moments, key=lambda kind: kind == late):
        deliver(kind, at=timezone.now() + timedelta(seconds=moments[kind]))
    identity.refresh_from_db()
    assert identity.consent == Consent.GRANTED
    standing = standing_of(identity.user)
    assert not standing.has_claim(Requirement("age_over_18"))
    assert not standing.has_kyc_level(identity.kyc_level or "level_1")
    assert not TokenGrant.objects.exists()
    page = dossier_of(identity.user, application=conf.application())
    assert page.needs_reauthorization


def test_an_old_grant_is_not_taken(settings) -> None:
    """From before the horizon of the purge it could be a captured one."""
    linked(consent=Consent.REVOKED, consent_changed_at=NOW - timedelta(days=400))
    deliver("consent.granted", at=NOW - timedelta(days=181))
    assert LinkedIdentity.objects.get().consent == Consent.REVOKED
    assert outcomes() == ["superseded"]


@pytest.mark.parametrize("first", ["consent.granted", "consent.revoked"])
def test_at_equal_times_the_revocation_wins(first: str) -> None:
    """Whichever comes first."""
    linked()
    for event_type in (first, {"consent.granted", "consent.revoked"}.difference({first}).pop()):
        deliver(event_type, at=NOW)
    assert LinkedIdentity.objects.get().consent == Consent.REVOKED


@pytest.mark.parametrize("first", ["kyc.verified", "kyc.rejected"])
def test_at_equal_times_the_rejection_wins(first: str) -> None:
    """Whichever comes first, whatever its id, and though it calls itself verified."""
    linked()
    both = (first, {"kyc.verified", "kyc.rejected"}.difference({first}).pop())
    for second in range(6):
        for event_type in both:
            event_id, at = f"{event_type}-{second}", NOW + timedelta(seconds=second)
            deliver(event_type, event_id=event_id, at=at, status="verified", kyc_level="level_2")
        assert not standing_of(LinkedIdentity.objects.get().user).has_kyc_level("level_1")


def test_an_older_event_is_superseded() -> None:
    """What happened before the sign-in, or before a newer event, changes nothing."""
    identity = linked()
    for event_type in ("kyc.rejected", "consent.revoked", "claim.issued", "claim.revoked"):
        deliver(event_type, at=NOW - timedelta(hours=2))
    identity.refresh_from_db()
    assert outcomes() == ["superseded"] * 4
    assert standing_of(identity.user).proven_claims() == {"age_over_18": True}
    assert TokenGrant.objects.exists()


def test_nothing_comes_back_while_an_erasure_is_pending() -> None:
    """Not even with a consent of after the request."""
    identity = linked()
    deliver("data.deletion_requested")
    deliver("consent.granted", at=timezone.now() + timedelta(minutes=1))
    standing = standing_of(identity.user)
    assert not standing.is_linked
    assert standing.proven_claims() == {}
    assert not TokenGrant.objects.exists()


def test_the_future_is_at_most_five_minutes_away() -> None:
    """A wrong clock cannot outrank every revocation to come."""
    linked()
    now = timezone.now()
    deliver("consent.granted", at=now + timedelta(days=3650))
    assert LinkedIdentity.objects.get().consent_changed_at < timezone.now() + timedelta(minutes=6)
    deliver("consent.revoked", at=now + timedelta(minutes=7))
    assert LinkedIdentity.objects.get().consent == Consent.REVOKED


def test_a_named_claim_is_revoked_alone() -> None:
    """Of that type and provider; without a name, all of them."""
    identity = linked()
    make_claim(identity, "kyc_verified", provider="A")
    make_claim(identity, "kyc_verified", provider="B")
    deliver("claim.revoked", claim_type="kyc_verified", provider="A")
    standing = StoredClaim.objects.filter(revoked=False).order_by("pk")
    assert [(claim.claim_type, claim.provider) for claim in standing] == [
        ("age_over_18", "KYC"),
        ("kyc_verified", "B"),
    ]
    deliver("claim.revoked")
    assert not standing.all().exists()


def test_a_claim_of_an_unknown_provider_is_revoked_whoever_proved_it() -> None:
    """The service may name its vendor where the claim names the service: nobody can tell."""
    identity = linked()
    deliver("claim.revoked", claim_type="age_over_18", provider="Vendor")
    assert not standing_of(identity.user).has_claim(Requirement("age_over_18"))


def test_a_claim_proven_anew_stands() -> None:
    """A credential younger than the revocation, by more than clocks differ, proves it again."""
    linked(credential_issued_at=NOW - timedelta(minutes=10))
    deliver("claim.revoked", at=NOW - timedelta(minutes=16))
    assert StoredClaim.objects.filter(revoked=False).exists()
    deliver("claim.revoked", at=NOW - timedelta(minutes=14))
    assert not StoredClaim.objects.filter(revoked=False).exists()


def test_what_a_kyc_event_leaves_out_is_emptied() -> None:
    """So that the end does not depend on what was known before."""
    identity = linked(kyc_provider="Vendor")
    deliver("kyc.verified")
    identity.refresh_from_db()
    held = (identity.kyc_status, identity.kyc_level, identity.kyc_provider)
    assert held == ("verified", "", "")


@pytest.mark.parametrize("scopes", [[], ["profile:read", "claims:read"]])
def test_a_kyc_event_without_the_scope_changes_nothing(scopes: list[str]) -> None:
    """It is stored without its payload, and the gate of its level stays closed."""
    identity = linked(scopes=scopes, kyc_level="", kyc_status="")
    deliver("kyc.verified", kyc_level="level_2", provider="Vendor")
    identity.refresh_from_db()
    assert (identity.kyc_level, identity.kyc_provider, identity.refetch_due_at) == ("", "", None)
    assert not standing_of(identity.user).has_kyc_level("level_1")
    event = WebhookEvent.objects.get()
    assert (event.outcome, event.payload, event.subject) == ("ignored", None, "subject-1")


def test_a_sign_in_without_the_scope_takes_no_kyc_event(
    service: HostileService, settings: Any
) -> None:
    """Nor one that came in while the person was on the way."""
    asked = {"SCOPES": ["profile:read", "claims:read"], "WEBHOOK_SECRETS": [SECRET], "TIMEOUT": 10}
    settings.DJANGO_IDENTITY = {"default": service.settings(**asked)}
    later = timezone.now() + timedelta(seconds=5)
    service.meanwhile["claims"] = lambda: deliver("kyc.verified", at=later, kyc_level="level_2")
    sign_in(Client())
    identity = LinkedIdentity.objects.get()
    assert identity.kyc_level == ""
    assert WebhookEvent.objects.get().payload is None


@pytest.mark.parametrize("event_type", EventType)
def test_an_event_that_names_nobody_is_kept_as_failed(event_type: str) -> None:
    """It is acknowledged, changes nothing, and the operators see it."""
    linked()
    body = event_body(event_type, subject="", kyc_level="level_1")
    assert [post(body).status_code for _ in range(2)] == [200, 200]
    event = WebhookEvent.objects.get()
    assert (event.outcome, event.error, event.next_attempt_at) == ("failed", "names_nobody", None)
    assert LinkedIdentity.objects.get().last_event_digest == ""
    assert not ErasureReceipt.objects.exists()
    assert any(finding.check == "events" for finding in diagnose())


@pytest.mark.parametrize("name", ["userId", "sub"])
def test_an_event_may_name_the_person_otherwise(name: str) -> None:
    """The spec shows the data of one type only."""
    linked()
    assert post(event_body("consent.revoked", subject="", **{name: "subject-1"})).status_code == 200
    assert LinkedIdentity.objects.get().consent == Consent.REVOKED


@pytest.mark.parametrize("event_type", ["kyc.verified", "wallet.opened"])
def test_of_the_payload_only_what_somebody_needs_is_kept(event_type: str) -> None:
    """The members that the spec names; all of it where the site has a handler of that type."""
    linked()
    deliver(event_type, provider="Vendor", iban="DE02")
    known = {"user_id": "subject-1", "provider": "Vendor"}
    stored = WebhookEvent.objects.get()
    assert stored.payload == (known if event_type == "kyc.verified" else None)
    with handler_of(event_type):
        deliver(event_type, provider="Vendor", iban="DE02")
    assert WebhookEvent.objects.latest("pk").payload == known | {"iban": "DE02"}


@contextmanager
def handler_of(event_type: str) -> Iterator[None]:
    """The site has a handler for the time of the block."""
    before = {kind: dict(those) for kind, those in handlers._registry.items()}
    handlers.on_event(event_type, name="of this test")(lambda event: None)
    try:
        yield
    finally:
        handlers._registry.clear()
        handlers._registry.update(before)


def test_an_unknown_type_is_stored_and_ignored() -> None:
    """A service may learn to say more."""
    linked()
    deliver("wallet.opened")
    post(event_body("wallet.opened", subject=""))
    assert set(outcomes()) == {"ignored"}


STORY = [
    ("kyc.verified", 1, {"kyc_level": "level_2"}),
    ("kyc.verified", 1, {"kyc_level": "level_1", "provider": "B"}),
    ("consent.revoked", 2, {}),
    ("consent.granted", 3, {}),
]


def end_state() -> tuple[object, ...]:
    identity = LinkedIdentity.objects.get()
    by_clock = ("id", "user", "created_at", "updated_at", "last_event_digest", "refetch_due_at")
    columns = [
        str(getattr(identity, field.attname))
        for field in identity._meta.concrete_fields
        if field.name not in by_clock
    ]
    is_due = identity.refetch_due_at is not None
    standing = StoredClaim.objects.filter(revoked=False)
    return (*columns, is_due, standing.count(), TokenGrant.objects.count())


def test_the_end_does_not_depend_on_the_order() -> None:
    """All orders of four events, two of them at one moment, end alike."""
    bodies = [
        event_body(event_type, event_id=f"story-{number}", at=NOW + timedelta(seconds=at), **about)
        for number, (event_type, at, about) in enumerate(STORY)
    ]
    ends = set()
    for order in itertools.permutations(bodies):
        identity = linked()
        for body in order:
            assert post(body).status_code == 200
        ends.add(end_state())
        WebhookEvent.objects.all().delete()
        identity.user.delete()
    assert len(ends) == 1


@pytest.fixture
def heard() -> Iterator[list[tuple[str, Any]]]:
    """What receivers of the signals were told, and when: outside any transaction."""
    told: list[tuple[str, Any]] = []
    names = (
        "consent_granted", "consent_revoked", "kyc_changed", "claims_changed", "event_received",
    )  # fmt: skip
    receivers = []
    for name in names:

        def receive(sender: object, *, name: str = name, **arguments: Any) -> None:
            assert not connection.in_atomic_block
            told.append((name, arguments.get("identity") or arguments.get("event")))

        getattr(signals, name).connect(receive)
        receivers.append((name, receive))
    yield told
    for name, receiver in receivers:
        getattr(signals, name).disconnect(receiver)


def test_the_site_hears_of_it_after_the_commit(heard: list[tuple[str, Any]]) -> None:
    """Each event once, and what it changed; nothing of what was too late."""
    identity = linked()
    deliver("kyc.rejected")
    deliver("claim.revoked")
    deliver("consent.revoked")
    deliver("consent.granted", at=NOW - timedelta(hours=2))
    names = [name for name, _ in heard]
    assert names == [
        "event_received", "kyc_changed",
        "event_received", "claims_changed",
        "event_received", "consent_revoked",
        "event_received",
    ]  # fmt: skip
    assert heard[1][1] == identity
    assert heard[1][1].kyc_status == "rejected"


def test_a_receiver_that_raises_changes_nothing(heard: list[tuple[str, Any]]) -> None:
    """The delivery is acknowledged and applied all the same."""

    def burst(sender: object, **_arguments: Any) -> None:
        raise RuntimeError

    signals.consent_revoked.connect(burst)
    try:
        linked()
        deliver("consent.revoked")
    finally:
        signals.consent_revoked.disconnect(burst)
    assert LinkedIdentity.objects.get().consent == Consent.REVOKED
