"""Times at the edge of the calendar, as a service may write "never": stored, shown, no error."""

import re

import pytest
from django.urls import reverse
from django.utils import timezone

from django_identity.models import LinkedIdentity, StoredClaim, WebhookEvent
from tests.admin import operators
from tests.deliveries import SECRET, event_body, post
from tests.sign_in import sign_in

pytestmark = pytest.mark.django_db(transaction=True)

EDGES = (
    "9999-12-31T23:59:59Z",
    "9999-12-31T23:59:59-14:00",
    "0001-01-01T00:00:00+14:00",
)
# As far east and west as people live.
ZONES = ("Pacific/Kiritimati", "Pacific/Pago_Pago")


@pytest.mark.parametrize("edge", EDGES)
def test_every_page_opens_with_times_at_the_calendars_edges(
    service, client, settings, edge
):
    """After a sign-in and events with claims, KYC status and times at the edge, in every zone."""
    settings.DJANGO_IDENTITY = service.settings(WEBHOOK_SECRETS=[SECRET])
    value = {"verified": True, "issued_at": edge, "expires_at": edge}
    service.disclosed = {"age_over_18": value, "unique_human": True}
    service.kyc = {"verified_at": edge}
    service.payload = {"exp": 253402300799, "iat": -62135596800}
    assert sign_in(client, "/").status_code == 302
    identity = LinkedIdentity.objects.get()
    valid_until = StoredClaim.objects.get(claim_type="age_over_18").valid_until
    assert valid_until is not None
    assert (valid_until > timezone.now()) is edge.startswith("9999")
    for event_type in (
        "kyc.verified", "claim.revoked", "consent.granted", "kyc.something",
    ):  # fmt: skip
        body = event_body(
            event_type, status="verified", expires_at=edge, verified_at=edge
        )
        body = re.sub(rb'"timestamp": "[^"]+"', f'"timestamp": "{edge}"'.encode(), body)
        assert post(body).status_code == 200
    operator = operators.superuser()
    for settings.TIME_ZONE in ZONES:
        for name in ("identity:account", "identity:download", "identity_api:me"):
            assert client.get(reverse(name)).status_code == 200, (
                name,
                settings.TIME_ZONE,
            )
        for name in (operators.IDENTITIES, operators.EVENTS):
            operators.page(operator, name)
        operators.page(operator, operators.IDENTITY, identity.pk)
        for event in WebhookEvent.objects.all():
            operators.page(operator, operators.EVENT, event.pk)
