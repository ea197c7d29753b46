"""Times at the edge of the calendar, as a service may write "never": stored, shown, no error."""

import json
import re
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from django_identity.models import LinkedIdentity, StoredClaim, WebhookEvent
from tests.admin import operators
from tests.deliveries import event_body, post
from tests.factories import make_identity, make_user
from tests.fake_service import FakeService
from tests.sign_in import sign_in
from tests.views.connect.pages import browser_of

pytestmark = pytest.mark.django_db(transaction=True)

EDGES = ("9999-12-31T23:59:59Z", "9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00")
# As far east and west as people live.
ZONES = ("Pacific/Kiritimati", "Pacific/Pago_Pago")

edges = pytest.mark.parametrize("edge", EDGES)


def look_everywhere(person: Client, identity: LinkedIdentity, settings: Any) -> list[str]:
    """Every page about ``identity``, in each time zone; returns the account pages."""
    operator = operators.superuser()
    shown = []
    for settings.TIME_ZONE in ZONES:
        for name in ("identity:account", "identity:download", "identity_api:me"):
            response = person.get(reverse(name))
            assert response.status_code == 200, (name, settings.TIME_ZONE)
            if name == "identity:account":
                shown.append(response.content.decode())
            else:
                json.loads(response.getvalue())
        for name in (operators.IDENTITIES, operators.EVENTS):
            operators.page(operator, name)
        operators.page(operator, operators.IDENTITY, identity.pk)
        for event in WebhookEvent.objects.all():
            operators.page(operator, operators.EVENT, event.pk)
    return shown


@edges
def test_claims_and_kyc(service: FakeService, client: Client, settings: Any, edge: str) -> None:
    """A sign-in whose claim, list, KYC status and signed times are at the edge ends signed in."""
    value = {"verified": True, "issued_at": edge, "expires_at": edge}
    service.disclosed = {"age_over_18": value, "unique_human": True}
    service.kyc = {"verified_at": edge}
    service.payload = {"exp": 253402300799, "iat": -62135596800}
    assert sign_in(client, "/").status_code == 302
    identity = LinkedIdentity.objects.get()
    assert look_everywhere(client, identity, settings)
    valid_until = StoredClaim.objects.get(claim_type="age_over_18").valid_until
    assert valid_until is not None
    assert (valid_until > timezone.now()) is edge.startswith("9999")


@pytest.mark.parametrize("expires_in", [10**9, 1e308, 86401, 0.001])
def test_tokens(service: FakeService, client: Client, settings: Any, expires_in: float) -> None:
    """A token of any lifetime ends in a sign-in or on a page, never in an error of ours."""
    service.token = {"expires_in": expires_in, "refresh_expires_in": expires_in}
    assert sign_in(client, "/").status_code in (302, 502)
    for identity in LinkedIdentity.objects.all():
        look_everywhere(client, identity, settings)


@edges
def test_events(settings: Any, edge: str) -> None:
    """An event of a moment at the edge is taken in, and every page still opens."""
    identity = make_identity(make_user())
    for event_type in ("kyc.verified", "claim.revoked", "consent.granted", "kyc.something"):
        body = event_body(event_type, status="verified", expires_at=edge, verified_at=edge)
        body = re.sub(rb'"timestamp": "[^"]+"', f'"timestamp": "{edge}"'.encode(), body)
        assert post(body).status_code == 200
    look_everywhere(browser_of(identity.user), identity, settings)
