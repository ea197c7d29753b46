"""A callback that the service did not send, or that was used before, does nothing."""

import threading
from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

import pytest
from django.contrib.auth.models import User
from django.db import connections
from django.db.models import F
from django.http import HttpResponse
from django.test import Client, override_settings
from django.urls import reverse

from django_identity.models import AuthorizationRequest, LinkedIdentity
from django_identity.policy import IdentityPolicy
from tests.concurrency import at_once, meeting_at_update
from tests.factories import make_user
from tests.sign_in import begin, come_back
from tests.views.bad_input.refusals import lines_of_ours, nobody_was_made, unchanged
from tests.views.connect.pages import LIVE, LOCAL

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("", "callback_invalid"),
        ("code=a", "callback_invalid"),
        ("code=a&state=", "callback_invalid"),
        ("state={state}", "callback_invalid"),
        ("code=a&state=" + "x" * 43, "request_unknown"),
        ("code=a&state={state}&state={state}", "callback_invalid"),
        ("code=a&code=b&state={state}", "callback_invalid"),
        ("code=a&error=access_denied&state={state}", "callback_invalid"),
        ("code=" + "a" * 2_000_000 + "&state={state}", "callback_invalid"),
        ("code=a&state=" + "x" * 2_000_000, "callback_invalid"),
        ("code=a%0Ab&state={state}", "callback_invalid"),
        ("code=a%00&state={state}", "callback_invalid"),
        ("code=%C3%A9&state={state}", "callback_invalid"),
        ("code=&state={state}", "callback_invalid"),
        ("code=a&state=%00{state}", "callback_invalid"),
        ("error=access_denied&state={state}", "access_denied"),
        ("error=server_error&state={state}", "authorization_refused"),
        ("error=ENVIRONMENT_MISMATCH&state={state}", "environment_mismatch"),
        ("error=environment_mismatch&state={state}", "environment_mismatch"),
        ("error=invalid_scope&state={state}", "configuration"),
        ("error=INVALID_SCOPE&state={state}", "configuration"),
        ("error=unauthorized_client&state={state}", "client_rejected"),
        ("error=invalid_client&state={state}", "client_rejected"),
        ("error=ACCESS_DENIED&state={state}", "access_denied"),
        ("error=%3Cscript%3Ealert(1)%3C/script%3E&state={state}", "authorization_refused"),
        ("error=%00%22&state={state}", "authorization_refused"),
    ],
)  # fmt: skip
def test_a_malformed_callback_asks_nothing_of_the_service(
    client, service, refused, query, code
):
    state = begin(client)
    address = reverse("identity:callback") + "?" + query.format(state=state)
    refused(client.get(address), code)
    assert nobody_was_made()
    if query.startswith("error"):
        # Whoever said no, or was refused, is not signed in by a code that comes after it.
        refused(come_back(client, state), "request_used")
    assert service.requests == []


@pytest.mark.parametrize("method", ["HEAD", "POST", "PUT", "DELETE", "OPTIONS"])
def test_the_callback_is_for_get_alone(client, service, method):
    """A link preview's HEAD does not spend the code, nor does a foreign form's POST."""
    state = begin(client)
    browser = Client(enforce_csrf_checks=True)
    browser.cookies.update(client.cookies)
    address = reverse("identity:callback") + f"?code=a-code&state={state}"
    response = browser.generic(method, address)
    assert (response.status_code, response["Allow"]) == (405, "GET")
    assert response["Cache-Control"] == "private, no-store"
    assert service.requests == []
    assert come_back(client, state).status_code == 302


@pytest.mark.parametrize(
    ("what", "code"),
    [("an hour old", "request_expired"), ("of another browser", "request_unknown")],
)
def test_a_callback_that_is_old_or_of_another_browser_is_refused(
    client, service, refused, what, code
):
    """So an address that is sent to a victim signs nobody in."""
    state = begin(client)
    if what == "an hour old":
        an_hour_ago = F("expires_at") - timedelta(hours=1)
        AuthorizationRequest.objects.update(expires_at=an_hour_ago)
    else:
        client = Client()
        begin(client)
    refused(come_back(client, state), code)
    assert service.requests == []


def test_a_code_is_not_taken_to_another_environment(client, service, refused):
    state = begin(client)
    live = service.settings(**LIVE)
    with override_settings(DJANGO_IDENTITY=live):
        client.cookies["__Host-identity_browser"] = client.cookies[
            "identity_browser"
        ].value
        response = client.get(
            reverse("identity:callback"),
            {"code": "a-code", "state": state},
            secure=True,
        )
        refused(response, "request_unknown")
    assert service.requests == []


