"""The sandbox, an application and a person there, and a browser at the site."""

from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User
from django.test import Client

from tests.factories import make_user
from tests.sandbox.driver import Application, Person, Sandbox
from tests.views.connect.pages import browser_of
from tests.views.connect_sandbox.pages import site_of


@pytest.fixture(scope="module")
def running() -> Iterator[Sandbox]:
    with Sandbox() as sandbox:
        yield sandbox


@pytest.fixture
def sandbox(running: Sandbox) -> Iterator[Sandbox]:
    switches = running.control("GET", "switches")
    running.control("DELETE", "requests")
    yield running
    running.close_browsers()
    running.control("POST", "clock", reset=True)
    running.control("POST", "switches", **switches)


@pytest.fixture
def application(sandbox: Sandbox) -> Iterator[Application]:
    registered = Application(sandbox)
    with site_of(registered):
        yield registered


@pytest.fixture
def person(sandbox: Sandbox) -> Person:
    return Person(sandbox, verified=True)


@pytest.fixture
def user() -> User:
    return make_user()


@pytest.fixture
def browser(user: User) -> Client:
    return browser_of(user)
