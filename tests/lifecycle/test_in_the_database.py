"""What happens at one moment about one person, and connections that end while the site waits."""

from datetime import timedelta
from functools import partial

import pytest
from django.contrib.auth.models import User
from django.db import InterfaceError, OperationalError, connection
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from django_identity import gates
from django_identity.lifecycle.arriving import questions
from django_identity.lifecycle.leaving import disconnecting, erasure
from django_identity.lifecycle.minute import upkeep
from django_identity.lifecycle.operators import interventions
from django_identity.lifecycle.said import effects
from django_identity.models import (
    AuthorizationRequest,
    ConnectRedemption,
    Consent,
    LinkedIdentity,
    SubjectLock,
    WebhookEvent,
)
from django_identity.policy import IdentityPolicy
from tests.concurrency import at_once
from tests.databases import cutter, on_servers, until_it_waits
from tests.deliveries import deliver, event_body, post
from tests.factories import make_event, make_identity, make_user
from tests.fake_service import INVALID_GRANT, refusal
from tests.lifecycle.broken_statements import refused
from tests.pauses import held
from tests.sign_in import begin, come_back, is_signed_in, sign_in
from tests.views.connect.pages import LOCAL, browser_of, hand_in, page_of

pytestmark = pytest.mark.django_db(transaction=True)

WITHDRAWALS = [
    "consent.revoked",
    "kyc.rejected",
    "claim.revoked",
    "data.deletion_requested",
]
#: psycopg's number of it.
REPEATABLE_READ = 3
ADULT, LEVEL = gates.Gate("age_over_18"), gates.Gate(kyc_level="level_2")


class Nobody(IdentityPolicy):
    """Nobody may sign up."""

    def may_sign_up(self, **_proven):
        return False


@pytest.fixture(params=["READ COMMITTED", "REPEATABLE READ"])
def isolation(request):
    """The second one is PostgreSQL's, where it fails, and is tried again."""
    given = connection.settings_dict["OPTIONS"]
    if request.param == "REPEATABLE READ":
        if connection.vendor != "postgresql":
            pytest.skip("docs/going-live.md says READ COMMITTED")
        other = {"isolation_level": REPEATABLE_READ}
        connection.settings_dict["OPTIONS"] = {**given, **other}
        connection.close()
    yield
    connection.settings_dict["OPTIONS"] = given
    connection.close()


def is_open(event_type):
    """Whether a gate is open that the event closes."""
    gate = LEVEL if event_type == "kyc.rejected" else ADULT
    return any(gates.closed_to(gate, user) is None for user in User.objects.all())


@on_servers
@pytest.mark.usefixtures("isolation")
@pytest.mark.parametrize("event_type", WITHDRAWALS)
@pytest.mark.parametrize("first", ["sign-in", "event"])
def test_an_event_and_a_sign_in_of_its_subject_wait(service, event_type, first):
    """The first one stands before its commit. Then the event finds the link, or is heard."""
    browser = Client()
    state = begin(browser)
    # Younger than the credential, which the sign-in gets a moment later.
    body = event_body(event_type, at=timezone.now() + timedelta(seconds=30))
    calls = [
        (lambda: come_back(browser, state), [(questions, "proven_by_arrival")]),
        (lambda: post(body).status_code, [(effects, "outcome_for_nobody")]),
    ]
    (former, places), (latter, _) = calls if first == "sign-in" else calls[::-1]
    with held(former, before=places) as ahead:
        ahead.wait()
        with held(latter, before=[]) as behind:
            until_it_waits(behind.result)
            ahead.go_on()
            assert 200 in (ahead.result.result(), behind.result.result())
    assert not is_open(event_type)
    is_applied = first == "sign-in"
    outcome = "applied" if is_applied else "ignored"
    assert WebhookEvent.objects.get().outcome == outcome
    ends_consent = event_type in ("consent.revoked", "data.deletion_requested")

    assert User.objects.exists() is (is_applied or not ends_consent)


@on_servers
def test_three_refused_sign_ups_of_one_person_at_once(service, use_policy):
    """On MariaDB those who wait deadlock, and are tried again."""
    use_policy(Nobody)
    browsers = [Client() for _ in range(3)]
    states = [*map(begin, browsers)]
    pairs = zip(browsers, states, strict=True)
    calls = [partial(come_back, browser, state) for browser, state in pairs]
    for response in at_once(calls):
        assert "sign_up_refused" in response.content.decode()
    assert not User.objects.exists()


@pytest.mark.parametrize(("seconds", "is_heard"), [(9, True), (11, False)])
@pytest.mark.parametrize("event_type", ["consent.revoked", "claim.revoked"])
def test_what_found_nobody_a_moment_before_the_button_is_heard(
    service,
    identity_clock,
    event_type,
    seconds,
    *,
    is_heard,
):
    """By the clock of another server of the site it came after it."""
    service.payload["iat"] = None
    deliver(event_type)
    identity_clock.advance(seconds=seconds)
    browser = Client()
    sign_in(browser)
    if event_type == "consent.revoked":
        assert is_signed_in(browser) is not is_heard
    else:
        assert LinkedIdentity.objects.get().kyc_status == (
            "" if is_heard else "verified"
        )


