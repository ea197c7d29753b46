"""Times at the edge of the calendar, as a service may write "never": stored, shown, no error."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from rest_framework.test import APIClient

from django_identity.models import LinkedIdentity, StoredClaim, WebhookEvent
from tests.deliveries import SECRET, event_body, post
from tests.faces import admin
from tests.faces.conftest import sign_in
from tests.hostile import HostileService
from tests.records import make_identity, make_user

pytestmark = pytest.mark.django_db(transaction=True)

LOCAL = "django.contrib.auth.backends.ModelBackend"
NEVER = "9999-12-31T23:59:59Z"
EDGES = (
    NEVER,
    "9999-12-31T23:59:59-14:00",
    "9999-12-31T23:59:59+14:00",
    "0001-01-01T00:00:00+14:00",
    "0001-01-01T00:00:00-14:00",
)
# As far east and west as people live.
ZONES = ("Pacific/Kiritimati", "Pacific/Pago_Pago")

edges = pytest.mark.parametrize("edge", EDGES)


def in_words(page: bytes) -> str:
    return re.sub(r"<[^>]+>|\s+", " ", page.decode())


def look_everywhere(person: Client, identity: LinkedIdentity, settings: Any) -> list[str]:
    """Every page about ``identity``, in each time zone; returns the account pages in words."""
    operator = admin.superuser()
    shown = []
    for settings.TIME_ZONE in ZONES:
        for name in ("account", "download", "api:me"):
            response = person.get(reverse(f"identity:{name}"))
            assert response.status_code == 200, (name, settings.TIME_ZONE)
            if name == "account":
                shown.append(in_words(response.content))
            else:
                json.loads(response.getvalue())
        for name in (admin.IDENTITIES, admin.EVENTS):
            admin.page(operator, name)
        admin.page(operator, admin.IDENTITY, identity.pk)
        for event in WebhookEvent.objects.all():
            admin.page(operator, admin.EVENT, event.pk)
    return shown


@edges
def test_claims_and_kyc(service: HostileService, client: Client, settings: Any, edge: str) -> None:
    """A sign-in whose claim, list, KYC status and signed times are at the edge ends signed in."""
    value = {"verified": True, "issued_at": edge, "expires_at": edge}
    service.disclosed = {"age_over_18": value, "unique_human": True}
    service.kyc = {"verified_at": edge}
    service.payload = {"exp": 253402300799, "iat": -62135596800}
    assert sign_in(client, "/").status_code == 302
    identity = LinkedIdentity.objects.get()
    shown = look_everywhere(client, identity, settings)
    has_no_end = edge.startswith("9999")
    assert all(("no end" in page) is has_no_end for page in shown)
    is_proven = StoredClaim.objects.get(claim_type="age_over_18").valid_until == (
        identity.credential_expires_at
    )
    assert is_proven is has_no_end


@edges
def test_listed_claims(service: HostileService, client: Client, settings: Any, edge: str) -> None:
    """The list beside the credential may say it as well."""
    service.disclosed = {"age_over_18": True}
    good = service.good("claims")
    good["data"]["claims"][0]["expires_at"] = edge
    service.answers = {"claims": good}
    assert sign_in(client, "/").status_code == 302
    look_everywhere(client, LinkedIdentity.objects.get(), settings)


@pytest.mark.parametrize("expires_in", [10**9, 1e308, 86401, 0.001])
def test_tokens(service: HostileService, client: Client, settings: Any, expires_in: float) -> None:
    """A token of any lifetime ends in a sign-in or on a page, never in an error of ours."""
    service.token = {"expires_in": expires_in, "refresh_expires_in": expires_in}
    assert sign_in(client, "/").status_code in (302, 502)
    for identity in LinkedIdentity.objects.all():
        look_everywhere(client, identity, settings)


@edges
def test_events(client: Client, settings: Any, edge: str) -> None:
    """An event of a moment at the edge is taken in or refused, and every page still opens."""
    ada = make_user()
    client.force_login(ada, backend=LOCAL)
    identity = make_identity(ada)
    for event_type in ("kyc.verified", "claim.revoked", "consent.granted", "kyc.something"):
        body = event_body(event_type, status="verified", expires_at=edge, verified_at=edge)
        body = re.sub(rb'"timestamp": "[^"]+"', f'"timestamp": "{edge}"'.encode(), body)
        assert post(body).status_code == (200 if edge.startswith("9999") else 400)
    look_everywhere(client, identity, settings)


@edges
def test_connect_answers(service: HostileService, client: Client, settings: Any, edge: str) -> None:
    """A Connect answer from before the calendar links nobody; after any other, all pages open."""
    ada = make_user()
    client.force_login(ada, backend=LOCAL)
    service.connect = {"issued_at": edge}
    service.connect["data"] = service.connect_result()["data"]
    service.connect["data"]["kyc"]["verified_at"] = edge
    browser = APIClient()
    browser.force_login(ada, backend=LOCAL)
    code = {"connect_code": "CNX-AB12-CD34"}
    answer = browser.post(reverse("identity:api:connect"), code, format="json")
    assert answer.status_code == (200 if edge.startswith("9999") else 403)
    for identity in LinkedIdentity.objects.all():
        look_everywhere(client, identity, settings)


def test_the_signature_is_still_asked_for() -> None:
    """An edge is no way past the signature."""
    body = event_body("kyc.verified").replace(b"timestamp", b"time\\u0073tamp")
    assert post(body, signature=SECRET).status_code == 401
