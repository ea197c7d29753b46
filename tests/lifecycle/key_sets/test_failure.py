"""What happens while the service gives no key set."""

from __future__ import annotations

import pytest

from django_identity.conf import Application
from django_identity.exceptions import KeysUnavailable, ServiceUnavailable
from django_identity.lifecycle import key_sets
from tests.fake_service import (
    FakeService,
)
from tests.lifecycle.key_sets.origin import (
    claims_answer,
    publish,
)
from tests.lifecycle.key_sets.steps import (
    failing,
    time_passes,
)

# Failure


def test_old_keys_serve_to_the_end_of_their_five_minutes_and_then_no_more(origin, site):
    """Then it is "try later", never "forged"."""
    key_sets.current(site)
    failing(origin)
    time_passes(299)
    proof = key_sets.verify_answer(site, claims_answer(origin, "key-1"), subject="subject-1")
    assert proof is not None
    time_passes(2)
    with pytest.raises(KeysUnavailable) as caught:
        key_sets.verify_answer(site, claims_answer(origin, "key-1"), subject="subject-1")
    assert isinstance(caught.value, ServiceUnavailable)
    assert caught.value.code == "keys_unavailable"


def test_failed_fetches_back_off(origin: FakeService, site: Application):
    """The pause after a failure is two seconds at first, half a minute at most."""
    failing(origin)

    def attempt() -> int:
        with pytest.raises(KeysUnavailable):
            key_sets.current(site)
        return origin.calls("jwks")

    assert attempt() == 1
    time_passes(0.5)
    assert attempt() == 1
    for calls in range(2, 9):
        time_passes(30.1)
        assert attempt() == calls
        time_passes(0.5)
        assert attempt() == calls
    publish(origin, "key-1")
    time_passes(30.1)
    key_sets.current(site)
    failing(origin)
    time_passes(300)
    calls = attempt()
    time_passes(2.1)
    assert attempt() == calls + 1
