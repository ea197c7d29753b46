"""The kit, used as a site would use it."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import override_settings
from django.urls import set_script_prefix
from django.utils import timezone

from django_identity import conf
from django_identity.credentials import verify
from django_identity.exceptions import CredentialRejected
from django_identity.gates import claims_of
from django_identity.lifecycle.standing.standing import standing_of
from django_identity.models import Consent, ErasureReceipt, LinkedIdentity
from django_identity.testing.clock import moved_clock
from django_identity.testing.issuer import Issuer
from django_identity.testing.sandbox import SandboxError
from tests.factories import make_user
from tests.lifecycle.refetches import refetched

pytestmark = pytest.mark.django_db(transaction=True)

OWN = settings.DJANGO_IDENTITY
Call = Callable[..., Any]


def as_seen_now() -> User:
    return User.objects.get()


# Without a service


def test_a_built_identity_opens_gates(identity_of, identity_clock):
    """Claims and a level, until their time has come."""
    held = {"age_over_18": True, "country_resident": "NG"}
    identity_of(make_user(), claims=held)
    identity_clock.advance(hours=23, minutes=59)
    assert claims_of(as_seen_now()) == held
    assert standing_of(as_seen_now()).level_shortfall("level_2") is None
    identity_clock.advance(minutes=1)
    assert claims_of(as_seen_now()) == {}


def test_the_clock_is_put_back():
    """The tests after it see real time."""
    before = timezone.now
    with moved_clock() as clock:
        clock.advance(days=2)
        assert timezone.now() - before() > timedelta(days=1)
    assert timezone.now is before


@pytest.mark.parametrize(
    ("subject", "changes", "reason"),
    [
        ("ada", {}, ""),
        ("eve", {}, "payload.sub"),
        ("ada", {"lifetime": timedelta(0)}, "payload.expired"),
        ("ada", {"aud": "x"}, "payload.aud"),
    ],
)
def test_a_real_credential_is_verified(identity_issuer, subject, changes, reason):
    """It is refused for another subject or audience, or after its end."""
    application = conf.application()
    claims = {"age_over_18": True, "country_resident": "NG"}
    ours = {
        "keys": identity_issuer.keys,
        "issuer": application.api_origin,
        "audience": application.client_id,
        "environment": "test",
    }
    text = identity_issuer.credential(subject, claims, **changes)
    if not reason:
        assert dict(verify(text, subject="ada", **ours).claims) == claims
        return
    with pytest.raises(CredentialRejected) as rejected:
        verify(text, subject="ada", **ours)
    assert rejected.value.reason == reason


def test_a_real_credential_is_stored_as_after_a_sign_in(identity_issuer):
    said = {"age_over_18": True, "unique_human": False}
    identity = identity_issuer.link(make_user(), said)
    assert claims_of(as_seen_now()) == {"age_over_18": True}
    identity_issuer.give(identity, identity_issuer.credential(identity.subject, {}))
    assert claims_of(as_seen_now()) == {}
    others = (identity_issuer.credential("eve"), Issuer().credential(identity.subject))
    for wrong in others:
        with pytest.raises(CredentialRejected):
            identity_issuer.give(identity, wrong)


def test_an_event_needs_no_sandbox(identity_of, identity_event):
    """By a built identity, or by its subject; what is not acknowledged is said."""
    identity = identity_of(make_user())
    with override_settings(SECURE_SSL_REDIRECT=True):
        identity_event("claim.revoked", identity, claim_type="age_over_18")
    assert claims_of(as_seen_now()) == {}
    about = {"event_id": "evt_1", "status": "rejected"}
    identity_event("kyc.rejected", identity.subject, **about)
    assert standing_of(as_seen_now()).level_shortfall("level_2")
    with pytest.raises(AssertionError, match="answered 400"):
        identity_event("x" * 65, identity)
    with (
        override_settings(DJANGO_IDENTITY={**OWN, "WEBHOOK_SECRETS": []}),
        pytest.raises(AssertionError, match="no WEBHOOK_SECRETS"),
    ):
        identity_event("kyc.rejected", identity)


# With the sandbox


@pytest.mark.parametrize("over_https", [False, True], ids=["http", "https"])
@pytest.mark.parametrize("same_site", ["Lax", "Strict"])
def test_a_whole_sign_in(
    client,
    identity_sign_in,
    identity_person,
    over_https,
    same_site,
):
    """Over the site's redirect to https, and over the hop of a strict session cookie."""
    site = {"SECURE_SSL_REDIRECT": over_https, "SESSION_COOKIE_SAMESITE": same_site}
    with override_settings(**site):
        assert identity_sign_in(client, next_url="/adults/")["Location"] == "/adults/"
        shown = client.get("/", secure=over_https)
        assert shown.content.decode() == as_seen_now().username
    assert LinkedIdentity.objects.get().subject == identity_person.user_id
    assert claims_of(as_seen_now())["age_over_18"] is True


