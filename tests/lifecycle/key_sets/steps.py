"""What the key set's tests do: let time pass, let fetches fail, ask with an unknown key."""

import time
from collections import deque
from collections.abc import Callable

import pytest

from django_identity.conf import Application
from django_identity.credentials import RejectionReason
from django_identity.exceptions import CredentialRejected, KeysUnavailable
from django_identity.lifecycle import key_sets
from tests.fake_service import FakeService, answer
from tests.lifecycle.key_sets.origin import claims_answer


def time_passes(seconds: float) -> None:
    """Make all key sets of this process older."""
    for origin in key_sets._origins.values():
        origin.began -= seconds
        origin.tries = deque((moment - seconds for moment in origin.tries), origin.tries.maxlen)


def failing(service: FakeService) -> None:
    service.answers["jwks"] = answer({"error": "busy"}, status="503 Busy")


def reason_of(site: Application, service: FakeService, kid: str, **head: object) -> RejectionReason:
    """Why a credential under that key is rejected."""
    with pytest.raises(CredentialRejected) as caught:
        key_sets.verify_answer(site, claims_answer(service, kid, **head), subject="subject-1")
    return caught.value.reason


def must_wait(site: Application, service: FakeService, kid: str) -> None:
    """Nothing is said of the credential: it may be asked again later."""
    with pytest.raises(KeysUnavailable):
        key_sets.verify_answer(site, claims_answer(service, kid), subject="subject-1")


def poll(condition: Callable[[], bool]) -> None:
    give_up = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < give_up
        time.sleep(0.01)
