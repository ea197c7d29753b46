"""One sandbox process for all tests here; each test leaves clock, switches and faults as found."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.sandbox.driver import Application, Person, Sandbox
from tests.sandbox.receiver import SECRET, Receiver


@pytest.fixture(scope="session")
def running_sandbox() -> Iterator[Sandbox]:
    with Sandbox() as sandbox:
        yield sandbox


@pytest.fixture(scope="session")
def switches_at_the_start(running_sandbox: Sandbox) -> dict[str, Any]:
    """The switches as they are at the start."""
    found: dict[str, Any] = running_sandbox.control("GET", "switches")
    return found


@pytest.fixture
def sandbox(running_sandbox: Sandbox, switches_at_the_start: dict[str, Any]) -> Iterator[Sandbox]:
    yield running_sandbox
    running_sandbox.close_browsers()
    running_sandbox.control("DELETE", "deliveries")
    if running_sandbox.is_changed:
        running_sandbox.control("POST", "clock", reset=True)
        running_sandbox.control("DELETE", "faults")
        running_sandbox.control("POST", "switches", **switches_at_the_start)
        running_sandbox.is_changed = False


@pytest.fixture
def application(sandbox: Sandbox) -> Application:
    return Application(sandbox)


@pytest.fixture
def person(sandbox: Sandbox) -> Person:
    return Person(sandbox, verified=True)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as receiver:
        yield receiver


@pytest.fixture
def hearing(application: Application, receiver: Receiver) -> Application:
    """An application whose events go to ``receiver``."""
    application.receive_at(receiver.url, secret=SECRET)
    return application
