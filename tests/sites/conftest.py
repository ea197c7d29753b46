"""The fixtures of the walk. They need no Django settings of the test process."""

from collections.abc import Iterator

import pytest

from django_identity.testing.sandbox import (
    RunningSandbox,
    SandboxPerson,
    running_sandbox,
)
from tests.sites.browser import Browser
from tests.sites.running_site import RunningSite, running_site
from tests.sites.site_table import rows


@pytest.fixture(scope="session")
def sandbox() -> Iterator[RunningSandbox]:
    with running_sandbox() as started:
        yield started


@pytest.fixture(scope="session", params=rows())
def site(
    request: pytest.FixtureRequest,
    sandbox: RunningSandbox,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[RunningSite]:
    folder = tmp_path_factory.mktemp(request.param.name)
    with running_site(request.param, sandbox, folder) as started:
        yield started


@pytest.fixture
def person(sandbox: RunningSandbox) -> SandboxPerson:
    return sandbox.create_person()


@pytest.fixture
def browser(site: RunningSite) -> Iterator[Browser]:
    with Browser(site) as opened:
        yield opened