@pytest.mark.parametrize(
    "space",
    [*map(str.encode, ["\u2000", "\u00a0", "\u0085", " \u3000"]), b"\xa0", b"\x85"],
)
def test_another_host_of_the_domain_sets_no_key(client, service, refused, space):
    """Browsers see no prefix behind a space of Unicode, so they let any host set such a cookie.

    Another host may send the bytes of UTF-8, or one byte of an older character set.
    """
    attacker = Client()
    started = attacker.post(reverse("identity:login"), secure=True)
    (state,) = parse_qs(urlsplit(started["Location"]).query)["state"]
    cookie = attacker.cookies["__Host-identity_browser"]
    as_wsgi_has_it = space.decode("latin-1")
    response = client.get(
        reverse("identity:callback"),
        {"code": "a-code", "state": state},
        secure=True,
        HTTP_COOKIE=f"a=b; {as_wsgi_has_it}{cookie.key}={cookie.value}",
    )
    refused(response, "request_unknown")
    assert service.requests == []


@pytest.mark.parametrize(
    "changed",
    [{"SECRET_KEY": "another key, of which nobody told the browser"},
     {"ENCRYPTION_KEYS": ["another-key-of-the-site-alone"]}],
    ids=["SECRET_KEY", "ENCRYPTION_KEYS"],
)  # fmt: skip
def test_a_key_that_changes_meanwhile(client, service, changed):
    state = begin(client)
    if "ENCRYPTION_KEYS" in changed:
        changed = {"DJANGO_IDENTITY": service.settings(**changed)}
    with override_settings(**changed):
        response = come_back(client, state)
    assert response.status_code == 403
    assert response.context["error"].code == "sealed_value_unreadable"
    assert "Start again" in response.text
    assert service.requests == []


def test_a_used_state_stays_used_whatever_cookies_are_put_back(service, refused):
    """Even if the session is kept in a cookie."""
    with override_settings(
        SESSION_ENGINE="django.contrib.sessions.backends.signed_cookies"
    ):
        browser = Client()
        state = begin(browser)
        old_cookies = browser.cookies.output()
        come_back(browser, state)
        asked = len(service.requests)
        restored = Client()
        restored.cookies.load(old_cookies.replace("Set-Cookie:", ""))
        refused(come_back(restored, state), "request_used", made=1)
    assert len(service.requests) == asked


def test_a_completed_callback_leads_no_other_user_on(client, service, refused):
    state = begin(client, "/adults/")
    come_back(client, state)
    client.force_login(make_user("eve"), backend=LOCAL)
    refused(come_back(client, state), "request_used", made=1)
    assert client.get("/").content == b"eve"


def test_of_two_callbacks_at_once_one_exchanges_the_code(service, caplog):
    browser = Client()
    state = begin(browser)
    both_found_it = threading.Barrier(2)

    def press() -> HttpResponse:
        tab = Client()
        tab.cookies.update(browser.cookies)
        with meeting_at_update(both_found_it):
            return come_back(tab, state)

    answers = sorted(at_once([press, press]), key=lambda response: response.status_code)
    assert [response.status_code for response in answers] == [302, 400]
    assert answers[1].context["error"].code == "request_used"
    unchanged(answers[1])
    assert service.calls("token") == 1
    assert User.objects.count() == 1
    (line,) = [line for line in lines_of_ours(caplog) if "failed" in line]
    assert "code=request_used" in line


@pytest.mark.parametrize("atomic_requests", [False, True])
def test_a_callback_that_crashed_half_way_cannot_be_used_again(
    service, refused, monkeypatch, caplog, atomic_requests
):
    monkeypatch.setitem(
        connections.settings["default"], "ATOMIC_REQUESTS", atomic_requests
    )
    monkeypatch.setattr(IdentityPolicy, "may_sign_up", lambda *_, **__: 1 / 0)
    browser = Client(raise_request_exception=False)
    state = begin(browser)
    assert come_back(browser, state).status_code == 500
    caplog.clear()
    refused(come_back(browser, state), "request_used")
    assert service.calls("token") == 1
    assert nobody_was_made()


@pytest.mark.parametrize("who_began", ["ada", "nobody"])
def test_another_user_than_the_one_who_began_is_refused(
    client, service, refused, who_began
):
    """A link belongs to the user who pressed the button; a sign-in replaces no session."""
    if who_began == "ada":
        client.force_login(make_user("ada"), backend=LOCAL)
    state = begin(client)
    client.force_login(make_user("eve"), backend=LOCAL)
    refused(come_back(client, state), "user_changed")
    assert client.get("/").content == b"eve"
    assert who_began == "nobody" or service.requests == []
    assert not LinkedIdentity.objects.exists()


@pytest.mark.parametrize("how", ["signed out", "deleted"])
def test_a_link_of_somebody_who_is_signed_out_by_now_is_refused(client, service, how):
    client.force_login(make_user("ada"), backend=LOCAL)
    state = begin(client)
    if how == "signed out":
        del client.cookies["sessionid"]
    else:
        User.objects.all().delete()
    response = come_back(client, state)
    assert response.context["error"].code == "session_ended"
    assert "Your session on this site has ended" in response.text
    assert service.requests == []
    assert not LinkedIdentity.objects.exists()
