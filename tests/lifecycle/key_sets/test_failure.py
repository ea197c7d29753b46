"""What happens while the service gives no key set."""

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


def test_failed_fetches_are_two_in_half_a_minute(origin: FakeService, site: Application):
    """A service that fails is not asked for each person who comes."""
    failing(origin)

    def attempt() -> int:
        with pytest.raises(KeysUnavailable):
            key_sets.current(site)
        return origin.calls("jwks")

    assert [attempt(), attempt(), attempt()] == [1, 2, 2]
    time_passes(29)
    assert attempt() == 2
    time_passes(1.1)
    assert [attempt(), attempt(), attempt()] == [3, 4, 4]
    publish(origin, "key-1")
    time_passes(30.1)
    assert key_sets.current(site).kids == ("key-1",)
