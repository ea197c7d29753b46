"""What the key set's tests do: let time pass, be another process, ask with an unknown key."""

from __future__ import annotations

import time
from typing import Any

import pytest
from django.core import signing
from django.core.cache import cache

from django_identity import conf
from django_identity.conf import Application
from django_identity.exceptions import CredentialRejected
from django_identity.lifecycle.upkeep import claims, key_sets
from tests.clock_cache import ClockCache
from tests.hostile import (
    HostileService,
    answer,
)
from tests.lifecycle.key_sets.origin import (
    claims_answer,
)


def opened(site: Application, value: str) -> dict[str, Any]:
    """What a value of the shared cache says, if this site signed it for this origin."""
    return signing.loads(value, salt=f"django_identity.key_sets.{site.api_origin}")


def time_passes(seconds: float) -> None:
    """Move the clocks of this process's key sets, of the cache and of what the cache holds."""
    site = conf.application()
    ClockCache.ahead += seconds
    key_sets.age(seconds)
    for name in cache.names():
        if name.endswith(".set"):
            held = opened(site, cache.get(name))
            held["began_at"] -= seconds
            cache.set(name, key_sets.shared_value(site, **held))


def as_another_process() -> None:
    """Forget what this process holds: only the shared cache is left."""
    key_sets.forget()


def failing(service: HostileService) -> None:
    service.answers["jwks"] = answer({"error": "busy"}, status="503 Busy")


def reason_of(site: Application, service: HostileService, kid: str, **head: object):
    with pytest.raises(CredentialRejected) as caught:
        claims.verify_answer(site, claims_answer(service, kid, **head), subject="subject-1")
    return caught.value.reason


def poll(condition) -> None:
    give_up = time.monotonic() + 5
    while not condition():
        assert time.monotonic() < give_up
        time.sleep(0.01)


def held_in_cache(site: Application) -> str:
    """The name under which the shared cache holds the set."""
    [name] = [name for name in cache.names() if name.endswith(".set")]
    return name
