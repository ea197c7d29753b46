"""The admin's pages: what they show, and what they never show."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from django_identity.lifecycle.standing import Reason
from django_identity.models import (
    AuthorizationRequest,
    ErasureReceipt,
    LinkedIdentity,
    Purpose,
    WebhookEvent,
)
from django_identity.texts.advice import REASONS
from tests.admin.operators import (
    EVENT,
    EVENTS,
    IDENTITIES,
    IDENTITY,
    OVERVIEW,
    RECEIPT,
    RECEIPTS,
    every_page,
    page,
    press,
    staff,
)
from tests.factories import make_claim, make_event, make_grant, make_identity, make_user

pytestmark = pytest.mark.django_db

SUBJECT = "7d1f0c9e-1111-4a57-9c57-0c6bd37f2b11"
PLAIN = ("at-plain-secret", "rt-plain-secret", "credential-plain-secret")
VERIFIER = "sealed-verifier"
LISTS = (IDENTITIES, EVENTS, RECEIPTS)


@pytest.fixture
def identity() -> LinkedIdentity:
    """One with everything: claims, grant, credential, an event, a sign-in, a failure."""
    user, now = make_user("ada", email="ada@example.org"), timezone.now()
    made = make_identity(
        user, subject=SUBJECT, scopes=["profile:read", "claims:read"], refetch_failures=2,
        last_error="service_timeout", refetch_due_at=now + timedelta(minutes=7, seconds=30),
        credential_issued_at=now - timedelta(hours=1),
        credential_expires_at=now + timedelta(hours=5, minutes=2),
    )  # fmt: skip
    make_grant(made, access_token=PLAIN[0], refresh_token=PLAIN[1])
    make_claim(made, proof_hash="sha256:proof")
    make_event(made, "claim.issued")
    AuthorizationRequest.objects.create(
        state_digest="s", browser_digest="b", application="default", environment="test",
        purpose=Purpose.SIGN_IN, completed_by=user, redirect_uri="/", code_verifier=VERIFIER,
        expires_at=now, consumed_at=now, outcome="completed",
    )  # fmt: skip
    ErasureReceipt.objects.create(application="default", requested_at=now)
    made.refresh_from_db()
    return made


def test_no_secret_stands_on_any_page(operator: Client, identity: LinkedIdentity) -> None:
    """Tokens, credentials and verifiers appear nowhere: not plain, not sealed, not in part."""
    grant = identity.grant
    kept = (grant.access_token, grant.refresh_token)
    bodies = {value.rpartition(".")[2] for value in kept}
    pages = list(every_page(operator))
    assert len(pages) == 15
    for secret in (*PLAIN, *kept, *bodies, VERIFIER):
        assert not any(secret in text for text in pages)


def test_nothing_can_be_added_changed_or_deleted(
    operator: Client, identity: LinkedIdentity
) -> None:
    """Not even by a superuser: what the service owns is looked at, or erased."""
    rows = (identity, WebhookEvent.objects.get(), ErasureReceipt.objects.get())
    for row in rows:
        name = f"admin:django_identity_{row._meta.model_name}"
        assert operator.get(reverse(f"{name}_add")).status_code == 403
        assert operator.get(reverse(f"{name}_delete", args=[row.pk])).status_code == 403
        changed = operator.post(reverse(f"{name}_change", args=[row.pk]), {"application": "x"})
        assert changed.status_code == 403
        row.refresh_from_db()
        assert row.application == "default"


@pytest.mark.parametrize("name", [*LISTS, OVERVIEW])
def test_a_page_needs_its_permission(name: str) -> None:
    """Staff without the permission to look at these records see none of them."""
    assert staff().get(reverse(name)).status_code == 403
    assert Client().get(reverse(name)).status_code == 302


def test_test_data_is_marked_in_words(
    operator: Client, identity: LinkedIdentity, settings: Any
) -> None:
    """On pages, the confirmation and the overview; on lists where there is another application.

    Nothing of a live application is marked, nor of one that is gone.
    """
    assert "TEST DATA" not in page(operator, EVENTS)
    given = settings.DJANGO_IDENTITY["default"]
    settings.DJANGO_IDENTITY = {"default": given, "other": given}
    for text in (
        page(operator, EVENTS),
        page(operator, EVENT, WebhookEvent.objects.get().pk),
        page(operator, IDENTITIES),
        page(operator, IDENTITY, identity.pk),
        press(operator, "revoke", identity).content.decode(),
        page(operator, OVERVIEW),
    ):
        assert "TEST DATA" in text
    live = {"ENVIRONMENT": "live", "BASE_URL": "https://a.example/api/v1"}
    settings.DJANGO_IDENTITY = {"default": {**given, **live, "AUTH_URL": "https://a.example"}}
    assert "TEST DATA" not in page(operator, EVENT, WebhookEvent.objects.get().pk)
    WebhookEvent.objects.update(application="gone")
    assert "TEST DATA" not in page(operator, EVENTS)


def test_the_page_of_an_identity(operator: Client, identity: LinkedIdentity) -> None:
    """Consent in words, claims with their proof, what happened, and the last error in words."""
    text = page(operator, IDENTITY, identity.pk)
    for words in (
        "Signed proofs, such as being 18 or older", "sha256:proof", "ada@example.org", SUBJECT,
        "Your identity service took too long to answer.", "Linked: sign-in",
        "claim.issued",
    ):  # fmt: skip
        assert words in text


def test_what_the_service_wrote_is_escaped(operator: Client, identity: LinkedIdentity) -> None:
    """Subjects, values and payloads are text, whatever they look like."""
    evil = "<script>alert(1)</script>"
    make_claim(identity, "kyc_verified", {"provider": evil}, provider=evil)
    LinkedIdentity.objects.update(subject=evil, kyc_level=evil, last_error=evil, scopes=[evil])
    WebhookEvent.objects.update(payload={"a": evil}, subject=evil, event_type=evil, error=evil)
    event = WebhookEvent.objects.get()
    for text in (
        page(operator, IDENTITIES), page(operator, IDENTITY, identity.pk), page(operator, EVENTS),
        page(operator, EVENT, event.pk), page(operator, OVERVIEW),
        press(operator, "erase", identity).content.decode(),
    ):  # fmt: skip
        assert evil not in text


def test_an_event_shows_its_payload_indented(operator: Client, identity: LinkedIdentity) -> None:
    """As readable JSON without control characters, or that it is no longer held."""
    event = WebhookEvent.objects.get()
    assert "{\n  &quot;user_id&quot;: &quot;" in page(operator, EVENT, event.pk)
    WebhookEvent.objects.update(payload={"note": "gpj\u202e.exe"})
    text = page(operator, EVENT, event.pk)
    assert "\u202e" not in text
    assert "gpj\\u202e.exe" in text
    WebhookEvent.objects.update(payload=None, event_id="", outcome="failed", error="names_nobody")
    text = page(operator, EVENT, event.pk)
    for words in ("no longer held", "The event names nobody"):
        assert words in text
    assert "Replay it" not in text, "no handler of the site has failed"


def test_charts_are_tables(operator: Client, identity: LinkedIdentity) -> None:
    """Each bar stands beside its label and its number; no style stands in the page."""
    text = page(operator, OVERVIEW)
    assert text.count("<caption>") == 7, "two are of the lists of the sidebar"
    assert re.search(r"granted · level_2</th>\s*<td><svg .*?</svg></td>\s*<td>1</td>", text)
    assert "<style" not in text
    assert " style=" not in text
    assert "nonsense" not in page(operator, OVERVIEW, of="nonsense")


def test_every_reason_and_moment_has_words() -> None:
    assert set(REASONS) == set(Reason)


def test_a_user_with_an_identity_is_not_deleted_by_the_way(
    operator: Client, identity: LinkedIdentity
) -> None:
    """Django's page of the user says that the identity is in the way; erase it first."""
    address = reverse("admin:auth_user_delete", args=[identity.user_id])
    operator.post(address, {"post": "yes"})
    assert User.objects.filter(pk=identity.user_id).exists()


