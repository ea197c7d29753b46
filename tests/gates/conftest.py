"""Whom gates are asked about."""

import pytest
from django.contrib.auth.models import User

from tests.factories import make_claim, make_identity, make_user


@pytest.fixture
def user() -> User:
    """Somebody over 18, of Nigeria, at the second level: every gate is open to them."""
    person = make_user()
    identity = make_identity(person)
    make_claim(identity)
    make_claim(identity, "country_resident", "NG")
    return person
