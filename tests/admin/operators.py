"""What the tests of the admin share: operators, addresses, and a way to press its buttons."""

from collections.abc import Iterator
from datetime import timedelta

from django.contrib.auth.models import Permission, User
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from django_identity.models import (
    AuthorizationRequest,
    ErasureReceipt,
    LinkedIdentity,
    Purpose,
    WebhookEvent,
)
from tests.factories import make_claim, make_event, make_grant, make_identity, make_user

MODEL_BACKEND = "django.contrib.auth.backends.ModelBackend"
IDENTITIES = "admin:django_identity_linkedidentity_changelist"
IDENTITY = "admin:django_identity_linkedidentity_change"
EVENTS = "admin:django_identity_webhookevent_changelist"
EVENT = "admin:django_identity_webhookevent_change"
RECEIPT = "admin:django_identity_erasurereceipt_change"
RECEIPTS = "admin:django_identity_erasurereceipt_changelist"
OVERVIEW = "admin:django_identity_overview_changelist"
ADDRESS = "ada@example.org"
SUBJECT = "7d1f0c9e-1111-4a57-9c57-0c6bd37f2b11"
TOKENS = ("at-plain-secret", "rt-plain-secret")
VERIFIER = "sealed-verifier"


def make_everything(username: str = "ada") -> LinkedIdentity:
    """Claim, grant, credential, failed event, sign-in, pending erasure; it fails and is due."""
    user, now = make_user(username, email=ADDRESS), timezone.now()
    made = make_identity(
        user,
        subject=SUBJECT,
        scopes=["profile:read", "claims:read"],
        refetch_failures=2,
        last_error="service_timeout",
        refetch_due_at=now + timedelta(minutes=7, seconds=30),
        credential_issued_at=now - timedelta(hours=1),
        credential_expires_at=now + timedelta(hours=5, minutes=2),
    )
    make_grant(made, access_token=TOKENS[0], refresh_token=TOKENS[1])
    make_claim(made, proof_hash="sha256:proof")
    make_event(made, "claim.issued", outcome="failed")
    AuthorizationRequest.objects.create(
        state_digest="s",
        browser_digest="b",
        environment="test",
        purpose=Purpose.SIGN_IN,
        completed_by=user,
        redirect_uri="/",
        code_verifier=VERIFIER,
        expires_at=now,
        consumed_at=now,
        outcome="completed",
    )
    pending = {"requested_at": now, "next_attempt_at": now}
    ErasureReceipt.objects.create(account=str(user.pk), **pending)
    made.refresh_from_db()
    return made


def superuser() -> Client:
    """A browser in which somebody is signed in who may do everything."""
    browser = Client()
    browser.force_login(User.objects.create_superuser("root"), backend=MODEL_BACKEND)
    return browser


def staff(*permissions: str) -> Client:
    """A browser of a member of staff with these permissions and no other."""
    user = User.objects.create(username=f"staff-{User.objects.count()}", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    browser = Client()
    browser.force_login(user, backend=MODEL_BACKEND)
    return browser


def page(browser: Client, name: str, *arguments: object, **query: str) -> str:
    response = browser.get(reverse(name, args=arguments), query)
    assert response.status_code == 200
    return response.content.decode()


def press(
    browser: Client,
    action: str,
    *rows: object,
    into: str = IDENTITIES,
    **typed: str,
) -> HttpResponse:
    """Send the action for ``rows``; with ``confirmed="yes"`` as its confirmation page does."""
    chosen = {"action": action, "_selected_action": [row.pk for row in rows], **typed}
    return browser.post(reverse(into), chosen)


def every_page(browser: Client) -> Iterator[str]:
    """Every page of the admin, the questions that its actions ask included."""
    for name in (IDENTITIES, EVENTS, RECEIPTS, OVERVIEW, "admin:index"):
        yield page(browser, name)
    for model in (LinkedIdentity, WebhookEvent, ErasureReceipt):
        name = f"admin:django_identity_{model._meta.model_name}"
        for row in model.objects.all():
            yield page(browser, f"{name}_change", row.pk)
            yield page(browser, f"{name}_history", row.pk)
    for action in ("refetch", "revoke", "erase"):
        yield press(browser, action, LinkedIdentity.objects.get()).content.decode()
    yield press(
        browser,
        "replay",
        WebhookEvent.objects.get(),
        into=EVENTS,
    ).content.decode()
