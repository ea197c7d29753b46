"""The fixtures in sites that are shaped otherwise, and what the sandbox's words do."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client, override_settings

from django_identity import conf
from django_identity.credentials import verify
from django_identity.exceptions import CredentialRejected
from django_identity.gates import claims_of
from django_identity.lifecycle.standing import standing_of
from django_identity.models import Consent, ErasureReceipt, LinkedIdentity, StoredClaim
from django_identity.testing.clock import Clock
from django_identity.testing.events import Webhooks
from django_identity.testing.issuer import Issuer
from django_identity.testing.sandbox import RunningSandbox, SandboxError, SandboxPerson
from tests.factories import make_user
from tests.lifecycle.refetching import refetched

pytestmark = pytest.mark.django_db(transaction=True)

SECOND = {**settings.DJANGO_IDENTITY["default"], "CLIENT_ID": "second-client"}
SignIn = Callable[..., Any]


def as_seen_now() -> User:
    """The user as another request would load them."""
    return User.objects.get()


# Sites of another shape


@pytest.fixture
def second_application() -> Iterator[None]:
    own = settings.DJANGO_IDENTITY
    with override_settings(DJANGO_IDENTITY={**own, "second": SECOND}):
        yield


@pytest.mark.usefixtures("second_application")
def test_other_applications_stay(client: Client, request: pytest.FixtureRequest) -> None:
    """Only ``default`` is registered at the sandbox."""
    registered: conf.Application = request.getfixturevalue("identity_application")
    assert set(conf.aliases()) == {"default", "second"}
    assert conf.application("second").client_id == "second-client"
    assert conf.application() == registered
    request.getfixturevalue("identity_sign_in")(client)
    assert LinkedIdentity.objects.get().application == "default"


@pytest.mark.parametrize("over_https", [False, True], ids=["http", "https"])
@pytest.mark.parametrize("same_site", ["Lax", "Strict"])
def test_a_sign_in_arrives(
    client: Client, identity_sign_in: SignIn, over_https: bool, same_site: str
) -> None:
    """Over the site's redirect to https, and over the hop of a strict session cookie."""
    with override_settings(SECURE_SSL_REDIRECT=over_https, SESSION_COOKIE_SAMESITE=same_site):
        assert identity_sign_in(client, next_url="/adults/")["Location"] == "/adults/"
        assert client.get("/", secure=over_https).content.decode() == as_seen_now().username


# Events


def test_an_event_is_signed_and_applied(
    client: Client,
    identity_sign_in: SignIn,
    identity_person: SandboxPerson,
    identity_event: Callable[..., Any],
) -> None:
    """What is named in the event is gone when the webhook has answered."""
    identity_sign_in(client)
    with override_settings(SECURE_SSL_REDIRECT=True):
        identity_event("claim.revoked", identity_person, claim_type="age_over_18")
    held = claims_of(as_seen_now())
    assert "age_over_18" not in held
    assert "unique_human" in held
    identity_event("consent.revoked", LinkedIdentity.objects.get())
    assert LinkedIdentity.objects.get().consent == Consent.REVOKED


def test_an_event_needs_no_sandbox(
    identity_of: Callable[..., LinkedIdentity], identity_event: Callable[..., Any]
) -> None:
    """By a built identity, or by its subject; what is not acknowledged is said."""
    identity = identity_of(make_user())
    identity_event("kyc.rejected", identity.subject, event_id="evt_1", status="rejected")
    assert not standing_of(as_seen_now()).has_kyc_level("level_2")
    with pytest.raises(AssertionError, match="answered 400"):
        identity_event("x" * 65, identity)
    unsigned = {**settings.DJANGO_IDENTITY["default"], "WEBHOOK_SECRETS": []}
    with (
        override_settings(DJANGO_IDENTITY={"default": unsigned}),
        pytest.raises(AssertionError, match="no WEBHOOK_SECRETS"),
    ):
        identity_event("kyc.rejected", identity)


def test_the_sandbox_sends_to_the_live_server(
    client: Client,
    identity_sign_in: SignIn,
    identity_person: SandboxPerson,
    identity_sandbox: RunningSandbox,
    identity_webhooks: Webhooks,
) -> None:
    """What the person does at the service reaches the site."""
    identity_sign_in(client)
    identity_sandbox.revoke_claim(identity_person, "age_over_18")
    identity_webhooks.settle()
    assert "age_over_18" not in claims_of(as_seen_now())
    identity_sandbox.revoke_consent(identity_person)
    identity_webhooks.settle()
    assert LinkedIdentity.objects.get().consent == Consent.REVOKED
    kinds = [each["event_type"] for each in identity_webhooks.deliveries()]
    assert kinds[-2:] == ["claim.revoked", "consent.revoked"]


