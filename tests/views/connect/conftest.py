"""Somebody who is signed in, and their browser."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from tests.factories import make_user
from tests.views.connect.pages import browser_of


@pytest.fixture
def user() -> User:
    return make_user(email="other@example.org")


@pytest.fixture
def browser(user: User) -> Client:
    return browser_of(user)
