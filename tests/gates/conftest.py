"""Whom gates are asked about."""

from collections.abc import Iterator

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import override_settings

from tests.factories import make_claim, make_identity, make_user


@pytest.fixture
def user() -> User:
    """Somebody over 18, of Nigeria, at the second level: every gate is open to them."""
    person = make_user()
    identity = make_identity(person)
    make_claim(identity)
    make_claim(identity, "country_resident", "NG")
    return person


@pytest.fixture
def two_applications() -> Iterator[None]:
    default = settings.DJANGO_IDENTITY["default"]
    with override_settings(DJANGO_IDENTITY={"default": default, "second": default}):
        yield