def test_what_the_site_refuses_is_said(
    client: Client,
    identity_sign_in: SignIn,
    identity_person: SandboxPerson,
    identity_sandbox: RunningSandbox,
    identity_webhooks: Webhooks,
) -> None:
    """With the site's status, and at once."""
    identity_sign_in(client)
    identity_webhooks.settle()
    given = {**settings.DJANGO_IDENTITY["default"], "WEBHOOK_SECRETS": ["another" * 6]}
    with override_settings(DJANGO_IDENTITY={"default": given}):
        identity_sandbox.revoke_claim(identity_person, "age_over_18")
        with pytest.raises(AssertionError, match=r"claim.revoked.*401"):
            identity_webhooks.settle()


# The issuer


def test_a_real_credential(identity_issuer: Issuer) -> None:
    """Verified by the public function, and refused for another subject or after its end."""
    application = conf.application()
    whose = {"issuer": application.api_origin, "audience": application.client_id}
    text = identity_issuer.credential("ada", {"age_over_18": True, "country_resident": "NG"})
    proof = verify(text, keys=identity_issuer.keys, environment="test", subject="ada", **whose)
    assert dict(proof.claims) == {"age_over_18": True, "country_resident": "NG"}
    for wrong, reason in (
        (identity_issuer.credential("eve"), "payload.sub"),
        (identity_issuer.credential("ada", lifetime=timedelta(0)), "payload.expired"),
        (identity_issuer.credential("ada", aud="x"), "payload.aud"),
    ):
        with pytest.raises(CredentialRejected) as rejected:
            verify(wrong, keys=identity_issuer.keys, environment="test", subject="ada", **whose)
        assert rejected.value.reason == reason


def test_the_site_takes_what_the_issuer_signs(
    identity_issuer: Issuer, identity_clock: Clock
) -> None:
    """By the whole check of a sign-in, stored as after one; without a call to any service."""
    identity = identity_issuer.link(make_user(), {"age_over_18": True, "unique_human": False})
    assert claims_of(as_seen_now()) == {"age_over_18": True}
    assert LinkedIdentity.objects.get().credential_expires_at
    identity_clock.advance(hours=1)
    identity_issuer.give(identity, identity_issuer.credential(identity.subject, {}))
    assert claims_of(as_seen_now()) == {}
    for wrong in (identity_issuer.credential("eve"), Issuer().credential(identity.subject)):
        with pytest.raises(CredentialRejected):
            identity_issuer.give(identity, wrong)
    assert not StoredClaim.objects.filter(claim_type="age_over_18", revoked_at=None).exists()


# The sandbox's words


def test_a_person_verifies(identity_sandbox: RunningSandbox) -> None:
    """With a test number."""
    person = identity_sandbox.create_person(verified=False)
    assert identity_sandbox.verify(person, "11111111111") == "name_mismatch"
    assert identity_sandbox.verify(person) == "verified"


def test_a_connect_code(identity_sandbox: RunningSandbox, identity_person: SandboxPerson) -> None:
    """In the form that people paste."""
    assert identity_sandbox.connect_code(identity_person).startswith("CNX-")


def test_a_deletion(
    client: Client,
    identity_sign_in: SignIn,
    identity_person: SandboxPerson,
    identity_sandbox: RunningSandbox,
    identity_webhooks: Webhooks,
) -> None:
    """Ends in a receipt at the site."""
    identity_sign_in(client)
    identity_sandbox.request_deletion(identity_person)
    identity_webhooks.settle()
    assert ErasureReceipt.objects.exists()


def test_new_keys(
    client: Client, identity_sign_in: SignIn, identity_sandbox: RunningSandbox,
    identity_clock: Clock,
) -> None:  # fmt: skip
    """The site fetches the new set for what the new key has signed."""
    identity_sign_in(client)
    before = LinkedIdentity.objects.get().credential_issued_at
    identity_sandbox.rotate_keys()
    identity_clock.advance(hours=1)
    assert refetched(LinkedIdentity.objects.get()) == "stored"
    assert LinkedIdentity.objects.get().credential_issued_at != before


@pytest.mark.parametrize(
    ("kind", "how"),
    [("status", {"status": 503}), ("malformed", {}), ("drop", {}), ("delay", {"seconds": 0.2})],
)
def test_a_failure_is_ordered(
    client: Client, identity_sign_in: SignIn, identity_sandbox: RunningSandbox, kind: str,
    how: dict[str, Any],
) -> None:  # fmt: skip
    """For the next request only, or for several; a delay alone harms nobody."""
    identity_sandbox.fail_next("token", kind, **how)
    status = identity_sign_in(client).status_code
    assert (status == 302) is (kind == "delay")
    assert identity_sign_in(client).status_code == 302
    assert [each["endpoint"] for each in identity_sandbox.requests("token")] == ["token"] * 2


def test_a_failure_of_no_endpoint_is_a_mistake(identity_sandbox: RunningSandbox) -> None:
    with pytest.raises(SandboxError, match="no endpoint of that name"):
        identity_sandbox.fail_next("tokens")


def test_the_log_of_requests_begins_anew(identity_sandbox: RunningSandbox) -> None:
    """And so does the list of failures."""
    assert identity_sandbox.requests() == []
    assert identity_sandbox.control("GET", "faults") == []
