"""How long a key set serves: five minutes from the start of its fetch, at most."""

from __future__ import annotations

import logging
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.core.cache import cache

from django_identity.conf import Application
from django_identity.credentials import RejectionReason
from django_identity.lifecycle.upkeep import claims, key_sets
from tests.clock_cache import ClockCache
from tests.hostile import (
    HostileService,
)
from tests.lifecycle.key_sets.origin import (
    claims_answer,
    document,
    publish,
    slowly,
)
from tests.lifecycle.key_sets.steps import (
    as_another_process,
    failing,
    held_in_cache,
    poll,
    reason_of,
    time_passes,
)

# Age


def test_five_minutes_and_no_longer(origin: HostileService, site: Application):
    """A second before they are over no fetch is waited for; then there is one."""
    key_sets.current(site)
    publish(origin, "key-2")
    time_passes(239)
    assert key_sets.current(site).kids == ("key-1",)
    assert origin.calls("jwks") == 1
    time_passes(61)
    assert key_sets.current(site).kids == ("key-2",)


@pytest.mark.parametrize(
    ("header", "lifetime"),
    [
        ("max-age=60", 60),
        ("public, MAX-AGE=60, immutable", 60),
        ("max-age=86400", 300),
        ("max-age=-1", 300),
        ("max-age=abc", 300),
        ("s-maxage=5", 300),
        ("no-transform", 300),
    ],
)
def test_the_service_may_shorten_the_age(
    origin: HostileService, site: Application, header: str, lifetime: int
):
    """``Cache-Control: max-age`` counts if it is shorter; longer than 5 minutes is 5 minutes."""
    publish(origin, "key-1", headers=f"Cache-Control: {header}\r\n")
    key_sets.current(site)
    publish(origin, "key-2")
    time_passes(lifetime * 0.79)
    assert key_sets.current(site).kids == ("key-1",)
    time_passes(lifetime * 0.22)
    assert key_sets.current(site).kids == ("key-2",)


def test_a_set_that_may_not_be_kept_is_fetched_each_time(origin, site: Application):
    """``max-age=0`` is obeyed, also by those who waited for somebody else's fetch."""
    publish(origin, "key-1", headers="Cache-Control: max-age=0\r\n")
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: key_sets.current(site).kids, range(4)))
    assert found == [("key-1",)] * 4
    assert origin.calls("jwks") == 4


def test_the_age_counts_from_the_start_of_the_fetch(origin: HostileService, site: Application):
    """An answer that took a second to come is a second old."""
    origin.answers["jwks"] = slowly(0.2, "key-1")
    key_sets.current(site)
    publish(origin, "key-2")
    time_passes(299.8)
    assert key_sets.current(site).kids == ("key-2",)


def test_the_age_is_inherited_through_the_shared_cache(origin, site: Application):
    """A process that loads the set does not begin to count anew."""
    key_sets.current(site)
    publish(origin, "key-2")
    time_passes(200)
    as_another_process()
    adopted = key_sets.current(site)
    assert adopted.kids == ("key-1",)
    assert key_sets.current(site) is adopted
    assert origin.calls("jwks") == 1
    time_passes(100)
    assert key_sets.current(site).kids == ("key-2",)


def test_a_shortened_age_is_inherited_too(origin: HostileService, site: Application):
    """What the service asked of the process that fetched holds for every other one."""
    publish(origin, "key-1", headers="Cache-Control: max-age=60\r\n")
    key_sets.current(site)
    publish(origin, "key-2")
    time_passes(30)
    as_another_process()
    assert key_sets.current(site).kids == ("key-1",)
    time_passes(31)
    assert key_sets.current(site).kids == ("key-2",)


@pytest.mark.parametrize("began_in", [60, -300, -86_400], ids=["future", "edge", "yesterday"])
def test_a_shared_set_of_an_impossible_age_is_stale(origin, site: Application, began_in: int):
    """A clock that was wrong must not make keys immortal."""
    key_sets.current(site)
    value = key_sets.shared_value(site, document("key-9"), began_at=time.time() + began_in)
    cache.set(held_in_cache(site), value)
    as_another_process()
    assert key_sets.current(site).kids == ("key-1",)
    assert origin.calls("jwks") == 2


# The warm path


def test_a_warm_verification_parses_nothing_and_asks_no_cache(origin, site: Application):
    """The very same set, and not one call of the cache."""
    held = key_sets.current(site)
    given = claims_answer(origin, "key-1")
    ClockCache.asked.clear()
    for _ in range(10):
        claims.verify_answer(site, given, subject="subject-1")
        assert key_sets.current(site) is held
    assert not ClockCache.asked
    assert origin.calls("jwks") == 1


# Revocation


def test_a_key_that_leaves_the_set_stops_verifying_within_five_minutes(origin, site):
    """In the process that fetched it, and in one that took it from the shared cache later."""
    key_sets.current(site)
    publish(origin, "key-2")
    time_passes(150)
    as_another_process()
    assert key_sets.current(site).kids == ("key-1",)
    time_passes(150)
    assert reason_of(site, origin, "key-1") is RejectionReason.KEY


# Refresh ahead


def test_late_in_its_life_the_set_is_refreshed_and_nobody_waits(origin, site: Application):
    """From 240 seconds on one fetch is under way while everybody uses what there is."""
    held = key_sets.current(site)
    origin.answers["jwks"] = slowly(0.4, "key-2")
    time_passes(241)
    started = time.monotonic()
    for _ in range(20):
        assert key_sets.current(site) is held
    assert time.monotonic() - started < 0.3
    poll(lambda: key_sets.current(site).kids == ("key-2",))
    assert origin.calls("jwks") == 2
    time_passes(60)
    assert key_sets.current(site).kids == ("key-2",)
    assert origin.calls("jwks") == 2


def test_a_failing_refresh_ahead_disturbs_nobody(origin, site: Application, caplog):
    """It is tried again, but neither for each verification nor with a line in the log for each."""
    held = key_sets.current(site)
    failing(origin)
    time_passes(241)
    with caplog.at_level(logging.WARNING, "django_identity"):
        for _ in range(100):
            assert key_sets.current(site) is held
        poll(lambda: "not refreshed ahead" in caplog.text)
    assert origin.calls("jwks") == 2
    assert caplog.text.count("not refreshed ahead") == 1
    publish(origin, "key-2")
    time_passes(6)
    assert key_sets.current(site) is held
    poll(lambda: key_sets.current(site).kids == ("key-2",))
