"""A middleware of the site that opens a transaction around every request, as django-reversion's."""

from typing import Any

import pytest
from django.db import transaction
from django.http import HttpRequest
from django.test import Client

from django_identity.models import (
    AuthorizationRequest,
    ConnectRedemption,
    LinkedIdentity,
    WebhookEvent,
)
from tests.deliveries import SECRET, event_body, post
from tests.factories import make_user
from tests.fake_service import FakeService
from tests.sign_in import begin, come_back
from tests.views.connect.pages import browser_of, hand_in

pytestmark = pytest.mark.django_db(transaction=True)


class RolledBack(Exception):
    """The response is an error."""


def in_a_transaction(get_response: Any) -> Any:
    """What a refused request has written is rolled back."""

    def middleware(request: HttpRequest) -> Any:
        try:
            with transaction.atomic():
                response = get_response(request)
                if response.status_code >= 400:
                    raise RolledBack
        except RolledBack:
            pass
        return response

    return middleware


@pytest.fixture
def site(service: FakeService, settings: Any) -> FakeService:
    settings.DJANGO_IDENTITY = service.settings(WEBHOOK_SECRETS=[SECRET])
    settings.MIDDLEWARE = [f"{__name__}.in_a_transaction", *settings.MIDDLEWARE]
    return service


def a_code() -> None:
    hand_in(browser_of(make_user()))


def an_event() -> None:
    post(event_body("kyc.verified"))


def a_callback() -> None:
    browser = Client()
    come_back(browser, begin(browser))


@pytest.mark.parametrize("act", [a_code, an_event, a_callback])
def test_nothing_is_sent_or_stored(site, act):
    """A rollback would bring back a code that is spent, or lose an event that meets a sign-in."""
    with pytest.raises(RuntimeError, match="commits in steps"):
        act()
    assert not site.calls("request")
    assert not site.calls("token")
    assert not ConnectRedemption.objects.exists()
    assert not LinkedIdentity.objects.exists()
    assert not WebhookEvent.objects.exists()
    assert not AuthorizationRequest.objects.exclude(consumed_at=None).exists()