@pytest.mark.urls("tests.admin.gated_urls")
def test_the_sites_own_gates_with_their_values(operator: Client) -> None:
    """The same answers as the gates give, and why not."""
    identity = make_identity(make_user("ben"))
    make_claim(identity, "country_resident", {"country": "EG"})
    shown = page(operator, IDENTITY, identity.pk)
    section = shown[shown.index('id="identity-gates"') :]
    rows = re.findall(r"<dt><code>(.*?)</code>.*?identity-badge[^>]*>(.*?)<", section, re.S)
    assert rows[:4] == [
        ("age_over_18", "closed"), ("country_resident=NG", "closed"), ("level_2", "open"),
        ("recent_sign_in (10 min)", "asks at the visit"),
    ]  # fmt: skip


def test_what_an_audit_found(operator: Client) -> None:
    """By model and field."""
    audit = {"hits": {"shop.Order.address": 2}, "unsure": {"blog.Post.text": 1}, "unread": {}}
    now = timezone.now()
    receipt = ErasureReceipt.objects.create(
        application="default", requested_at=now, erased_at=now, audit=audit
    )
    shown = page(operator, RECEIPT, receipt.pk)
    assert all(
        place in shown for place in ("shop.Order.address&quot;: 2", "blog.Post.text&quot;: 1")
    )