def test_upkeep_deletes_the_rows_of_the_day_before(service, identity_clock):
    """Of a subject who is linked none is needed."""
    make_identity(make_user("eve"), subject="subject-2")
    deliver("claim.issued", subject="subject-2")
    assert not SubjectLock.objects.exists()
    hand_in(browser_of(make_user()))
    identity_clock.advance(hours=23)
    deliver("claim.issued", subject="nobody")
    assert SubjectLock.objects.count() == 2
    identity_clock.advance(hours=2)
    upkeep.purge()
    assert SubjectLock.objects.count() == 1


# What ends a link, several times at once


def sign_out(identity):
    browser = Client()
    browser.force_login(identity.user, backend=LOCAL)
    browser.post(reverse("identity:sign_out"), {"everywhere": "yes"})


def revoke(identity):
    interventions.revoke([identity])


def hear(event_type, identity):
    body = event_body(event_type, event_id=f"{event_type} {identity.pk}")
    assert post(body).status_code == 200


ACTS = {
    "revocations": (revoke,) * 3,
    "disconnections": (disconnecting.disconnect,) * 3,
    "deletions by the site": (LinkedIdentity.delete,) * 3,
    "an erasure": (
        lambda identity: erasure.erase_account(identity.user),
        *(lambda identity: interventions.disconnect([identity]),) * 2,
    ),
    "a sign-out everywhere": (sign_out, revoke, revoke),
    "events": tuple(
        partial(hear, each) for each in WITHDRAWALS if each != "claim.revoked"
    ),
    "an event three times": (partial(hear, "consent.revoked"),) * 3,
}
ROUNDS = 10


def linked():
    """An account's link, with events."""
    identity = make_identity(make_user(), account_made=False)
    for _ in range(3):
        make_event(identity, "kyc.verified")
    return identity


@on_servers
@pytest.mark.parametrize("acts", ACTS.values(), ids=ACTS)
def test_what_ends_a_link_does_not_deadlock(acts):
    """Each by a request of its own. The first one wins."""
    for _ in range(ROUNDS):
        key = linked().pk
        rows = [LinkedIdentity.objects.get(pk=key) for _ in acts]
        at_once([partial(act, row) for act, row in zip(acts, rows, strict=True)])
        assert not LinkedIdentity.objects.filter(consent="granted").exists()
        User.objects.all().delete()


# A database that ends the connection while the site waits for the service


@pytest.mark.parametrize("error", [OperationalError, InterfaceError])
@pytest.mark.parametrize("way", [sign_in, hand_in])
def test_a_broken_statement_is_tried_again(service, way, error):
    """Drivers say it in two ways. The answer of the service cannot be had again."""
    browser = Client() if way is sign_in else browser_of(make_user())
    asked = "token" if way is sign_in else "request"
    with refused(error=error, times=1, when=lambda: service.calls(asked) > 0):
        assert way(browser).status_code == 302
    assert LinkedIdentity.objects.get().consent == Consent.GRANTED
    assert service.calls(asked) == 1


def test_a_database_that_stays_away_is_said(service):
    """A page with a code and a reference, as for every other failure."""
    browser = Client()
    state = begin(browser)
    # Each try breaks at its first statement. The page itself reads the session again.
    with refused(
        error=InterfaceError,
        times=5,
        when=lambda: service.calls("claims") > 0,
    ):
        page = come_back(browser, state)
    assert page.status_code == 503
    page_of(page, "storage_unavailable")


@pytest.mark.parametrize("error", [OperationalError, InterfaceError])
@pytest.mark.parametrize("statement", range(4))
def test_an_event_is_stored_and_applied_in_a_second_try(error, statement):
    """A deadlock or a connection that has ended: the service need not deliver again."""
    identity = make_identity(make_user())
    body = event_body("consent.revoked", subject=identity.subject)
    with refused(error=error, after=statement, times=1):
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
    assert User.objects.count() == 1
    assert LinkedIdentity.objects.count() == 1
    assert LinkedIdentity.objects.get().consent == Consent.GRANTED


def test_a_refusal_outlives_a_broken_statement(service):
    """The person reads what the service said, and the record keeps it."""
    browser = Client()
    state = begin(browser)
    service.answers["token"] = INVALID_GRANT
    with refused(times=1, when=lambda: service.calls("token") > 0):
        page_of(come_back(browser, state), "invalid_grant")
    assert AuthorizationRequest.objects.get().outcome == "invalid_grant"

    member = browser_of(make_user())
    service.answers["request"] = refusal("INVALID_CONNECT_CODE")
    with refused(
        error=InterfaceError,
        times=1,
        when=lambda: service.calls("request") > 0,
    ):
        page_of(hand_in(member), "invalid_connect_code")
    assert ConnectRedemption.objects.get().outcome == "invalid_connect_code"
