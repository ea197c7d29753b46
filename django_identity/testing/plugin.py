"""Fixtures for a site's tests: ``pytest_plugins = ["django_identity.testing.plugin"]``.

They need pytest-django. Fixtures that start the sandbox also need the extra ``[sandbox]`` and tests
with ``django_db``. One sandbox process serves the whole run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
from django.conf import settings
from django.http import HttpResponseBase
from django.test import Client, override_settings
from django.urls import reverse

from django_identity import conf
from django_identity.models import LinkedIdentity
from django_identity.testing.build import build_identity
from django_identity.testing.clock import Clock, moved_clock
from django_identity.testing.sandbox import RunningSandbox, SandboxPerson, running_sandbox
from django_identity.views.addresses import address_of

HOST = "http://testserver"
SANDBOX = "identity_sandbox"


@pytest.fixture
def identity_of() -> Callable[..., LinkedIdentity]:
    """``identity_of(user, claims={"age_over_18": True})`` opens gates without a service."""
    return build_identity


@pytest.fixture(scope="session")
def identity_running_sandbox() -> Iterator[RunningSandbox]:
    """The sandbox for the whole run. Prefer ``identity_sandbox``, which resets its clock."""
    with running_sandbox() as sandbox:
        yield sandbox


@pytest.fixture
def identity_sandbox(identity_running_sandbox: RunningSandbox) -> Iterator[RunningSandbox]:
    """The sandbox. Its clock, switches and faults are reset after each test."""
    switches = identity_running_sandbox.control("GET", "switches")
    yield identity_running_sandbox
    identity_running_sandbox.control("POST", "clock", reset=True)
    identity_running_sandbox.control("DELETE", "faults")
    identity_running_sandbox.control("POST", "switches", **switches)


@pytest.fixture
def identity_application(identity_sandbox: RunningSandbox) -> Iterator[conf.Application]:
    """The site, registered at the sandbox as its application ``"default"``."""
    own = getattr(settings, "DJANGO_IDENTITY", {}).get(conf.DEFAULT_ALIAS, {})
    registered = identity_sandbox.register([HOST + reverse("identity:callback")])
    # The callback address is built from the request, because the test client uses plain http.
    given = {**own, "API_ORIGIN": None, "REDIRECT_URI": None, **registered}
    with override_settings(DJANGO_IDENTITY={conf.DEFAULT_ALIAS: given}):
        yield conf.application()


@pytest.fixture
def identity_person(identity_sandbox: RunningSandbox) -> SandboxPerson:
    """A person who is verified at the sandbox."""
    return identity_sandbox.create_person()


@pytest.fixture
def identity_sign_in(
    identity_sandbox: RunningSandbox,
    identity_application: conf.Application,
    identity_person: SandboxPerson,
) -> Callable[..., HttpResponseBase]:
    """``identity_sign_in(client)``: a whole sign-in over real sockets. Returns the response."""

    def sign_in(
        client: Client, person: SandboxPerson = identity_person, next_url: str = ""
    ) -> HttpResponseBase:
        leaving = client.post(address_of("login", identity_application), {"next": next_url})
        back = identity_sandbox.approve(leaving["Location"], person)
        return client.get(back.removeprefix(HOST))

    return sign_in


@pytest.fixture
def identity_clock(request: pytest.FixtureRequest) -> Iterator[Clock]:
    """``identity_clock.advance(hours=25)`` moves the clock, also of the test's sandbox."""
    followers = []
    if SANDBOX in request.fixturenames:
        sandbox: RunningSandbox = request.getfixturevalue(SANDBOX)

        def follow(passed: timedelta) -> None:
            sandbox.control("POST", "clock", advance=passed.total_seconds())

        followers.append(follow)
    with moved_clock(*followers) as clock:
        yield clock
