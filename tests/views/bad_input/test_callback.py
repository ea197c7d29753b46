"""A callback that the service did not send, and whatever the service answers to a good one."""

import json
import re
import threading
import time
from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

import pytest
from django.contrib.auth.models import User
from django.db import connections
from django.db.models import F
from django.http import HttpResponse
from django.test import Client, override_settings
from django.urls import reverse

from django_identity.gates import claims_of
from django_identity.instruments.signs import of_rows
from django_identity.lifecycle.standing.standing import standing_of
from django_identity.models import AuthorizationRequest, LinkedIdentity
from django_identity.policy import IdentityPolicy
from tests import fake_service
from tests.concurrency import at_once, meeting_at_update
from tests.factories import make_identity, make_user
from tests.fake_service import FakeService, http, refusal, serving
from tests.sign_in import begin, come_back, sign_in
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
        ("code=a&state=%00{state}", "callback_invalid"),
        ("error=access_denied&state={state}", "access_denied"),
        # A parameter without a value counts as left out (RFC 6749 §3.1).
        ("error=access_denied&code=&state={state}", "access_denied"),
        ("code=&state={state}", "callback_invalid"),
        ("error=server_error&state={state}", "authorization_refused"),
        ("error=ENVIRONMENT_MISMATCH&state={state}", "environment_mismatch"),
        ("error=invalid_scope&state={state}", "configuration"),
        ("error=invalid_client&state={state}", "client_rejected"),
        ("error=ACCESS_DENIED&state={state}", "access_denied"),
        (
            "error=%3Cscript%3Ealert(1)%3C/script%3E&state={state}",
            "authorization_refused",
        ),
        ("error=%00%22&state={state}", "authorization_refused"),
    ],
)
def test_a_malformed_callback_asks_nothing_of_the_service(
    client,
    service,
    refused,
    query,
    code,
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
    client.handler.enforce_csrf_checks = True
    query = {"code": "a-code", "state": state}
    response = client.generic(method, reverse("identity:callback", query=query))
    assert response.status_code == 405
    assert response["Allow"] == "GET"
    assert response["Cache-Control"] == "private, no-store"
    assert service.requests == []
    assert come_back(client, state).status_code == 302


@pytest.mark.parametrize(
    ("what", "code"),
    [("an hour old", "request_expired"), ("of another browser", "request_unknown")],
)
def test_a_callback_that_is_old_or_of_another_browser_is_refused(
    client,
    service,
    refused,
    what,
    code,
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
    key = client.cookies["identity_browser"].value
    client.cookies["__Host-identity_browser"] = key
    query = {"code": "a-code", "state": state}
    with override_settings(DJANGO_IDENTITY=service.settings(**LIVE)):
        response = client.get(reverse("identity:callback"), query, secure=True)
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
    [
        {"SECRET_KEY": "another key, of which nobody told the browser"},
        {"ENCRYPTION_KEYS": ["another-key-of-the-site-alone"]},
    ],
    ids=["SECRET_KEY", "ENCRYPTION_KEYS"],
)
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


def test_a_used_state_stays_used_whatever_cookies_are_put_back(
    service,
    settings,
    refused,
):
    """Even if the session is kept in a cookie. It leads on only whom it signed in."""
    settings.SESSION_ENGINE = "django.contrib.sessions.backends.signed_cookies"
    browser, restored = Client(), Client()
    state = begin(browser, "/adults/")
    old_cookies = browser.cookies.output()
    come_back(browser, state)
    asked = len(service.requests)

    restored.cookies.load(old_cookies.replace("Set-Cookie:", ""))
    refused(come_back(restored, state), "request_used", made=1)
    browser.force_login(make_user("eve"), backend=LOCAL)
    refused(come_back(browser, state), "request_used", made=1)

    assert browser.get("/").content == b"eve"
    assert len(service.requests) == asked


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
    service,
    refused,
    monkeypatch,
    caplog,
    atomic_requests,
):
    database = connections.settings["default"]
    monkeypatch.setitem(database, "ATOMIC_REQUESTS", atomic_requests)
    monkeypatch.setattr(IdentityPolicy, "may_sign_up", lambda *_, **__: 1 / 0)
    browser = Client(raise_request_exception=False)
    state = begin(browser)
    assert come_back(browser, state).status_code == 500
    caplog.clear()
    refused(come_back(browser, state), "request_used")
    assert service.calls("token") == 1
    assert nobody_was_made()


