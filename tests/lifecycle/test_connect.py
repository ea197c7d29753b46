"""Redeeming a code: revocations on the way, and what two lists of columns may touch."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.auth.models import User
from django.db import connections
from django.test import override_settings
from django.utils import timezone

from django_identity import conf, signals
from django_identity.exceptions import (
    ConnectOutcomeUnknown,
    ConsentWithdrawn,
)
from django_identity.lifecycle.arrival import connect
from django_identity.lifecycle.erasure import dossier
from django_identity.lifecycle.standing import standing_of
from django_identity.models import ConnectRedemption, Consent, LinkedIdentity
from tests import hostile
from tests.deliveries import SECRET, deliver
from tests.hostile import HostileService
from tests.lifecycle.redeeming import ADDRESS, redeem
from tests.lifecycle.withheld import WITHHELD
from tests.records import make_claim, make_identity, make_user

pytestmark = pytest.mark.django_db(transaction=True)

CODE = "CNX-AB12-0000"


@pytest.fixture
def user() -> User:
    return make_user()


# Revocations on the way


@pytest.mark.parametrize("event_type", ["consent.revoked", "data.deletion_requested"])
@pytest.mark.parametrize("known", [True, False])
def test_a_revocation_during_the_redemption(
    service: HostileService, user: User, event_type: str, known: bool
) -> None:
    """An event that arrives while the service is asked is obeyed."""
    identity = make_identity(user) if known else None

    def revoke() -> None:
        deliver(event_type)
        connections.close_all()

    service.meanwhile["request"] = revoke
    # The delivery takes its time on a busy machine, and the service waits for it.
    listening = service.settings(WEBHOOK_SECRETS=[SECRET], TIMEOUT=10)
    with (
        override_settings(DJANGO_IDENTITY={"default": listening}),
        pytest.raises(ConsentWithdrawn),
    ):
        redeem(user)
    if identity is None:
        assert not LinkedIdentity.objects.exists()
    else:
        identity.refresh_from_db()
        assert (identity.consent, identity.connect_request_id) == ("revoked", "")
    assert ConnectRedemption.objects.get().outcome == "consent_withdrawn"


@pytest.mark.parametrize("known", [True, False])
def test_its_own_event_overtakes_the_answer(
    service: HostileService, user: User, known: bool
) -> None:
    """``consent.granted`` of a redemption may be here before its answer; nothing comes twice."""
    if known:
        make_identity(user, consent=Consent.REVOKED)

    def grant() -> None:
        deliver("consent.granted")
        connections.close_all()

    service.meanwhile["request"] = grant
    listening = service.settings(WEBHOOK_SECRETS=[SECRET], TIMEOUT=10)
    with override_settings(DJANGO_IDENTITY={"default": listening}):
        redeem(user)
        deliver("consent.granted")
    identity = LinkedIdentity.objects.get()
    assert (identity.user, identity.consent) == (user, Consent.GRANTED)
    assert identity.scopes == ["profile:basic", "kyc:status"]
    assert identity.kyc_level == "level_2"


def test_a_revocation_after_the_redemption(service: HostileService, user: User) -> None:
    """What a code brought ends with the consent, at once."""
    listening = service.settings(WEBHOOK_SECRETS=[SECRET])
    with override_settings(DJANGO_IDENTITY={"default": listening}):
        redeem(user)
        assert standing_of(user).has_kyc_level("level_2")
        assert LinkedIdentity.objects.get().connect_person == "Ada O., a***@example.org"
        deliver("consent.revoked")
    assert not standing_of(make_user_again(user)).is_linked
    assert LinkedIdentity.objects.get().connect_person == ""


@pytest.mark.parametrize(("seconds_later", "level"), [(-60, "level_2"), (1, "level_1")])
def test_an_older_event_does_not_overtake(
    service: HostileService, user: User, seconds_later: int, level: str
) -> None:
    """News from before the answer changes nothing; news from after it does."""
    listening = service.settings(WEBHOOK_SECRETS=[SECRET])
    with override_settings(DJANGO_IDENTITY={"default": listening}):
        redeem(user)
        at = timezone.now() + timedelta(seconds=seconds_later)
        deliver("kyc.rejected", at=at, kyc_level="level_1", status="rejected", provider="KYC")
    assert LinkedIdentity.objects.get().kyc_level == level


def make_user_again(user: User) -> User:
    """As the next request has it, with nothing remembered."""
    return User.objects.get(pk=user.pk)


@pytest.mark.parametrize(
    ("revoked_ago", "issued_ago", "granted"),
    [(60, 0, True), (-1, 0, False), (60, 61, False), (60, 59, True), (0, 0, False)],
)
def test_a_consent_older_than_the_revocation(
    service: HostileService, user: User, revoked_ago: int, issued_ago: int, granted: bool
) -> None:
    """An answer issued before the newest revocation, or with it, does not grant again."""
    now = timezone.now().replace(microsecond=0)
    issued_at = now - timedelta(seconds=issued_ago)
    revoked_at = now - timedelta(seconds=revoked_ago)
    make_identity(user, consent=Consent.REVOKED, consent_changed_at=revoked_at)
    service.connect = {"issued_at": issued_at.isoformat()}
    if granted:
        redeem(user)
    else:
        with pytest.raises(ConsentWithdrawn):
            redeem(user)
    assert (LinkedIdentity.objects.get().consent == Consent.GRANTED) is granted


def test_a_clock_ahead_loses_no_revocation(service: HostileService, user: User) -> None:
    """Consent counts from the service's own time, so what it revokes after that is newer."""
    issued_at = timezone.now() - timedelta(seconds=90)
    service.connect = {"issued_at": issued_at.isoformat()}
    identity = redeem(user).identity
    assert identity.consent_changed_at == issued_at.replace(microsecond=0)
    service.connect = {"issued_at": "9999-12-31T23:59:59Z"}
    identity = redeem(user, 1).identity
    assert identity.consent_changed_at <= timezone.now()
    assert identity.connect_issued_at <= timezone.now(), "or it would outlast a revocation"


