"""The fixtures that sites use, used as a site would."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client
from django.utils import timezone

from django_identity import conf
from django_identity.gates import claims_of
from django_identity.lifecycle.standing import standing_of
from django_identity.models import Consent, LinkedIdentity
from django_identity.secrets import Secret
from django_identity.testing.build import build_claim, build_session
from django_identity.testing.clock import Clock, moved_clock
from django_identity.testing.sandbox import RunningSandbox, SandboxError, SandboxPerson
from tests.factories import make_user
from tests.lifecycle.refetching import refetched

pytestmark = pytest.mark.django_db(transaction=True)


def as_seen_now() -> User:
    """The user as another request would load them."""
    return User.objects.get()


def test_a_built_identity_opens_gates(identity_of: Callable[..., LinkedIdentity]) -> None:
    """With no service at all: claims, a level, and a session that ends with the consent."""
    user = make_user()
    identity = identity_of(user, claims={"age_over_18": True, "country_resident": "NG"})
    build_claim(identity, "unique_human")
    assert claims_of(as_seen_now()) == {
        "age_over_18": True, "country_resident": "NG", "unique_human": True,
    }  # fmt: skip
    assert standing_of(as_seen_now()).has_kyc_level("level_2")
    browser = Client()
    build_session(browser, user)
    assert browser.get("/").content == b"ada"
    LinkedIdentity.objects.update(consent=Consent.REVOKED)
    assert browser.get("/").content == b""


def test_the_clock_closes_gates(
    identity_of: Callable[..., LinkedIdentity], identity_clock: Clock
) -> None:
    """A claim runs out when its time has come."""
    identity_of(make_user())
    identity_clock.advance(hours=23, minutes=59)
    assert claims_of(as_seen_now()) == {"age_over_18": True}
    identity_clock.advance(minutes=1)
    assert claims_of(as_seen_now()) == {}


def test_the_clock_is_put_back() -> None:
    """The tests after it see real time."""
    before = timezone.now
    with moved_clock() as clock:
        clock.advance(days=2)
        assert timezone.now() - before() > timedelta(days=1)
    assert timezone.now is before


def test_a_whole_sign_in(
    client: Client,
    identity_sign_in: Callable[..., HttpResponse],
    identity_person: SandboxPerson,
) -> None:
    """Over real sockets, with a real credential, to where the person wanted to go."""
    response: Any = identity_sign_in(client, next_url="/adults/")
    assert response["Location"] == "/adults/"
    assert LinkedIdentity.objects.get().subject == identity_person.user_id
    assert claims_of(as_seen_now())["age_over_18"] is True


def test_the_sandbox_moves_with_the_clock(
    client: Client,
    identity_sign_in: Callable[..., HttpResponse],
    identity_clock: Clock,
) -> None:
    """A day later the old credential is worth nothing, and a new one is had of that later day."""
    identity_sign_in(client)
    identity_clock.advance(hours=25)
    assert claims_of(as_seen_now()) == {}
    assert refetched(LinkedIdentity.objects.get()) == "stored"
    assert claims_of(as_seen_now())["age_over_18"] is True


def test_the_sandboxs_clock_is_put_back(identity_sandbox: RunningSandbox) -> None:
    """The test before moved it."""
    assert identity_sandbox.control("GET", "clock")["offset_seconds"] == 0


def test_the_site_is_the_application(
    identity_application: conf.Application, identity_sandbox: RunningSandbox
) -> None:
    """Its addresses are the sandbox's; what else the site has set stays as it is."""
    assert identity_application == conf.application()
    assert identity_application.base_url == identity_sandbox.base_url
    assert identity_application.webhook_secrets == (Secret("a-webhook-secret-for-tests-alone"),)


def test_what_the_sandbox_refuses_is_said(
    identity_sandbox: RunningSandbox,
    identity_application: conf.Application,
    identity_person: SandboxPerson,
) -> None:
    """Its own words."""
    with pytest.raises(SandboxError, match="no such user"):
        identity_sandbox.control("GET", "users/nobody")
    with pytest.raises(SandboxError, match="/nowhere"):
        identity_sandbox.approve(f"{identity_sandbox.auth_url}/nowhere", identity_person)


def test_nothing_secret_is_in_a_repr(
    identity_sandbox: RunningSandbox, identity_person: SandboxPerson
) -> None:
    """A failing test prints its fixtures."""
    shown = repr(identity_sandbox) + repr(identity_person)
    for secret in (identity_sandbox.portal_token, identity_person.password, identity_person.email):
        assert secret not in shown
