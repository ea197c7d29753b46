"""One deadline for a whole callback: the token, the profile, KYC, the claims and the keys."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from functools import partial

import pytest
from django.test import Client, override_settings

from django_identity.lifecycle.standing import Requirement, standing_of
from django_identity.lifecycle.upkeep import refetch_due
from django_identity.models import LinkedIdentity, TokenGrant
from tests.at_once import at_once
from tests.faces.conftest import begin, come_back, sign_in
from tests.hostile import Answer, HostileService
from tests.lateness import lateness
from tests.lifecycle.key_sets.steps import time_passes
from tests.lifecycle.test_consent import is_signed_in

pytestmark = pytest.mark.django_db(transaction=True)

SECONDS = 1.0
# What a callback does beside its calls takes less than a second and a half on an idle machine.
IN_TIME = SECONDS + 1.5
ADULT = Requirement("age_over_18")


@pytest.fixture(autouse=True)
def _short(service: HostileService) -> object:
    settings = service.settings(CALLBACK_SECONDS=SECONDS)
    with override_settings(DJANGO_IDENTITY={"default": settings}):
        yield


def slowly(seconds: float) -> Callable[[], None]:
    return lambda: time.sleep(seconds)


@pytest.fixture
def silent() -> Iterator[Answer]:
    """No answer before the end of the test: whoever waits for one waits too long."""
    ended = threading.Event()
    yield lambda connection: ended.wait() and None
    ended.set()


def timed(work: Callable[[], object]) -> float:
    """The seconds that ``work`` took, without those for which a busy machine held it up."""
    with lateness() as late:
        began = time.monotonic()
        work()
        took = time.monotonic() - began
    return took - late.seconds


@pytest.mark.parametrize("endpoint", ["kyc", "claims", "jwks"])
def test_what_comes_too_late_is_left_to_upkeep(
    client: Client, service: HostileService, silent: Answer, endpoint: str
) -> None:
    """The person is in, the gate is closed, and the next re-fetch opens it."""
    service.answers[endpoint] = silent
    state = begin(client)
    assert timed(lambda: come_back(client, state)) < IN_TIME
    assert is_signed_in(client)
    identity = LinkedIdentity.objects.get()
    assert TokenGrant.objects.filter(identity=identity).exists()
    assert not standing_of(identity.user).has_claim(ADULT)
    assert standing_of(identity.user).has_kyc_level("level_2") == (endpoint != "kyc")
    service.answers.clear()
    time_passes(60)
    list(refetch_due())
    standing = standing_of(LinkedIdentity.objects.get().user)
    assert standing.has_claim(ADULT)
    assert standing.has_kyc_level("level_2")


def test_what_somebody_had_before_stays(
    client: Client, service: HostileService, silent: Answer
) -> None:
    """Claims and a level of an earlier sign-in are not taken back because the service is slow."""
    sign_in(client)
    service.answers.update(kyc=silent)
    again = Client()
    sign_in(again)
    assert is_signed_in(again)
    standing = standing_of(LinkedIdentity.objects.get().user)
    assert standing.has_claim(ADULT)
    assert standing.has_kyc_level("level_2")


@pytest.mark.parametrize("endpoint", ["token", "me"])
def test_nobody_is_let_in_unknown(
    client: Client, service: HostileService, silent: Answer, endpoint: str
) -> None:
    """Without tokens or without a subject there is no sign-in."""
    service.answers[endpoint] = silent
    state = begin(client)
    assert timed(lambda: come_back(client, state)) < IN_TIME
    assert not LinkedIdentity.objects.exists()


def test_slow_answers_share_the_time(client: Client, service: HostileService) -> None:
    """Each is within the limit of a call, and together they are not."""
    for endpoint in ("token", "me", "kyc", "claims"):
        service.meanwhile[endpoint] = slowly(0.25)
    state = begin(client)
    assert timed(lambda: come_back(client, state)) < IN_TIME
    assert is_signed_in(client)
    assert service.calls("jwks") == 0


def test_a_fetch_of_keys_by_somebody_else_is_not_waited_for_longer(
    client: Client, service: HostileService, silent: Answer
) -> None:
    """The wait for another thread's fetch ends with the callback's time too."""
    service.answers["jwks"] = silent
    state, other = begin(client), Client()
    theirs = begin(other)
    calls = [partial(come_back, client, state), partial(come_back, other, theirs)]
    assert timed(lambda: at_once(calls)) < IN_TIME
