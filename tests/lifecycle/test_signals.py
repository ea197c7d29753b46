"""Signals: which one tells the site of what, each once and after the commit."""

from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.dispatch import Signal
from django.utils import timezone

from django_identity import signals
from django_identity.exceptions import ReauthorizationNeeded
from django_identity.lifecycle.minute import follow_up
from django_identity.lifecycle.operators import interventions
from django_identity.lifecycle.said.tokens import access_token_for
from django_identity.models import Consent
from tests.deliveries import deliver
from tests.factories import make_claim, make_identity, make_user
from tests.fake_service import INVALID_GRANT
from tests.lifecycle.grants import expired

pytestmark = pytest.mark.django_db(transaction=True)

Heard = list[tuple[str, dict[str, Any]]]
AN_HOUR_AGO = timezone.now() - timedelta(hours=1)


@pytest.fixture
def heard():
    """What receivers of all signals were told, with the arguments."""
    told: Heard = []
    for name, signal in vars(signals).items():
        if isinstance(signal, Signal):

            def receive(sender, *, told_by=name, **arguments):
                told.append(
                    (told_by if not connection.in_atomic_block else "early", arguments)
                )

            signal.connect(receive, weak=False)
    return told


def names(heard):
    return [name for name, _arguments in heard]


def linked(**fields):
    """Somebody who signed in an hour ago, with a proven claim."""
    held = {"signed_in_at": AN_HOUR_AGO, "scopes": ["kyc:read"]}
    held |= fields
    identity = make_identity(make_user(), **held)
    make_claim(identity)
    return identity


@pytest.mark.parametrize(
    ("event_type", "told"),
    [
        ("kyc.verified", []), ("kyc.rejected", ["kyc_changed"]), ("claim.issued", []),
        ("claim.revoked", ["claims_changed", "kyc_changed"]),
        ("consent.revoked", ["sessions_ended", "consent_revoked"]),
        ("data.deletion_requested", ["sessions_ended", "identity_unlinked", "consent_revoked"]),
    ],
)  # fmt: skip
def test_each_event_is_told(heard, event_type, told):
    """That it came, and what it changed for whom. What brings something is read later.

    An erasure is told when it is done, and nothing changes by an event about nobody.
    """
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

    heard.clear()
    follow_up.retry_pending()
    deliver("consent.revoked", subject="nobody")
    done = ["data_erased"] * (event_type == "data.deletion_requested")
    assert names(heard) == [*done, "event_received"]


def test_the_end_of_the_grant_is_told_with_the_level_that_it_brought(service, heard):
    """A socket behind a gate with that level is asked again."""
    identity = linked()
    expired(identity)
    service.answers["token"] = INVALID_GRANT
    with suppress(ReauthorizationNeeded):
        access_token_for(identity)
    assert names(heard) == ["kyc_changed", "reauthorization_needed"]
    for _name, told in heard:
        assert told["identity"].kyc_state == ("", "")


def test_a_refresh_with_fewer_scopes_is_told_with_what_goes(service, settings, heard):
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


def test_a_revocation_by_an_admin_is_told_once_it_stands(heard):
    """Like one by the service; what was rolled back is not told."""
    identity = linked()
    with suppress(KeyError), transaction.atomic():
        interventions.revoke([identity])
        raise KeyError
    assert heard == []
    assert interventions.revoke([identity]) == 1
    assert names(heard) == ["sessions_ended", "consent_revoked"]
    assert heard[1][1]["identity"].consent == Consent.REVOKED
