"""Signals: which one tells the site of what, each once and after the commit."""

from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.dispatch import Signal
from django.utils import timezone

from django_identity import signals
from django_identity.exceptions import ReauthorizationNeeded
from django_identity.lifecycle.leaving import disconnecting
from django_identity.lifecycle.minute import follow_up
from django_identity.lifecycle.operators import interventions
from django_identity.lifecycle.said.tokens import access_token_for
from django_identity.models import Consent, LinkedIdentity
from tests.deliveries import deliver
from tests.factories import make_claim, make_identity, make_user
from tests.fake_service import INVALID_GRANT, FakeService
from tests.lifecycle.grants import expired

pytestmark = pytest.mark.django_db(transaction=True)

Heard = list[tuple[str, dict[str, Any]]]
AN_HOUR_AGO = timezone.now() - timedelta(hours=1)


@pytest.fixture
def heard() -> Iterator[Heard]:
    """What receivers of all signals were told, with the arguments."""
    told: Heard = []
    connected = []
    for name, signal in vars(signals).items():
        if isinstance(signal, Signal):

            def receive(
                sender: object, *, told_by: str = name, **arguments: Any
            ) -> None:
                told.append(
                    (told_by if not connection.in_atomic_block else "early", arguments)
                )

            signal.connect(receive)
            connected.append((signal, receive))
    yield told
    for signal, receive in connected:
        signal.disconnect(receive)


def names(heard: Heard) -> list[str]:
    return [name for name, _arguments in heard]


def linked(**fields: Any) -> LinkedIdentity:
    """Somebody who signed in an hour ago, with a proven claim."""
    held = {"signed_in_at": AN_HOUR_AGO, "scopes": ["kyc:read"]}
    held |= fields
    identity = make_identity(make_user(), **held)
    make_claim(identity)
    return identity


@pytest.mark.parametrize(
    ("event_type", "told"),
    [
        ("kyc.verified", []),
        ("kyc.rejected", ["kyc_changed"]),
        ("claim.issued", []),
        ("claim.revoked", ["claims_changed", "kyc_changed"]),
        ("consent.revoked", ["sessions_ended", "consent_revoked"]),
        (
            "data.deletion_requested",
            ["sessions_ended", "identity_unlinked", "consent_revoked"],
        ),
    ],
)
def test_each_event_is_told(heard: Heard, event_type: str, told: list[str]) -> None:
    """That it came, and what it changed for whom. What brings something is read later."""
    identity = linked()
    deliver(
        event_type, status="rejected" if event_type == "kyc.rejected" else "verified"
    )
    assert names(heard) == [*told, "event_received"]
    assert heard[-1][1]["event"].event_type == event_type
    for name, arguments in heard[:-1]:
        if name in ("sessions_ended", "identity_unlinked"):
            assert arguments["user"] == identity.user
        else:
            assert arguments["identity"] == identity


def test_an_event_about_nobody_is_told_as_received(heard: Heard) -> None:
    """There is no identity that changed."""
    deliver("consent.revoked", subject="nobody")
    assert names(heard) == ["event_received"]


def test_an_erasure_is_told_when_it_is_done(heard: Heard) -> None:
    """What is ours at once; the account with its receipt, which names nobody."""
    linked()
    deliver("data.deletion_requested")
    follow_up.retry_pending()
    assert names(heard) == [
        "sessions_ended",
        "identity_unlinked",
        "consent_revoked",
        "event_received",
        "data_erased",
    ]
    assert heard[-1][1]["receipt"].erased_at is not None


def test_a_bond_that_is_taken_away_is_told_once(heard: Heard) -> None:
    """With the user; there is no identity any more."""
    identity = linked(account_made=False)
    user = identity.user
    assert [disconnecting.disconnect(identity) for _ in range(2)] == [True, False]
    assert names(heard) == ["sessions_ended", "identity_unlinked"]
    for _name, told in heard:
        assert told["user"] == user


def test_the_end_of_the_grant_is_told_with_the_level_that_it_brought(
    service: FakeService, heard: Heard
) -> None:
    """A socket behind a gate with that level is asked again."""
    identity = linked()
    expired(identity)
    service.answers["token"] = INVALID_GRANT
    with suppress(ReauthorizationNeeded):
        access_token_for(identity)
    assert names(heard) == ["kyc_changed", "reauthorization_needed"]
    for _name, told in heard:
        assert told["identity"].kyc_state == ("", "")


def test_a_refresh_with_fewer_scopes_is_told_with_what_goes(
    service: FakeService, settings: Any, heard: Heard
) -> None:
    """The level, the claims, and the grant."""
    later = ["claims:read", "kyc:read"]
    settings.DJANGO_IDENTITY = service.settings(
        SCOPES=["profile:read"], LATER_SCOPES=later
    )
    identity = linked(scopes=["profile:read", *later])
    expired(identity, scopes=identity.scopes)
    service.token = {"scope": "profile:read"}
    with suppress(ReauthorizationNeeded):
        access_token_for(identity)
    assert names(heard) == ["claims_changed", "kyc_changed", "reauthorization_needed"]
    for _name, told in heard:
        assert told["identity"].scopes == ["profile:read"]


def test_a_level_that_is_only_repeated_is_not_told(heard: Heard) -> None:
    linked(kyc_level="level_2", kyc_status="verified")
    deliver("kyc.verified", kyc_level="level_2", status="verified")
    assert names(heard) == ["event_received"]


def test_a_revocation_by_an_admin_is_told_once_it_stands(heard: Heard) -> None:
    """Like one by the service; what was rolled back is not told."""
    identity = linked()
    with suppress(KeyError), transaction.atomic():
        interventions.revoke([identity])
        raise KeyError
    assert heard == []
    assert interventions.revoke([identity]) == 1
    assert names(heard) == ["sessions_ended", "consent_revoked"]
    assert heard[1][1]["identity"].consent == Consent.REVOKED


def test_a_receiver_that_raises_undoes_nothing_and_stops_nobody(heard: Heard) -> None:
    """The change stands, and the receivers after it are called."""
    told: list[object] = []

    def burst(**_arguments: Any) -> None:
        raise RuntimeError

    def after_it(**arguments: Any) -> None:
        told.append(arguments["identity"])

    signals.consent_revoked.connect(burst)
    signals.consent_revoked.connect(after_it)
    identity = linked()
    assert interventions.revoke([identity]) == 1
    for receiver in (burst, after_it):
        signals.consent_revoked.disconnect(receiver)
    assert told == [identity]
    identity.refresh_from_db()
    assert identity.consent == Consent.REVOKED