def test_the_sandbox_moves_with_the_clock(
    client,
    identity_sign_in,
    identity_sandbox,
    identity_clock,
):
    """A day later the old credential is worth nothing, and a new one is had, by a new key too."""
    identity_sign_in(client)
    identity_sandbox.control("POST", "keys/rotate")
    identity_clock.advance(hours=25)
    assert claims_of(as_seen_now()) == {}
    assert refetched(LinkedIdentity.objects.get()) == "stored"
    assert claims_of(as_seen_now())["age_over_18"] is True
    with pytest.raises(SandboxError, match="no endpoint of that name"):
        identity_sandbox.fail_next("tokens")
    # What is left here must not reach the next test.
    identity_sandbox.fail_next("token", times=9)


def test_the_sandbox_begins_anew(
    identity_application,
    identity_sandbox,
    identity_person,
):
    """The tests before moved its clock; what it refuses is said, and no secret is in a repr."""
    assert identity_application == conf.application()
    assert identity_application.base_url == identity_sandbox.base_url
    assert identity_sandbox.control("GET", "clock")["offset_seconds"] == 0
    assert identity_sandbox.control("GET", "faults") == []
    assert identity_sandbox.connect_code(identity_person).startswith("CNX-")
    with pytest.raises(SandboxError, match="no such user"):
        identity_sandbox.control("GET", "users/nobody")
    shown = repr(identity_sandbox) + repr(identity_person)
    of_the_person = (identity_person.password, identity_person.email)
    for secret in (identity_sandbox.portal_token, *of_the_person):
        assert secret not in shown


def test_the_sandbox_sends_to_the_live_server(
    client,
    identity_sign_in,
    identity_person,
    identity_sandbox,
    identity_webhooks,
):
    """What the person does at the service reaches the site; what the site refuses is said."""
    identity_sign_in(client)
    identity_sandbox.revoke_claim(identity_person, "age_over_18")
    identity_webhooks()
    assert "age_over_18" not in claims_of(as_seen_now())

    given = {**settings.DJANGO_IDENTITY, "WEBHOOK_SECRETS": ["another" * 6]}
    with override_settings(DJANGO_IDENTITY=given):
        identity_sandbox.request_deletion(identity_person)
        with pytest.raises(SandboxError, match=r"data.deletion_requested.*401"):
            identity_webhooks()
    assert not ErasureReceipt.objects.exists()


@pytest.mark.usefixtures("identity_application")
def test_a_site_below_a_path(
    client,
    identity_sign_in,
    identity_event,
    identity_person,
    identity_sandbox,
):
    """The test client takes paths without ``FORCE_SCRIPT_NAME``, and every address has it."""
    callback = "https://testserver/portal/identity/callback/"
    given = {**settings.DJANGO_IDENTITY, **identity_sandbox.register([callback])}
    with override_settings(FORCE_SCRIPT_NAME="/portal", DJANGO_IDENTITY=given):
        set_script_prefix("/portal/")
        arrived = identity_sign_in(client, next_url="/portal/")
        identity_event("consent.revoked", identity_person)
    set_script_prefix("/")
    assert arrived["Location"] == "/portal/"
    assert LinkedIdentity.objects.get().consent == Consent.REVOKED
