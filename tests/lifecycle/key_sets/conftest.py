"""A service whose key set misbehaves, and the site that asks it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.core.cache import cache
from django.test import override_settings

from django_identity import conf
from django_identity.conf import Application
from tests.clock_cache import ClockCache
from tests.hostile import (
    HostileService,
    hostile_service,
)
from tests.lifecycle.key_sets.origin import (
    publish,
)

CACHES = {"default": {"BACKEND": "tests.clock_cache.ClockCache", "LOCATION": "key sets"}}


@pytest.fixture
def origin() -> Iterator[HostileService]:
    with (
        hostile_service() as service,
        override_settings(DJANGO_IDENTITY={"default": service.settings()}, CACHES=CACHES),
    ):
        publish(service, "key-1")
        yield service
        cache.clear()
        ClockCache.ahead = 0.0


@pytest.fixture
def site(origin: HostileService) -> Application:
    return conf.application()
