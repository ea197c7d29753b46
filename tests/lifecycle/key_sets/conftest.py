"""A service whose key set misbehaves, and the site that asks it."""

from collections.abc import Iterator

import pytest
from django.test import override_settings

from django_identity import conf
from django_identity.conf import Application
from tests.fake_service import (
    FakeService,
    serving,
)
from tests.lifecycle.key_sets.origin import (
    publish,
)


@pytest.fixture
def origin() -> Iterator[FakeService]:
    with (
        serving() as service,
        override_settings(DJANGO_IDENTITY={"default": service.settings()}),
    ):
        publish(service, "key-1")
        yield service


@pytest.fixture
def site(origin: FakeService) -> Application:
    return conf.application()
