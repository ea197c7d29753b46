"""What the sign-in of a returning person notices of others at the same moment."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test import Client, override_settings

from django_identity import signals
from django_identity.models import LinkedIdentity, StoredClaim
from tests.fake_service import FakeService
from tests.sign_in import begin, come_back, sign_in

pytestmark = pytest.mark.django_db(transaction=True)
ALL = ["profile:read", "kyc:read", "claims:read"]


def test_claims_of_a_sign_in_meanwhile_go_with_their_scope(service: FakeService) -> None:
    """Another tab brings claims after the row was read: the sign-in without them sees that."""
    fewer = override_settings(DJANGO_IDENTITY={"default": service.settings(SCOPES=ALL[:2])})
    late = Client()
    with fewer:
        sign_in(Client())
        state = begin(late)
    others: list[int] = []

    def meanwhile(execute: Any, sql: str, *given: Any) -> Any:
        done = execute(sql, *given)
        if "linkedidentity" in sql and not others:
            others.append(1)
            others.append(sign_in(Client()).status_code)
        return done

    with connection.execute_wrapper(meanwhile):
        assert come_back(late, state).status_code == 302
    assert others == [1, 302]
    claim = StoredClaim.objects.get()
    assert (claim.value, claim.valid_until) == (None, None)


def test_claims_go_with_their_scope_once(service: FakeService) -> None:
    """A sign-in without ``claims:read`` takes the claims back, and only the first one says so."""
    sign_in(Client())
    heard = []

    def hear(**_sent: object) -> None:
        heard.append(True)

    signals.claims_changed.connect(hear)
    try:
        with override_settings(DJANGO_IDENTITY={"default": service.settings(SCOPES=ALL[:2])}):
            sign_in(Client())
            sign_in(Client())
    finally:
        signals.claims_changed.disconnect(hear)
    claim = StoredClaim.objects.get()
    assert (claim.value, claim.valid_until) == (None, None)
    assert LinkedIdentity.objects.get().credential_expires_at is None
    assert heard == [True]
