"""A service whose key set misbehaves, and the site that asks it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.test import override_settings

from django_identity import conf
from django_identity.conf import Application
from tests.hostile import (
    HostileService,
    hostile_service,
)
from tests.lifecycle.key_sets.origin import (
    publish,
)


@pytest.fixture
def origin() -> Iterator[HostileService]:
    with (
        hostile_service() as service,
        override_settings(DJANGO_IDENTITY={"default": service.settings()}),
    ):
        publish(service, "key-1")
        yield service


@pytest.fixture
def site(origin: HostileService) -> Application:
    return conf.application()