@pytest.mark.parametrize("who_began", ["ada", "nobody", "nobody, but comes as bob"])
def test_another_user_than_the_one_who_began_is_refused(
    client,
    service,
    refused,
    who_began,
):
    """A link belongs to the user who pressed the button; a sign-in replaces no session."""
    is_known = who_began == "nobody, but comes as bob"
    if is_known:
        make_identity(make_user("bob"))
    if who_began == "ada":
        client.force_login(make_user("ada"), backend=LOCAL)
    state = begin(client)
    client.force_login(make_user("eve"), backend=LOCAL)
    refused(come_back(client, state), "user_changed")
    assert client.get("/").content == b"eve"
    assert who_began != "ada" or service.requests == []
    assert LinkedIdentity.objects.exists() is is_known


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


# Whatever the service answers: a plain page, one log line, and nobody is made


# A token answer is checked whole before anything is done with it.
GOOD = '"access_token": "a", "expires_in": 3600, '
MISTYPED = (
    '"expires_in": 3600',
    '"access_token": 5, "expires_in": 3600',
    '"access_token": "", "expires_in": 3600',
    '"access_token": "a\\nb", "expires_in": 3600',
    '"access_token": "a b", "expires_in": 3600',
    GOOD + '"token_type": "mac"',
    GOOD + '"refresh_token": 7',
    *(
        f'{GOOD}"scope": {value}'
        for value in (
            '["claims:read"]',
            '"a\\u0000"',
            '"\\u00e9"',
            '"' + "a" * 2000 + '"',
        )
    ),
    *(
        f'{GOOD}"user_id": {value}'
        for value in (
            '""',
            '" "',
            "0",
            "true",
            "[]",
            '"."',
            '".."',
            '"a\\u0000"',
            json.dumps("x" * 300),
        )
    ),
)


def asked(service: FakeService) -> list[str]:
    return [name for name, _, _ in service.requests]


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (
            http(b'{"error": "invalid_grant"}', status="400 Bad Request"),
            "invalid_grant",
        ),
        (http(b'{"error": "invalid_grant"}'), "invalid_grant"),
        (http(b'{"success": false, "error": {"code": "NOPE"}}'), "service_unavailable"),
        (fake_service.html(), "service_unavailable"),
        (fake_service.html("500 Oops"), "service_unavailable"),
        (fake_service.html("401 Unauthorized"), "service_unavailable"),
        (
            http(b'{"error": "invalid_client"}', status="401 Unauthorized"),
            "client_rejected",
        ),
        (
            http(b'{"error": "invalid_request"}', status="400 Bad Request"),
            "service_unavailable",
        ),
        (http(b"", status="429 Slow", headers="Retry-After: 3000\r\n"), "rate_limited"),
        (http(b"no", headers="Set-Cookie: k=at-secret\r\n"), "service_unavailable"),
        (b"", "service_unavailable"),
        (http(b'"access_token"'), "service_unavailable"),
        (http(b'{"a":' * 40_000 + b"1" + b"}" * 40_000), "service_unavailable"),
        (fake_service.huge, "malformed_answer"),
        (fake_service.silent, "service_timeout"),
        (fake_service.reset, "service_unavailable"),
        *(
            (http(("{" + members + "}").encode()), "malformed_answer")
            for members in MISTYPED
        ),
    ],
)
def test_a_bad_token_answer_ends_in_a_page_and_makes_nobody(
    client,
    service,
    refused,
    answer,
    code,
):
    service.answers["token"] = answer
    began = time.monotonic()
    with fake_service.impatient(service):
        response = sign_in(client)
    refused(response, code)
    # A spent code is no fault of the service: no alarm for servers rings.
    assert (response.status_code == 400) is (code == "invalid_grant")
    assert response.get("Retry-After") == {"rate_limited": "60"}.get(code)
    assert time.monotonic() - began < 20
    assert asked(service) == ["token"]
    assert nobody_was_made()


