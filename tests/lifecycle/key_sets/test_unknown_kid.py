"""What an unknown ``kid`` costs: one fetch in 30 seconds, whoever asks."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from django.core.cache import cache

from django_identity.conf import Application
from django_identity.credentials import RejectionReason
from django_identity.exceptions import CredentialRejected
from django_identity.lifecycle.upkeep import claims, key_sets
from django_identity.service.messages import ClaimsAnswer
from tests.clock_cache import ClockCache
from tests.hostile import (
    HostileService,
)
from tests.lifecycle.key_sets.origin import (
    claims_answer,
    publish,
    slowly,
)
from tests.lifecycle.key_sets.steps import (
    as_another_process,
    failing,
    held_in_cache,
    reason_of,
    time_passes,
)

# An unknown kid


def test_a_new_key_is_found_at_once(origin: HostileService, site: Application):
    """A credential signed with a key that was published a moment ago verifies."""
    key_sets.current(site)
    publish(origin, "key-1", "key-2")
    proof = claims.verify_answer(site, claims_answer(origin, "key-2"), subject="subject-1")
    assert proof is not None
    assert proof.kid == "key-2"
    assert origin.calls("jwks") == 2


def test_a_flood_of_unknown_kids_costs_one_fetch(origin: HostileService, site: Application):
    """One in 30 seconds, and nothing of a stranger's text is kept."""
    key_sets.current(site)
    assert reason_of(site, origin, "no-0") is RejectionReason.KEY
    names = set(cache.names())
    for n in range(1, 20):
        assert reason_of(site, origin, f"no-{n}") is RejectionReason.KEY
    assert origin.calls("jwks") == 2
    assert set(cache.names()) == names
    time_passes(29)
    assert reason_of(site, origin, "no-20") is RejectionReason.KEY
    assert origin.calls("jwks") == 2
    time_passes(1.1)
    assert reason_of(site, origin, "no-21") is RejectionReason.KEY
    assert origin.calls("jwks") == 3


def test_the_cooldown_counts_attempts_also_against_a_failing_endpoint(origin, site: Application):
    """A flood while the service fails costs one fetch in 30 seconds too, by all processes."""
    key_sets.current(site)
    failing(origin)
    for n in range(5):
        assert reason_of(site, origin, f"no-{n}") is RejectionReason.KEY
        time_passes(5.5)
    assert origin.calls("jwks") == 2
    as_another_process()
    assert reason_of(site, origin, "no-9") is RejectionReason.KEY
    assert origin.calls("jwks") == 2


def test_the_cooldown_stands_whatever_the_set_holds(origin: HostileService, site: Application):
    """An empty set is no reason to ask again and again."""
    publish(origin)
    for n in range(5):
        assert reason_of(site, origin, f"no-{n}") is RejectionReason.KEY
    assert origin.calls("jwks") == 2


def test_many_threads_with_an_unknown_kid_make_one_flight(origin, site: Application):
    """All of them wait for it, and all of them find the new key."""
    key_sets.current(site)
    origin.answers["jwks"] = slowly(0.2, "key-1", "key-2")
    given = claims_answer(origin, "key-2")

    def kid(_: int) -> str:
        proof = claims.verify_answer(site, given, subject="subject-1")
        return proof.kid if proof else ""

    with ThreadPoolExecutor(20) as pool:
        assert list(pool.map(kid, range(20))) == ["key-2"] * 20
    assert origin.calls("jwks") == 2


def test_who_waits_too_long_answers_with_what_it_has(origin: HostileService, site: Application):
    """A flight that never lands, of a process that was killed, holds nobody up for long."""
    key_sets.current(site)
    name = held_in_cache(site).removesuffix("set") + "flight"
    cache.set(name, 1, timeout=10)
    started = time.monotonic()
    assert reason_of(site, origin, "no-1") is RejectionReason.KEY
    assert 1.9 < time.monotonic() - started < 3
    assert origin.calls("jwks") == 1


def test_a_flight_that_never_lands_is_over_after_ten_seconds(origin, site: Application):
    """The lock of a process that was killed with it in its hands does not stand in the way."""
    flights = []

    def look() -> None:
        for seconds in (0, 9.5, 0.6):
            ClockCache.ahead += seconds
            flights.append(sum(name.endswith(".flight") for name in cache.names()))

    origin.meanwhile["jwks"] = look
    key_sets.current(site)
    assert flights == [1, 1, 0]


@pytest.mark.parametrize("kid", ["key-1", "key-2"], ids=["known", "new"])
def test_whose_credential_it_is_counts_under_a_known_key_and_a_new_one(origin, site, kid: str):
    """Newer keys are no way around the subject."""
    key_sets.current(site)
    publish(origin, "key-1", "key-2")
    given = replace(claims_answer(origin, kid), user_id="subject-2")
    with pytest.raises(CredentialRejected) as caught:
        claims.verify_answer(site, given, subject="subject-2")
    assert caught.value.reason is RejectionReason.PAYLOAD_SUB


# What asks for nothing


def signed(given: ClaimsAnswer) -> str:
    return (given.credential or "").partition("~")[0]


@pytest.mark.parametrize("head", [{"alg": "none"}, {"typ": "JWT"}, {"crit": []}, {"jku": "x"}])
def test_junk_never_asks_for_keys(origin: HostileService, site: Application, head):
    """A header that is refused for itself does not get its ``kid`` looked up."""
    key_sets.current(site)
    assert reason_of(site, origin, "no-1", **head) is not RejectionReason.KEY
    assert origin.calls("jwks") == 1


def test_a_bad_signature_under_a_known_kid_asks_for_nothing(origin, site: Application):
    """The key is known; another fetch could not make the signature good."""
    key_sets.current(site)
    good, other = claims_answer(origin, "key-1"), claims_answer(origin, "key-2")
    forged = f"{signed(good).rpartition('.')[0]}.{signed(other).rpartition('.')[2]}~"
    with pytest.raises(CredentialRejected) as caught:
        claims.verify_answer(site, replace(good, credential=forged), subject="subject-1")
    assert caught.value.reason is RejectionReason.SIGNATURE
    assert origin.calls("jwks") == 1
