"""The page "Verify with a code": the same code, and the same person's codes, at once."""

import time

import pytest

from django_identity.models import ConnectRedemption, LinkedIdentity
from tests.concurrency import at_once
from tests.factories import make_user
from tests.views.connect.pages import PASTED, browser_of, hand_in

pytestmark = [pytest.mark.race, pytest.mark.django_db(transaction=True)]


def test_an_impatient_person_sends_the_code_once(service):
    """The same form four times at once: one redemption. The others look at the account."""
    user = make_user(email="other@example.org")
    service.meanwhile["request"] = lambda: time.sleep(0.2)
    responses = at_once([lambda: hand_in(browser_of(user), PASTED)] * 4)
    assert {302} <= {each.status_code for each in responses} <= {302, 409}
    assert service.calls("request") == 1
    assert LinkedIdentity.objects.count() == ConnectRedemption.objects.count() == 1
    assert hand_in(browser_of(user), PASTED)["Location"] == "/identity/connected/"


def test_two_people_bring_one_subject(service):
    """Two codes of one subject, by two users at once: one is linked, the other is told no."""
    presses = [
        lambda: hand_in(browser_of(make_user("ada")), "CNX-AAAA-1111"),
        lambda: hand_in(browser_of(make_user("eve")), "CNX-BBBB-2222"),
    ]
    statuses = sorted(response.status_code for response in at_once(presses))
    assert statuses == [302, 403]
    assert LinkedIdentity.objects.count() == 1