@pytest.mark.parametrize(
    ("fields", "code", "last"),
    [
        (
            {"profile": {"id": "somebody"}, "token": {"user_id": "subject-1"}},
            "subject_mismatch",
            "profile",
        ),
        ({"claims_user_id": "somebody"}, "subject_mismatch", "claims"),
        (
            {"token": {"user_id": "subject-1", "sub": "somebody"}},
            "subject_mismatch",
            "token",
        ),
        ({"payload": {"sub": "somebody"}}, "credential_rejected", "jwks"),
        ({"payload": {"environment": "live"}}, "credential_rejected", "jwks"),
        ({"profile": {"id": 7}}, "malformed_answer", "me"),
        ({"profile": {"email": ["a"]}}, "malformed_answer", "me"),
        ({"kyc": {"user_id": "x"}}, "subject_mismatch", "kyc"),
        (
            {"answers": {"me": refusal("USER_MISMATCH", "403 No")}},
            "subject_unknown",
            "me",
        ),
        # Fewer scopes were granted.
        ({"token": {"scope": ""}}, "subject_unknown", "token"),
        ({"token": {"scope": "kyc:read"}}, "subject_unknown", "kyc"),
        (
            {"token": {"scope": "kyc:read"}, "kyc": {"user_id": 7}},
            "malformed_answer",
            "kyc",
        ),
        (
            {"token": {"scope": "kyc:read"}, "kyc": {"user_id": "a", "sub": "b"}},
            "subject_mismatch",
            "kyc",
        ),
        (
            {"token": {"scope": "claims:read"}, "payload": {"sub": "x"}},
            "credential_rejected",
            "jwks",
        ),
        (
            {"token": {"scope": "claims:read"}, "claims_user_id": "x"},
            "credential_rejected",
            "jwks",
        ),
        (
            {"token": {"scope": "kyc:read claims:read"}, "kyc": {"user_id": "x"}},
            "subject_mismatch",
            "kyc",
        ),
    ],
    ids=str,
)
def test_answers_about_different_people_sign_nobody_in(
    client,
    service,
    refused,
    fields,
    code,
    last,
):
    for name, value in fields.items():
        setattr(service, name, value)
    refused(sign_in(client), code)
    assert asked(service)[-1] == last
    assert nobody_was_made()
    request = AuthorizationRequest.objects.get()
    assert request.outcome == code
    assert request.code_verifier == ""


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"payload": {"aud": "another-client"}}, "credential_rejected"),
        ({"payload": {"iss": "https://evil.example"}}, "credential_rejected"),
        ({"payload": {"exp": 1}}, "credential_rejected"),
        # It is disclosed as well.
        ({"payload": {"age_over_18": True}}, "credential_rejected"),
        ({"bend": lambda text: text[:-3] + "AA~"}, "credential_rejected"),
        ({"kyc": {"verified_at": "yesterday"}}, "malformed_answer"),
        ({"answers": {"kyc": "redirect"}}, "unexpected_redirect"),
        ({"answers": {"claims": "redirect"}}, "unexpected_redirect"),
        ({"answers": {"claims": fake_service.html("504 No")}}, "service_unavailable"),
        ({"answers": {"jwks": fake_service.html("504 No")}}, "keys_unavailable"),
    ],
)
def test_what_cannot_be_read_opens_nothing(client, service, caplog, fields, error):
    for name, value in fields.items():
        setattr(service, name, value)
    with serving() as elsewhere:
        if error == "unexpected_redirect":
            redirect = fake_service.redirect_to(elsewhere.origin, 307)
            service.answers = dict.fromkeys(service.answers, redirect)
        assert sign_in(client).status_code == 302
        assert elsewhere.requests == []
    identity = LinkedIdentity.objects.get()
    is_level_bad = "kyc" in fields or "kyc" in fields.get("answers", ())
    assert claims_of(identity.user) == ({"age_over_18": True} if is_level_bad else {})
    assert bool(standing_of(identity.user).level_shortfall("level_1")) is is_level_bad
    assert identity.last_error == error
    assert identity.is_due is True
    [line] = [each for each in caplog.records if "sign_in.unread" in each.getMessage()]
    assert line.levelname == "WARNING"
    assert line.__dict__["code"] == error
    assert re.fullmatch(r"[0-9a-f]{8}", line.__dict__["reference"])
    [said] = [finding for finding in of_rows() if finding.check == "unread"]

    assert said.message.endswith(f"could not be read or proven: 1, {error}")
