"""A gate that wants the person to have come back from the service lately, in this session."""

from urllib.parse import parse_qs, urlsplit

import pytest
from django.test import Client

from django_identity.gates import Gate, closed_to
from django_identity.lifecycle.ground import sessions
from django_identity.lifecycle.standing import step_up
from django_identity.models import LinkedIdentity
from tests.factories import make_identity, make_user
from tests.fake_service import FakeService
from tests.sign_in import begin, come_back, sign_in

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.urls("tests.gates.scope_and_step_up_urls"),
]

FACES = ("/payout/", "/payout/async/", "/payout/class/", "/payout/api/")


def is_open(browser: Client, address: str = "/payout/") -> bool:
    return browser.get(address).status_code == 200


@pytest.fixture
def browser(service: FakeService) -> Client:
    browser = Client()
    sign_in(browser)
    return browser


def test_open_for_a_while_after_a_sign_in(browser, identity_clock):
    assert all(is_open(browser, address) for address in FACES)
    identity_clock.advance(minutes=6)
    # A subclass that asks for more.
    assert [is_open(browser, address) for address in FACES] == [True, True, False, True]
    identity_clock.advance(minutes=5)
    assert not any(is_open(browser, address) for address in FACES)
    sign_in(browser)
    assert all(is_open(browser, address) for address in FACES)


def test_a_closed_gate_leads_through_a_renewal_back_to_the_page(
    browser, identity_clock
):
    """The page of a form is shown again; what was posted is not sent a second time."""
    identity_clock.advance(minutes=11)
    sent = browser.post("/payout/?to=max", {"amount": "7"})
    asked = parse_qs(urlsplit(sent["Location"]).query)
    assert asked == {"next": ["/payout/?to=max"], "missing": ["recent_sign_in"]}
    page = browser.get(sent["Location"]).content.decode()
    assert "Confirm that it is you" in page
    for address in ("/payout/", "/payout/api/"):
        answer = browser.get(address, headers={"Accept": "application/json"})
        told = answer.json()
        assert (answer.status_code, told["code"]) == (403, "sign_in_not_recent")
        assert (told["missing"], told["recovery"]) == ("recent_sign_in", "restart")
    arrived = sign_in(browser, asked["next"][0])
    assert arrived["Location"] == "/payout/?to=max"
    assert is_open(browser)


def test_other_browsers_and_other_people_do_not_count(browser, service):
    other = Client()
    other.force_login(LinkedIdentity.objects.get().user)
    assert not is_open(other)
    state = begin(other)
    service.subject = "somebody-else"
    assert come_back(other, state).status_code != 302
    assert not is_open(other)


def test_a_session_key_that_somebody_else_knows_is_not_confirmed(
    browser, identity_clock
):
    """Confirming changes the key, and keeps what the session holds."""
    session = browser.session
    session["basket"] = "kept"
    session.save()
    identity_clock.advance(minutes=11)
    thief = Client()
    thief.cookies["sessionid"] = browser.cookies["sessionid"].value
    sign_in(browser)
    assert is_open(browser)
    assert browser.session["basket"] == "kept"
    assert not is_open(thief)


def test_a_replayed_or_refused_callback_confirms_nobody(browser, identity_clock):
    """A callback that is opened again, a refusal, and a session that ended meanwhile."""
    first = begin(browser)
    come_back(browser, first)
    identity_clock.advance(minutes=11)
    come_back(browser, first)
    assert not is_open(browser)
    come_back(browser, begin(browser), code="", error="access_denied")
    assert not is_open(browser)
    state = begin(browser)
    browser.logout()
    assert come_back(browser, state).status_code != 302
    assert not is_open(browser)


def test_a_cookie_from_before_the_sign_in_opens_nothing(browser, settings):
    settings.SESSION_ENGINE = "django.contrib.sessions.backends.signed_cookies"
    browser = Client()
    browser.force_login(LinkedIdentity.objects.get().user)
    before = browser.cookies["sessionid"].value
    sign_in(browser)
    assert is_open(browser)
    browser.cookies["sessionid"] = before
    assert not is_open(browser)


def test_a_principal_with_a_token_needs_its_own_session(browser):
    """A token of one person beside the cookie of another: neither of the two came back."""
    session = browser.session
    user = make_user(username="somebody-else")
    make_identity(user, subject="somebody-elses")
    assert closed_to(Gate(minutes=10), user, session=session) is not None
    came_back = LinkedIdentity.objects.first().user
    assert closed_to(Gate(minutes=10), came_back, session=session) is None
    assert closed_to(Gate(minutes=10), came_back) is not None


def test_what_is_no_recent_sign_in(browser):
    """One from the future, a long past one, and what another app may write under the name."""
    session = browser.session
    mark, at = session[step_up.KEY]
    past = at - 10 * 24 * 60 * 60
    others = ("text", ["1.0"], ["1.0", "now"], [None, None], {"a": 1}, None, 7)
    for held in ([mark, at + 60], [mark, past], {"default": [mark, at]}, *others):
        session[step_up.KEY] = held
        session.save()
        assert not is_open(browser), held


def test_an_htmx_part_leads_to_no_page_of_others(browser, identity_clock):
    """A part of a page leads to the page that confirms, and back to a page of the site."""
    identity_clock.advance(minutes=11)
    page = "http://evil.example/a/"
    headers = {"HX-Request": "true", "HX-Current-URL": page}
    answer = browser.post("/payout/", headers=headers)
    assert answer.status_code == 204
    assert parse_qs(urlsplit(answer["HX-Redirect"]).query)["next"] == ["/payout/"]


def test_it_ends_with_the_identity_and_its_sessions(browser):
    """Also in a session of the site's own sign-in, which goes on."""
    user = LinkedIdentity.objects.get().user
    local = Client()
    local.force_login(user)
    sign_in(local)
    assert is_open(local)
    sessions.sign_out_everywhere(user)
    assert not is_open(local)
