"""What the sign-in of a returning person asks the database, and what it still notices."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client, override_settings
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from django_identity import conf, signals
from django_identity.lifecycle.erasure import erasure
from django_identity.models import LinkedIdentity, StoredClaim, TokenGrant
from tests.faces.conftest import begin, come_back, sign_in
from tests.hostile import HostileService

pytestmark = pytest.mark.django_db(transaction=True)
BOUNDARIES = ("BEGIN", "COMMIT", "SAVEPOINT", "RELEASE", "SELECT pg_advisory")
ALL = ["profile:read", "kyc:read", "claims:read"]


@pytest.mark.parametrize(("scopes", "most"), [(["profile:read"], 12), (ALL, 14)])
def test_it_costs_few_statements(service: HostileService, scopes: list[str], most: int) -> None:
    """Begin and callback, with Django's session and log-in. Two for claims, one if they changed."""
    with override_settings(DJANGO_IDENTITY={"default": service.settings(SCOPES=scopes)}):
        for _ in range(2):
            assert sign_in(Client()).status_code == 302
        with CaptureQueriesContext(connection) as captured:
            sign_in(Client())
    statements = [query["sql"] for query in captured]
    assert sum(not text.startswith(BOUNDARIES) for text in statements) <= most, statements


def test_a_start_from_before_an_erasure_brings_nothing(service: HostileService) -> None:
    """The person was erased and came back meanwhile; the old start does not touch the new link."""
    sign_in(Client())
    old = Client()
    state = begin(old)
    erasure.erase_now(conf.application(), "subject-1")
    sign_in(Client())
    before = TokenGrant.objects.values_list("generation").get()
    assert "consent_withdrawn" in come_back(old, state).text
    assert TokenGrant.objects.values_list("generation").get() == before


def test_claims_of_a_sign_in_meanwhile_go_with_their_scope(service: HostileService) -> None:
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
    assert (claim.revoked, claim.value, claim.valid_until) == (True, None, None)


def test_a_re_fetch_that_began_meanwhile_lets_go(service: HostileService) -> None:
    """A worker leases the row after it was read, which leaves the row's own time as it is."""
    late = Client()
    sign_in(Client())
    state = begin(late)
    rows = LinkedIdentity.objects.all()
    leased: list[int] = []

    def meanwhile(execute: Any, sql: str, *given: Any) -> Any:
        done = execute(sql, *given)
        if sql.startswith("SELECT") and "linkedidentity" in sql and not leased:
            leased.append(1)
            until = timezone.now() + timedelta(minutes=5)
            rows.update(refetch_taken_until=until, refetch_started=True, refetch_failures=1)
        return done

    with connection.execute_wrapper(meanwhile):
        assert come_back(late, state).status_code == 302
    assert leased
    lease = rows.values_list("refetch_taken_until", "refetch_started", "refetch_failures").get()
    assert lease == (None, False, 0)


def test_claims_go_with_their_scope_once(service: HostileService) -> None:
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
    assert (claim.revoked, claim.value, claim.valid_until) == (True, None, None)
    assert LinkedIdentity.objects.get().credential == ""
    assert heard == [True]
