"""Fixtures for a site's tests: ``pytest_plugins = ["django_identity.testing.plugin"]``.

They need pytest-django. Fixtures that start the sandbox also need the extra ``[sandbox]`` and tests
with ``django_db``. One sandbox process serves the whole run.
"""

import secrets
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from django.conf import settings
from django.http import HttpResponseBase
from django.test import Client, override_settings
from django.urls import reverse

from django_identity import boundary, conf
from django_identity.lifecycle.said import key_sets
from django_identity.models import LinkedIdentity
from django_identity.testing import browser
from django_identity.testing.build import build_identity
from django_identity.testing.clock import Clock, moved_clock
from django_identity.testing.events import deliver_event
from django_identity.testing.issuer import Issuer
from django_identity.testing.sandbox import (
    RunningSandbox,
    SandboxPerson,
    running_sandbox,
)
from django_identity.web.pages import address_of

boundary.tests.see_errors = True

SANDBOX = "identity_sandbox"
SITES = ("http://testserver", "https://testserver")


@pytest.fixture
def identity_of() -> Callable[..., LinkedIdentity]:
    """``identity_of(user, claims={"age_over_18": True})`` opens gates by rows alone."""
    return build_identity


@pytest.fixture(scope="session")
def identity_running_sandbox() -> Iterator[RunningSandbox]:
    """The sandbox for the whole run. Prefer ``identity_sandbox``, which resets its clock."""
    with running_sandbox() as sandbox:
        yield sandbox


@pytest.fixture
def identity_sandbox(
    identity_running_sandbox: RunningSandbox,
) -> Iterator[RunningSandbox]:
    """The sandbox. Its clock, switches, faults and request log are reset for each test."""
    sandbox = identity_running_sandbox
    switches = sandbox.control("GET", "switches")
    sandbox.control("DELETE", "requests")
    yield sandbox
    sandbox.control("POST", "clock", reset=True)
    sandbox.control("DELETE", "faults")
    sandbox.control("POST", "switches", **switches)


@pytest.fixture
def identity_application(
    identity_sandbox: RunningSandbox,
) -> Iterator[conf.Application]:
    """The site, registered at the sandbox."""
    own = getattr(settings, "DJANGO_IDENTITY", {})
    callback = reverse("identity:callback")
    registered = identity_sandbox.register([f"{site}{callback}" for site in SITES])
    # The callback address is built from the request, which may be plain http.
    application = {
        "WEBHOOK_SECRETS": [secrets.token_urlsafe(32)],
        **own,
        "API_ORIGIN": None,
        "REDIRECT_URI": None,
        **registered,
    }
    with override_settings(DJANGO_IDENTITY=application):
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
    """``identity_sign_in(client)``: a whole sign-in over https. Returns the last response."""

    def sign_in_here(
        client: Client,
        person: SandboxPerson = identity_person,
        next_url: str = "",
    ) -> HttpResponseBase:
        leaving = browser.begin(client, next_url=next_url)
        return browser.come_back(client, identity_sandbox.approve(leaving, person))

    return sign_in_here


@pytest.fixture
def identity_event() -> Callable[..., HttpResponseBase]:
    """``identity_event("claim.revoked", person, claim_type="age_over_18")``: a signed event."""
    return deliver_event


@pytest.fixture
def identity_webhooks(
    identity_sandbox: RunningSandbox,
    identity_application: conf.Application,
    live_server: Any,
) -> Iterator[Callable[[], None]]:
    """The sandbox sends its events to the live server. ``identity_webhooks()`` waits for them."""
    client_id = identity_application.client_id
    secret = identity_application.webhook_secrets[0]
    address = live_server.url + address_of("webhook")
    registered = identity_sandbox.control("GET", "applications")
    app_id = next(
        app["app_id"] for app in registered if client_id in app["clients"].values()
    )
    webhook = partial(
        identity_sandbox.control,
        "POST",
        f"applications/{app_id}/webhook",
    )
    webhook(url=address, secret=secret.reveal())
    yield partial(identity_sandbox.settle, client_id)
    webhook(url="")


@pytest.fixture
def identity_issuer() -> Iterator[Issuer]:
    """Makes real credentials for the site, in this process."""
    yield Issuer()
    key_sets.forget()


@pytest.fixture
def identity_clock(request: pytest.FixtureRequest) -> Iterator[Clock]:
    """``identity_clock.advance(hours=25)`` moves the clock, also of the test's sandbox."""
    is_used = SANDBOX in request.fixturenames
    with moved_clock(request.getfixturevalue(SANDBOX) if is_used else None) as clock:
        yield clock
