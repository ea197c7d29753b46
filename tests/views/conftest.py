"""Somebody who is signed in and their browser, and how a sign-in is refused."""

import logging
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from tests.factories import make_user
from tests.views.bad_input import refusals
from tests.views.connect.pages import browser_of


@pytest.fixture
def user() -> User:
    return make_user(email="other@example.org")


@pytest.fixture
def browser(user: User) -> Client:
    return browser_of(user)


@pytest.fixture
def refused(caplog: pytest.LogCaptureFixture) -> Any:
    """``refused(response, code)``: the sign-in ended as ``refusals.refused`` says."""
    caplog.set_level(logging.DEBUG)
    return partial(refusals.refused, caplog=caplog)
