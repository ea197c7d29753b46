"""A test identity proves nothing to the live application, whatever else it opens."""

import hashlib
import hmac
import json

from django_identity.testing.sandbox import SandboxPerson
from tests.sites.browser import Browser
from tests.sites.running_site import WEBHOOK_SECRET, RunningSite
from tests.sites.site_table import steps_of

pytestmark = steps_of("two_applications")


def test_a_test_identity_opens_no_live_gate(
    browser: Browser, person: SandboxPerson
) -> None:
    assert browser.sign_in(person, next_path="/adults/").text == "for adults"
    assert browser.open("/real-adults/").status_code == 403
    leaving = browser.open("/identity/login/live/")
    assert leaving.status_code == 200


def test_a_test_event_is_none_of_the_live_webhook(site: RunningSite) -> None:
    """Each application takes only events that its own secret signed."""
    event = {
        "event_type": "consent.revoked",
        "event_id": "e",
        "timestamp": "2030-01-01T00:00:00Z",
    }
    body = json.dumps({**event, "data": {"user_id": "somebody"}}).encode()
    signature = hmac.new(WEBHOOK_SECRET.encode(), body, hashlib.sha256).hexdigest()
    headers = {"X-Webhook-Signature": signature, "Content-Type": "application/json"}
    with site.new_client() as client:
        for path, status in (("webhook/", 200), ("webhook/live/", 401)):
            sent = client.post(
                f"{site.address}/identity/{path}", content=body, headers=headers
            )
            assert sent.status_code == status, path
