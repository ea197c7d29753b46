import pytest
from django.test import Client

from django_identity.models import LinkedIdentity
from tests.admin.operators import make_everything, superuser


@pytest.fixture
def operator() -> Client:
    return superuser()


@pytest.fixture
def identity() -> LinkedIdentity:
    return make_everything()
