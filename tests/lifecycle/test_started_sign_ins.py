"""A started sign-in: one browser's, for an hour, used once."""

from __future__ import annotations

import pytest

from django_identity import conf
from django_identity.exceptions import FlowError
from django_identity.lifecycle import authorization_requests
from django_identity.lifecycle.authorization_requests import SignInIntent
from django_identity.models import AuthorizationRequest, Purpose
from django_identity.service.authorization import pkce_pair
from django_identity.testing.clock import Clock

pytestmark = pytest.mark.django_db


@pytest.fixture
def started() -> AuthorizationRequest:
    intent = SignInIntent(
        purpose=Purpose.SIGN_IN, user=None, next_url="/", redirect_uri="https://site.example/"
    )
    return authorization_requests.start(
        conf.application(), intent, state="a-state", browser_key="a-key", pkce=pkce_pair()
    )


def code_of(state: str, browser_key: str) -> str:
    """Why the sign-in with this state is not found for this browser, or that it is."""
    try:
        authorization_requests.find(conf.application(), state=state, browser_key=browser_key)
    except FlowError as error:
        return error.code
    return "found"


def test_it_is_of_one_browser(started: AuthorizationRequest) -> None:
    assert code_of("a-state", "a-key") == "found"
    assert code_of("a-state", "another-key") == "request_unknown"
    assert code_of("another-state", "a-key") == "request_unknown"


def test_it_is_claimed_once(started: AuthorizationRequest) -> None:
    """Also by somebody who read the row before it was claimed."""
    again = AuthorizationRequest.objects.get()
    authorization_requests.claim(started)
    with pytest.raises(FlowError) as refused:
        authorization_requests.claim(again)
    assert refused.value.code == "request_used"


def test_it_expires_after_an_hour(started: AuthorizationRequest, identity_clock: Clock) -> None:
    identity_clock.advance(minutes=61)
    with pytest.raises(FlowError) as refused:
        authorization_requests.claim(started)
    assert refused.value.code == "request_expired"
    assert AuthorizationRequest.objects.get().consumed_at is None