# What is stored


def test_what_a_sign_in_brought_stays(service: HostileService, user: User) -> None:
    """A code brings no credential, so it touches no claim and no credential's column."""
    identity = make_identity(user, credential="sealed", refetch_failures=2)
    make_claim(identity)
    redeem(user)
    identity.refresh_from_db()
    assert (identity.credential, identity.refetch_failures) == ("sealed", 2)
    assert identity.claims.get().value is True


def test_signals_are_sent(service: HostileService, user: User) -> None:
    """Linking by a code is announced like linking by a sign-in."""
    heard: list[str] = []
    receivers = {
        name: lambda name=name, **_: heard.append(name)
        for name in ("identity_linked", "consent_granted", "kyc_changed")
    }
    for name, receiver in receivers.items():
        getattr(signals, name).connect(receiver)
    try:
        redeem(user)
    finally:
        for name, receiver in receivers.items():
            getattr(signals, name).disconnect(receiver)
    assert heard == ["identity_linked", "consent_granted", "kyc_changed"]


def test_spent_codes_are_forgotten(service: HostileService, user: User) -> None:
    """What is kept of a code goes when the code has run out anyway."""
    redeem(user)
    ConnectRedemption.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    redeem(user, 1)
    assert ConnectRedemption.objects.count() == 1


def test_a_redemption_is_in_the_dossier(service: HostileService, user: User) -> None:
    """The person sees that a code was handed in, and what it brought."""
    redeem(user)
    held = json.loads("".join(dossier.export_of(user)))
    assert held["connectredemption"][0]["outcome"] == "completed"
    assert held["linkedidentity"][0]["connect_request_id"] == "req_1"
    assert CODE not in str(held)


def test_every_column_is_in_the_dossier() -> None:
    """A new column is shown or withheld, never forgotten."""
    for place in dossier.PLACES:
        columns = {field.name for field in place.model._meta.concrete_fields}
        assert columns == {*place.shown, *WITHHELD[place.model]}


def test_another_environment_is_another_code(service: HostileService, user: User) -> None:
    """What was handed in under one application says nothing about another."""
    redeem(user)
    other = {"default": service.settings(), "second": service.settings()}
    with override_settings(DJANGO_IDENTITY=other):
        second = conf.application("second")
        connect.redeem(second, "CNX-AB12-0000", user=user, address=ADDRESS)
    assert service.calls("request") == 2


def test_an_unknown_outcome_is_final(service: HostileService, user: User) -> None:
    """A code in doubt is not sent again."""
    service.answers["request"] = hostile.html("500 Oops")
    with pytest.raises(ConnectOutcomeUnknown) as raised:
        redeem(user)
    assert connect.is_spent(raised.value)
    assert datetime.now(UTC) - ConnectRedemption.objects.get().created_at < timedelta(minutes=1)
