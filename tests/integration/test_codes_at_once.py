"""The page "Verify with a code": the same code twice at once, and twice in a row."""

import time
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client

from django_identity.models import ConnectRedemption, LinkedIdentity
from tests import fake_service
from tests.concurrency import at_once
from tests.factories import make_user
from tests.fake_service import FakeService, refusal
from tests.views.connect.pages import PASTED, browser_of, hand_in, refused

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def user() -> User:
    return make_user(email="other@example.org")


@pytest.fixture
def browser(user: User) -> Client:
    return browser_of(user)


def test_an_impatient_person_sends_the_code_once(service: FakeService, user: User) -> None:
    """The same form four times at once: one redemption. The others look at the account."""
    result = fake_service.answer({"success": True, "data": service.connect_result()})
    service.answers["request"] = slowly(result)
    responses = at_once([lambda: hand_in(browser_of(user), PASTED)] * 4)
    assert {302} <= {each.status_code for each in responses} <= {302, 409}
    assert service.calls("request") == 1
    assert LinkedIdentity.objects.count() == ConnectRedemption.objects.count() == 1
    assert hand_in(browser_of(user), PASTED)["Location"] == "/identity/connected/"


def slowly(answer: bytes) -> Callable[[Any], None]:
    def send(arrived: Any) -> None:
        time.sleep(0.2)
        arrived.sendall(answer)

    return send


def test_the_same_code_again(service: FakeService, browser: Client) -> None:
    """The person who redeemed it lands where they landed; the service hears of it once."""
    first, second = hand_in(browser), hand_in(browser, PASTED)
    assert first["Location"] == second["Location"]
    assert service.calls("request") == 1


def test_the_same_code_by_somebody_else(service: FakeService, browser: Client) -> None:
    """Holding a code that was used proves nothing."""
    hand_in(browser)
    eve = browser_of(make_user("eve"))
    page = refused(hand_in(eve), "connect_code_used", 409)
    assert "/identity/account/" in page
    assert service.calls("request") == 1


def test_a_code_that_missed_the_policy_by_somebody_else(
    service: FakeService, browser: Client
) -> None:
    """What the service said about one person is not told to another who holds their code."""
    beside = {"kyc_required": True, "kyc_url": "https://kyc.example/now"}
    service.answers["request"] = refusal("POA_REQUIRED", "403 Forbidden", **beside)
    refused(hand_in(browser), "verification_policy_not_met", 403)
    page = refused(hand_in(browser_of(make_user("eve"))), "connect_code_used", 409)
    assert "kyc.example" not in page


def test_the_same_code_after_disconnecting(service: FakeService, browser: Client) -> None:
    """What is gone is not called a success again."""
    hand_in(browser)
    LinkedIdentity.objects.all().delete()
    refused(hand_in(browser), "connect_code_used", 409)
    assert not LinkedIdentity.objects.exists()


@pytest.mark.parametrize("atomic_requests", [False, True])
def test_a_redemption_that_broke_off(
    service: FakeService, browser: Client, monkeypatch: pytest.MonkeyPatch,
    atomic_requests: bool,
) -> None:  # fmt: skip
    """A crash after the code was sent cannot send it again, whatever is rolled back then."""
    monkeypatch.setitem(connection.settings_dict, "ATOMIC_REQUESTS", atomic_requests)
    browser.raise_request_exception = False
    with monkeypatch.context() as patch:
        patch.setattr(LinkedIdentity, "save", lambda *_: 1 / 0)
        assert hand_in(browser).status_code == 500
    refused(hand_in(browser), "connect_code_in_use", 409)
    assert service.calls("request") == 1


def test_two_people_bring_one_subject(service: FakeService) -> None:
    """Two codes of one subject, by two users at once: one is linked, the other is told no."""
    presses = [
        lambda: hand_in(browser_of(make_user("ada")), "CNX-AAAA-1111"),
        lambda: hand_in(browser_of(make_user("eve")), "CNX-BBBB-2222"),
    ]
    statuses = sorted(response.status_code for response in at_once(presses))
    assert statuses == [302, 403]
    assert LinkedIdentity.objects.count() == 1
