import pytest
from django.test import Client

from tests.admin.operators import superuser


@pytest.fixture
def operator() -> Client:
    return superuser()
