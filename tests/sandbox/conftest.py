"""One sandbox process for all tests here; each test leaves clock, switches and faults as found."""

from collections.abc import Iterator

import pytest

from tests.sandbox.driver import Application, Person, Sandbox
from tests.sandbox.receiver import SECRET, Receiver


@pytest.fixture(scope="session")
def running_sandbox() -> Iterator[Sandbox]:
    with Sandbox() as sandbox:
        sandbox.switches = sandbox.control("GET", "switches")
        yield sandbox


@pytest.fixture
def sandbox(running_sandbox: Sandbox) -> Iterator[Sandbox]:
    yield running_sandbox
    running_sandbox.close_browsers()
    running_sandbox.control("DELETE", "deliveries")
    if running_sandbox.is_changed:
        running_sandbox.control("POST", "clock", reset=True)
        running_sandbox.control("DELETE", "faults")
        running_sandbox.switch(**running_sandbox.switches)
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
