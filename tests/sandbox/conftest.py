"""The kit's sandbox, and an application and a person there."""

from collections.abc import Iterator

import pytest

from django_identity.testing.sandbox import RunningSandbox
from tests.sandbox.driver import KEY, Application, Person, Sandbox
from tests.sandbox.receiver import SECRET, Receiver


@pytest.fixture
def sandbox(identity_sandbox: RunningSandbox) -> Iterator[Sandbox]:
    with Sandbox(identity_sandbox) as sandbox:
        yield sandbox


@pytest.fixture(scope="session")
def shop(identity_running_sandbox: RunningSandbox) -> Iterator[Application]:
    """An application that no test changes, for what is refused."""
    with Sandbox(identity_running_sandbox) as sandbox:
        yield Application(sandbox)


@pytest.fixture(scope="session")
def resident(shop: Application) -> Person:
    """A person whom no test changes."""
    return Person(shop.sandbox, verified=True)


@pytest.fixture
def application(sandbox: Sandbox) -> Application:
    return Application(sandbox)


@pytest.fixture
def trusted(application: Application) -> Application:
    """An application of the trusted tier, which has the private part of ``KEY``."""
    application.trust(KEY)
    return application


@pytest.fixture
def person(sandbox: Sandbox) -> Person:
    return Person(sandbox, verified=True)


@pytest.fixture
def receiver(sandbox: Sandbox) -> Iterator[Receiver]:
    sandbox.control("DELETE", "deliveries")
    with Receiver(is_coming=sandbox.is_sending) as receiver:
        yield receiver


@pytest.fixture
def hearing(application: Application, receiver: Receiver) -> Application:
    """An application whose events go to ``receiver``."""
    application.receive_at(receiver.url, secret=SECRET)
    return application
