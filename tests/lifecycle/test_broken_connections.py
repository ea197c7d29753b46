"""A database that ends the connection while the site waits for the service.

A call may take ten seconds, and a pooler or a restarted server ends what is idle meanwhile.
"""

from contextlib import contextmanager

import pytest
from django.contrib.auth.models import User
from django.db import InterfaceError, OperationalError, connection
from django.test import Client

from django_identity.models import (
    AuthorizationRequest,
    ConnectRedemption,
    Consent,
    LinkedIdentity,
    WebhookEvent,
)
from tests.databases import cutter, on_servers
from tests.deliveries import event_body, post
from tests.factories import make_identity, make_user
from tests.fake_service import INVALID_GRANT, refusal
from tests.sign_in import begin, come_back, is_signed_in, sign_in
from tests.views.connect.pages import browser_of, hand_in, page_of

pytestmark = pytest.mark.django_db(transaction=True)


@contextmanager
def failing(errors, *, when):
    """Statements raise these errors in turn, from the moment at which ``when`` holds."""

    def execute(run, *statement):
        if errors and when():
            raise errors.pop(0)
        return run(*statement)

    with connection.execute_wrapper(execute):
        yield


@pytest.mark.parametrize("error", [OperationalError, InterfaceError])
@pytest.mark.parametrize("way", [sign_in, hand_in])
def test_a_broken_statement_is_tried_again(service, way, error):
    """Drivers say it in two ways. The answer of the service cannot be had again."""
    browser = Client() if way is sign_in else browser_of(make_user())
    asked = "token" if way is sign_in else "request"
    with failing([error], when=lambda: service.calls(asked) > 0):
        assert way(browser).status_code == 302
    assert LinkedIdentity.objects.get().consent == Consent.GRANTED
    assert service.calls(asked) == 1


def test_a_database_that_stays_away_is_said(service):
    """A page with a code and a reference, as for every other failure."""
    browser = Client()
    state = begin(browser)
    # Each try breaks at its first statement. The page itself reads the session again.
    with failing([InterfaceError] * 5, when=lambda: service.calls("claims") > 0):
        page = come_back(browser, state)
    assert page.status_code == 503
    page_of(page, "storage_unavailable")


@pytest.mark.parametrize("error", [OperationalError, InterfaceError])
@pytest.mark.parametrize("statement", range(4))
def test_an_event_is_stored_and_applied_in_a_second_try(error, statement):
    """A deadlock or a connection that has ended: the service need not deliver again."""
    identity = make_identity(make_user())
    body = event_body("consent.revoked", subject=identity.subject)
    seen = iter(range(100))
    with failing([error], when=lambda: next(seen) == statement):
        assert post(body).status_code == 200
    assert LinkedIdentity.objects.get().consent == Consent.REVOKED
    assert WebhookEvent.objects.get().outcome == "applied"


@on_servers
@pytest.mark.parametrize("person", ["new", "known", "linking"])
def test_a_sign_in_outlives_its_connection(service, person):
    """Somebody new, somebody who returns, and somebody who links."""
    browser = Client()
    if person == "known":
        sign_in(Client())
    if person == "linking":
        browser = browser_of(make_user())
    state = begin(browser)
    service.meanwhile["token"] = cutter()
    assert come_back(browser, state).status_code == 302
    assert is_signed_in(browser)
    assert (User.objects.count(), LinkedIdentity.objects.count()) == (1, 1)
    assert LinkedIdentity.objects.get().consent == Consent.GRANTED


def test_a_refusal_outlives_a_broken_statement(service):
    """The person reads what the service said, and the record keeps it."""
    browser = Client()
    state = begin(browser)
    service.answers["token"] = INVALID_GRANT
    with failing([OperationalError], when=lambda: service.calls("token") > 0):
        page_of(come_back(browser, state), "invalid_grant")
    assert AuthorizationRequest.objects.get().outcome == "invalid_grant"

    member = browser_of(make_user())
    service.answers["request"] = refusal("INVALID_CONNECT_CODE")
    with failing([InterfaceError], when=lambda: service.calls("request") > 0):
        page_of(hand_in(member), "invalid_connect_code")
    assert ConnectRedemption.objects.get().outcome == "invalid_connect_code"
