"""What a shared cache that does not answer costs: the sharing, and nothing else."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from django.test import override_settings

from django_identity.conf import Application
from django_identity.credentials import RejectionReason
from django_identity.exceptions import KeysUnavailable
from django_identity.lifecycle.upkeep import claims, key_sets
from tests.hostile import HostileService
from tests.lifecycle.key_sets.origin import claims_answer, publish
from tests.lifecycle.key_sets.steps import failing, poll, reason_of

GONE = {"default": {"BACKEND": "tests.service.broken_cache.BrokenCache"}}


@pytest.fixture(autouse=True)
def _cache_is_away(origin: HostileService) -> Iterator[None]:
    with override_settings(CACHES=GONE):
        yield


def test_without_the_shared_cache_a_process_fetches_for_itself(origin, site: Application):
    """Credentials verify, new keys are found, and the set still ends with its five minutes."""
    proof = claims.verify_answer(site, claims_answer(origin, "key-1"), subject="subject-1")
    assert proof is not None
    assert key_sets.current(site).kids == ("key-1",)
    assert origin.calls("jwks") == 1
    publish(origin, "key-2")
    key_sets.age(300)
    assert key_sets.current(site).kids == ("key-2",)


def test_without_the_shared_cache_a_flood_costs_each_process_one_fetch(origin, site: Application):
    """The cooldown after an unknown ``kid`` is kept in the process as well."""
    key_sets.current(site)
    for n in range(5):
        assert reason_of(site, origin, f"no-{n}") is RejectionReason.KEY
    assert origin.calls("jwks") == 2
    key_sets.age(30.1)
    assert reason_of(site, origin, "no-9") is RejectionReason.KEY
    assert origin.calls("jwks") == 3


def test_without_the_shared_cache_failures_back_off_in_each_process(origin, site: Application):
    """Neither the service nor who asks for keys pays for each try; it is "try later" as ever."""
    failing(origin)
    for _ in range(5):
        with pytest.raises(KeysUnavailable):
            key_sets.current(site)
    assert origin.calls("jwks") == 1
    key_sets.age(1.1)
    publish(origin, "key-1")
    assert key_sets.current(site).kids == ("key-1",)


def test_without_the_shared_cache_the_set_is_refreshed_ahead(origin, site: Application, caplog):
    """The thread that does it ends well, and the log says what is wrong."""
    held = key_sets.current(site)
    publish(origin, "key-2")
    key_sets.age(241)
    with caplog.at_level(logging.WARNING, "django_identity"):
        assert key_sets.current(site) is held
        poll(lambda: key_sets.current(site).kids == ("key-2",))
    assert "the cache does not answer" in caplog.text
