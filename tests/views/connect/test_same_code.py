"""A code comes again: it is never sent twice, and proves nothing to whoever holds it."""

import pytest
from django.db import connection
from django.test import Client

from django_identity.models import LinkedIdentity
from tests.factories import make_user
from tests.fake_service import FakeService, refusal
from tests.views.connect.pages import browser_of, hand_in, refused

pytestmark = pytest.mark.django_db(transaction=True)


def test_by_somebody_else(service: FakeService, browser: Client) -> None:
    """Nor are they told what the service said about the person."""
    beside = {"kyc_required": True, "kyc_url": "https://kyc.example/now"}
    service.answers["request"] = refusal("POA_REQUIRED", "403 Forbidden", **beside)
    refused(hand_in(browser), "verification_policy_not_met", 403)
    page = refused(hand_in(browser_of(make_user("eve"))), "connect_code_used", 409)
    assert "/identity/account/" in page
    assert "kyc.example" not in page
    assert service.calls("request") == 1


def test_after_disconnecting(service: FakeService, browser: Client) -> None:
    """What is gone is not called a success again."""
    hand_in(browser)
    LinkedIdentity.objects.all().delete()
    refused(hand_in(browser), "connect_code_used", 409)
    assert not LinkedIdentity.objects.exists()


@pytest.mark.parametrize("atomic_requests", [False, True])
def test_after_a_crash(
    service: FakeService, browser: Client, monkeypatch: pytest.MonkeyPatch, atomic_requests: bool
) -> None:
    """Once sent it is never sent again, whatever is rolled back then."""
    monkeypatch.setitem(connection.settings_dict, "ATOMIC_REQUESTS", atomic_requests)
    browser.raise_request_exception = False
    with monkeypatch.context() as patch:
        patch.setattr(LinkedIdentity, "save", lambda *_: 1 / 0)
        assert hand_in(browser).status_code == 500
    refused(hand_in(browser), "connect_code_in_use", 409)
    assert service.calls("request") == 1
