"""What an unknown ``kid`` costs: two fetches in 30 seconds, whoever asks."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace

import pytest
from django.utils import timezone

from django_identity.conf import Application
from django_identity.credentials import RejectionReason
from django_identity.exceptions import CredentialRejected, KeysUnavailable
from django_identity.lifecycle import key_sets
from django_identity.service.answers import ClaimsAnswer
from tests.factories import make_grant, make_identity, make_user
from tests.fake_service import FakeService, answer
from tests.lifecycle.key_sets.origin import (
    claims_answer,
    publish,
    slowly,
)
from tests.lifecycle.key_sets.steps import (
    failing,
    must_wait,
    reason_of,
    time_passes,
)
from tests.lifecycle.refetching import refetched

# An unknown kid


def test_a_new_key_is_found_at_once(origin: FakeService, site: Application):
    """A credential signed with a key that was published a moment ago verifies."""
    key_sets.current(site)
    publish(origin, "key-1", "key-2")
    proof = key_sets.verify_answer(site, claims_answer(origin, "key-2"), subject="subject-1")
    assert proof is not None
    assert proof.kid == "key-2"
    assert origin.calls("jwks") == 2


def test_a_flood_of_unknown_kids_costs_two_fetches(origin: FakeService, site: Application):
    """Two in 30 seconds, so that a second rotation in a row is found, too; then it is "later"."""
    key_sets.current(site)
    assert reason_of(site, origin, "no-0") is RejectionReason.KEY
    assert reason_of(site, origin, "no-1") is RejectionReason.KEY
    for n in range(2, 20):
        must_wait(site, origin, f"no-{n}")
    assert origin.calls("jwks") == 3
    time_passes(29)
    must_wait(site, origin, "no-20")
    time_passes(1.1)
    assert reason_of(site, origin, "no-21") is RejectionReason.KEY
    assert origin.calls("jwks") == 4


def test_known_keys_serve_while_newer_ones_may_not_be_asked_for(origin, site: Application):
    """A flood of unknown ``kid``s closes nobody else's way in."""
    key_sets.current(site)
    for n in range(5):
        with suppress(CredentialRejected, KeysUnavailable):
            key_sets.verify_answer(site, claims_answer(origin, f"no-{n}"), subject="subject-1")
    assert key_sets.verify_answer(site, claims_answer(origin, "key-1"), subject="subject-1")


def test_the_cooldown_counts_attempts_also_against_a_failing_endpoint(origin, site: Application):
    """A flood while the service fails costs two fetches in 30 seconds too."""
    key_sets.current(site)
    failing(origin)
    for n in range(5):
        must_wait(site, origin, f"no-{n}")
        time_passes(5.5)
    assert origin.calls("jwks") == 3


def test_a_refetch_that_meets_the_cooldown_is_tried_later(
    origin: FakeService, site: Application, db: None
):
    """As in an outage of the key set, which it may be."""
    identity = make_identity(make_user("ada"), subject="subject-1", refetch_due_at=timezone.now())
    make_grant(identity)
    origin.answers["jwks"] = answer({"keys": []})
    for n in range(2):
        assert reason_of(site, origin, f"no-{n}") is RejectionReason.KEY
    assert refetched(identity) == "no answer"
    identity.refresh_from_db()
    assert identity.last_error == "keys_unavailable"


def test_many_threads_with_an_unknown_kid_make_one_flight(origin, site: Application):
    """All of them wait for it, and all of them find the new key."""
    key_sets.current(site)
    origin.answers["jwks"] = slowly(0.2, "key-1", "key-2")
    given = claims_answer(origin, "key-2")

    def kid(_: int) -> str:
        proof = key_sets.verify_answer(site, given, subject="subject-1")
        return proof.kid if proof else ""

    with ThreadPoolExecutor(20) as pool:
        assert list(pool.map(kid, range(20))) == ["key-2"] * 20
    assert origin.calls("jwks") == 2


@pytest.mark.parametrize("kid", ["key-1", "key-2"], ids=["known", "new"])
def test_whose_credential_it_is_counts_under_a_known_key_and_a_new_one(origin, site, kid: str):
    """Newer keys are no way around the subject."""
    key_sets.current(site)
    publish(origin, "key-1", "key-2")
    given = replace(claims_answer(origin, kid), user_id="subject-2")
    with pytest.raises(CredentialRejected) as caught:
        key_sets.verify_answer(site, given, subject="subject-2")
    assert caught.value.reason is RejectionReason.PAYLOAD_SUB


# What asks for nothing


def signed(given: ClaimsAnswer) -> str:
    return (given.credential or "").partition("~")[0]


@pytest.mark.parametrize("head", [{"alg": "none"}, {"typ": "JWT"}, {"crit": []}, {"jku": "x"}])
def test_junk_never_asks_for_keys(origin: FakeService, site: Application, head):
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
        key_sets.verify_answer(site, replace(good, credential=forged), subject="subject-1")
    assert caught.value.reason is RejectionReason.SIGNATURE
    assert origin.calls("jwks") == 1
