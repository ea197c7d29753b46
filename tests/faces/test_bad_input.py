"""Everything that can go wrong in a sign-in ends in a plain page, one log line, and no change."""

from __future__ import annotations

import gzip
import json
import logging
import socket
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client, override_settings
from django.urls import reverse
from django.utils import timezone

from django_identity.exceptions import IdentityError
from django_identity.models import AuthorizationRequest, LinkedIdentity, WebhookEvent
from django_identity.policy import IdentityPolicy
from django_identity.service.messages import KycStatus, Profile
from tests import hostile
from tests.at_once import at_once
from tests.faces.conftest import begin, come_back, sign_in
from tests.hostile import HostileService, hostile_service, http
from tests.records import make_identity, make_user

pytestmark = pytest.mark.django_db(transaction=True)

SECRETS = ("at-secret", "rt-secret", "a-code", "a-client-secret", "ada@example.org", "subject-1")


@pytest.fixture(autouse=True)
def _every_log_line(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)


def refused(response: HttpResponse, code: str, caplog: pytest.LogCaptureFixture) -> None:
    """A page that says what to do, one line in the log, no secret in either, nobody made."""
    assert 400 <= response.status_code < 600
    page = response.content.decode()
    assert f"<code>{code}</code>" in page
    lines = [r.getMessage() for r in caplog.records if "identity.sign_in.failed" in r.getMessage()]
    assert len(lines) == 1
    assert f"code={code} " in lines[0]
    everything = page + caplog.text
    assert not [secret for secret in SECRETS if secret in everything]


def nobody_was_made() -> bool:
    return not User.objects.exists() and not LinkedIdentity.objects.exists()


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
        ("error=%3Cscript%3Ealert(1)%3C/script%3E&state={state}", "authorization_refused"),
        ("error=%00%22&state={state}", "authorization_refused"),
    ],
    ids=lambda value: value[:30],
)
def test_a_malformed_callback(
    client: Client, service: HostileService, caplog: pytest.LogCaptureFixture, query: str, code: str
) -> None:
    """Nothing is asked of the service for a callback that it did not send."""
    state = begin(client)
    response = client.get(reverse("identity:callback") + "?" + query.format(state=state))
    refused(response, code, caplog)
    assert b"<script" not in response.content
    assert service.requests == []
    assert nobody_was_made()


@pytest.mark.parametrize("method", ["HEAD", "POST", "PUT", "DELETE", "OPTIONS"])
def test_the_callback_is_for_get_alone(
    client: Client, service: HostileService, method: str
) -> None:
    """A link preview's HEAD does not spend the code."""
    state = begin(client)
    response = client.generic(method, reverse("identity:callback") + f"?code=a&state={state}")
    assert response.status_code == 405
    assert come_back(client, state).status_code == 302


def test_a_replayed_callback(service: HostileService, caplog: pytest.LogCaptureFixture) -> None:
    """A used state stays used, whatever cookies are put back."""
    with override_settings(SESSION_ENGINE="django.contrib.sessions.backends.signed_cookies"):
        browser = Client()
        state = begin(browser)
        old_cookies = browser.cookies.output()
        come_back(browser, state)
        restored = Client()
        restored.cookies.load(old_cookies.replace("Set-Cookie:", ""))
        refused(come_back(restored, state), "request_used", caplog)
    assert service.calls("token") == 1


def test_a_stale_callback(
    client: Client, service: HostileService, caplog: pytest.LogCaptureFixture
) -> None:
    """Ten minutes, and no longer."""
    state = begin(client)
    AuthorizationRequest.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    refused(come_back(client, state), "request_expired", caplog)
    assert service.requests == []


def test_another_browser(service: HostileService, caplog: pytest.LogCaptureFixture) -> None:
    """A callback address sent to a victim signs nobody in."""
    state = begin(Client())
    victim = Client()
    begin(victim)
    refused(come_back(victim, state), "request_unknown", caplog)
    assert service.requests == []


def test_two_callbacks_at_the_same_moment(service: HostileService) -> None:
    """A double click exchanges the code once."""
    browser = Client()
    state = begin(browser)

    def press() -> int:
        tab = Client()
        tab.cookies.update(browser.cookies)
        return come_back(tab, state).status_code

    assert min(at_once([press, press])) == 302
    assert service.calls("token") == 1
    assert User.objects.count() == 1


class CrashingPolicy(IdentityPolicy):
    """A site whose own code fails."""

    def may_sign_up(self, *, profile: Profile, kyc: KycStatus | None) -> bool:
        raise ZeroDivisionError


def test_a_crash_after_the_claim(service: HostileService, caplog: pytest.LogCaptureFixture) -> None:
    """A callback that crashed half-way cannot be used again."""
    browser = Client(raise_request_exception=False)
    policy = f"{__name__}.{CrashingPolicy.__name__}"
    with override_settings(DJANGO_IDENTITY={"default": service.settings(POLICY=policy)}):
        state = begin(browser)
        assert come_back(browser, state).status_code == 500
        caplog.clear()
        refused(come_back(browser, state), "request_used", caplog)
    assert service.calls("token") == 1
    assert nobody_was_made()


@pytest.mark.parametrize("query", [{"code": "a"}, {"error": "access_denied"}])
def test_an_unsolicited_callback_changes_nothing(
    client: Client, service: HostileService, query: dict[str, str]
) -> None:
    """Whoever is signed in stays signed in, as they were."""
    sign_in(client)
    before = dict(client.session), service.calls("token")
    for state in ("x" * 43, ""):
        client.get(reverse("identity:callback"), {**query, "state": state})
    assert (dict(client.session), service.calls("token")) == before


def test_another_user_than_the_one_who_started(
    client: Client, service: HostileService, caplog: pytest.LogCaptureFixture
) -> None:
    """A link belongs to the user who pressed the button."""
    client.force_login(make_user("ada"), backend="django.contrib.auth.backends.ModelBackend")
    state = begin(client)
    client.force_login(make_user("eve"), backend="django.contrib.auth.backends.ModelBackend")
    refused(come_back(client, state), "user_changed", caplog)
    assert service.requests == []
    assert not LinkedIdentity.objects.exists()


def test_somebody_signed_in_meanwhile(
    client: Client, service: HostileService, caplog: pytest.LogCaptureFixture
) -> None:
    """A sign-in begun by nobody does not replace somebody's session."""
    state = begin(client)
    client.force_login(make_user("eve"), backend="django.contrib.auth.backends.ModelBackend")
    refused(come_back(client, state), "user_changed", caplog)
    assert client.get("/").content == b"eve"


NESTED = b'{"a":' * 200_000 + b"1" + b"}" * 200_000
GZIP = http(gzip.compress(b" " * 50_000_000), headers="Content-Encoding: gzip\r\n")


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (http(b'{"error": "invalid_grant"}', status="400 Bad Request"), "invalid_grant"),
        (http(b'{"error": "invalid_grant"}'), "invalid_grant"),
        (http(b'{"success": false, "error": {"code": "NOPE"}}'), "service_refusal"),
        (http(b'{"success":false,"error":{"code":"ENVIRONMENT_MISMATCH"}}', status="403 No"),
         "environment_mismatch"),
        (hostile.html(), "malformed_answer"),
        (hostile.html("500 Oops"), "service_unavailable"),
        (hostile.html("400 Bad Request"), "service_refusal"),
        (http(b"", status="429 Slow", headers="Retry-After: 7\r\n"), "rate_limited"),
        (http(b""), "malformed_answer"),
        (b"", "service_unavailable"),
        (http(b'"access_token"'), "malformed_answer"),
        (http(NESTED), "answer_too_large"),
        (http(b'{"a":' * 40_000), "malformed_answer"),
        (GZIP, "malformed_answer"),
        (hostile.truncated, "service_unavailable"),
        (hostile.huge, "answer_too_large"),
        (hostile.silent, "service_timeout"),
        (hostile.dribble_body, "service_timeout"),
        (hostile.dribble_headers, "service_timeout"),
        (hostile.reset, "service_unavailable"),
    ],
    ids=lambda value: getattr(value, "__name__", None) or str(value)[:30],
)  # fmt: skip
def test_a_bad_token_answer(
    client: Client, service: HostileService, caplog: pytest.LogCaptureFixture,
    answer: bytes | Callable[[socket.socket], None], code: str,
) -> None:  # fmt: skip
    """However badly the token endpoint answers: one call, no user, a page within the deadline."""
    service.answers["token"] = answer
    began = time.monotonic()
    refused(sign_in(client), code, caplog)
    assert time.monotonic() - began < 2
    assert [name for name, _, _ in service.requests] == ["token"]
    assert nobody_was_made()


@pytest.mark.parametrize(
    "members",
    [
        '"expires_in": 3600',
        '"access_token": 5, "expires_in": 3600',
        '"access_token": "", "expires_in": 3600',
        '"access_token": "a\\nb", "expires_in": 3600',
        '"access_token": "a b", "expires_in": 3600',
        '"access_token": "a"',
        *(f'"access_token": "a", "expires_in": {value}' for value in
          ('"3600"', "-1", "0", "NaN", "1e999", "1" + "0" * 30, "true", "null", "[]")),
        '"access_token": "a", "expires_in": 3600, "token_type": "mac"',
        '"access_token": "a", "expires_in": 3600, "token_type": null',
        '"access_token": "a", "access_token": "b", "expires_in": 3600',
        '"access_token": "a", "expires_in": 3600, "refresh_token": 7',
        *(f'"access_token": "a", "expires_in": 3600, "user_id": {value}' for value in
          ('""', "0", "null", "true", "[]", '"."', '".."', '"a\\u0000"', '"\\ud800"',
           json.dumps("x" * 300))),
    ],
)  # fmt: skip
def test_a_token_answer_of_wrong_types(
    client: Client, service: HostileService, caplog: pytest.LogCaptureFixture, members: str
) -> None:
    """Every member is checked before anything is done with it."""
    service.answers["token"] = http(("{" + members + "}").encode())
    refused(sign_in(client), "malformed_answer", caplog)
    assert service.calls("token") == len(service.requests) == 1
    assert nobody_was_made()


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("endpoint", ["token", "me", "kyc", "claims"])
def test_a_redirect_is_not_followed(
    client: Client,
    service: HostileService,
    caplog: pytest.LogCaptureFixture,
    endpoint: str,
    status: int,
) -> None:
    """Neither the secret nor a token ever arrives at another host."""
    with hostile_service() as elsewhere:
        service.answers[endpoint] = hostile.redirect_to(elsewhere.origin, status)
        refused(sign_in(client), "unexpected_redirect", caplog)
        assert elsewhere.requests == []


def test_a_service_that_refuses_connections(
    client: Client, service: HostileService, caplog: pytest.LogCaptureFixture
) -> None:
    """Nobody there: a page that says to try again."""
    state = begin(client)
    service._listener.shutdown(socket.SHUT_RDWR)
    service.close()
    refused(come_back(client, state), "service_unavailable", caplog)


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"profile": {"id": "somebody"}, "token": {"user_id": "subject-1"}}, "subject_mismatch"),
        ({"claims_user_id": "somebody"}, "subject_mismatch"),
        ({"token": {"user_id": "subject-1", "sub": "somebody"}}, "subject_mismatch"),
        ({"payload": {"sub": "somebody"}}, "credential_rejected"),
        ({"payload": {"environment": "live"}}, "credential_rejected"),
        ({"payload": {"aud": "another-client"}}, "credential_rejected"),
        ({"payload": {"iss": "https://evil.example"}}, "credential_rejected"),
        ({"payload": {"exp": 1}}, "credential_rejected"),
        ({"bend": lambda text: text[:-3] + "AA~"}, "credential_rejected"),
        ({"profile": {"id": 7}}, "malformed_answer"),
        ({"profile": {"email": ["a"]}}, "malformed_answer"),
        ({"profile": {"first_name": "a\0"}}, "malformed_answer"),
        ({"kyc": {"verified_at": "yesterday"}}, "malformed_answer"),
        ({"kyc": {"status": {}}}, "malformed_answer"),
    ],
)
def test_answers_about_somebody_else(
    client: Client, service: HostileService, caplog: pytest.LogCaptureFixture,
    fields: dict[str, Any], code: str,
) -> None:  # fmt: skip
    """Whatever named the subject, everything must be about that one, and well formed."""
    for name, value in fields.items():
        setattr(service, name, value)
    refused(sign_in(client), code, caplog)
    assert nobody_was_made()


@pytest.mark.parametrize("subject", ["../x", "a/b?c#d", "0", "null", "None", "%2e%2e", "x" * 255])
def test_odd_subjects_are_opaque_text(
    client: Client, service: HostileService, subject: str
) -> None:
    """A subject is quoted in paths and stored as it is."""
    service.subject = subject
    service.token = {"user_id": subject}
    assert sign_in(client).status_code == 302
    assert LinkedIdentity.objects.get().subject == subject
    assert all(target.count("/") == 5 for name, target, _ in service.requests if "users" in target)


def test_subjects_differ_by_case(service: HostileService) -> None:
    """``ABC`` and ``abc`` are two people."""
    for subject in ("ABC", "abc"):
        service.subject, service.profile = subject, {"email": f"{subject}1@example.org"}
        service.profile["email"] = "" if subject == "abc" else "one@example.org"
        sign_in(Client())
    assert User.objects.count() == 2


@pytest.mark.parametrize(
    "given",
    [
        "//evil.example", "/\\evil.example", "\\\\evil.example", "https:evil.example",
        "https://evil.example/", "http:///evil.example", "javascript:alert(1)", "/\tevil",
        "/\n/evil.example", "\t//evil.example", "/\r\nX: y", "%2F%2Fevil.example",
        "//testserver@evil.example", "///evil.example", "/" + "a" * 8192,
        " //evil.example", "data:x",
    ],
)  # fmt: skip
def test_next_stays_on_this_site(client: Client, service: HostileService, given: str) -> None:
    """Only a path of this site is a place to go to."""
    assert sign_in(client, given)["Location"] == "/"


def test_next_is_not_taken_from_the_callback(client: Client, service: HostileService) -> None:
    """Where to go was settled when the button was pressed."""
    state = begin(client, "/adults/")
    assert come_back(client, state, next="//evil.example")["Location"] == "/adults/"


def test_a_forged_host(client: Client, service: HostileService) -> None:
    """The callback address follows no host that is not ours."""
    assert client.post(reverse("identity:login"), HTTP_HOST="evil.example").status_code == 400
    fixed = service.settings(REDIRECT_URI="https://site.example/identity/callback/")
    with override_settings(ALLOWED_HOSTS=["*"], DJANGO_IDENTITY={"default": fixed}):
        response = client.post(reverse("identity:login"), HTTP_HOST="evil.example")
    assert "evil" not in response["Location"]


def test_a_disabled_user(
    client: Client, service: HostileService, caplog: pytest.LogCaptureFixture
) -> None:
    """A disabled account is not opened by an identity."""
    make_identity(make_user("ada", is_active=False))
    refused(sign_in(client), "user_inactive", caplog)
    assert client.get("/").content == b""


def test_a_user_deleted_meanwhile(
    client: Client, service: HostileService, caplog: pytest.LogCaptureFixture
) -> None:
    """A link whose user is gone goes nowhere."""
    user = make_user()
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    state = begin(client)
    user.delete()
    refused(come_back(client, state), "request_unknown", caplog)


def test_a_subject_of_another_user(
    client: Client, service: HostileService, caplog: pytest.LogCaptureFixture
) -> None:
    """A linked subject stays where it is."""
    owner = make_user("owner")
    make_identity(owner)
    client.force_login(make_user("eve"), backend="django.contrib.auth.backends.ModelBackend")
    refused(sign_in(client), "subject_taken", caplog)
    assert LinkedIdentity.objects.get().user == owner


def test_a_renewal_as_somebody_else(
    client: Client, service: HostileService, caplog: pytest.LogCaptureFixture
) -> None:
    """A renewal comes back as the same subject."""
    user = make_user()
    make_identity(user, subject="another-subject")
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    refused(sign_in(client), "subject_changed", caplog)


def test_a_second_subject_for_one_user(
    client: Client, service: HostileService, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever was linked in another tab meanwhile keeps that subject."""
    user = make_user()
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    state = begin(client)
    make_identity(user, subject="another-subject")
    refused(come_back(client, state), "user_holds_another", caplog)
    assert LinkedIdentity.objects.get().subject == "another-subject"


def test_a_profile_of_somebody_else_where_nothing_else_is_read(
    client: Client, service: HostileService, caplog: pytest.LogCaptureFixture
) -> None:
    """The token's own word for the subject binds the profile, also without the claims."""
    service.token, service.profile = {"user_id": "subject-1"}, {"id": "somebody"}
    with override_settings(DJANGO_IDENTITY={"default": service.settings(SCOPES=["profile:read"])}):
        refused(sign_in(client), "subject_mismatch", caplog)
    assert nobody_was_made()


@pytest.mark.parametrize("email", ["ada@example.org", "ADA@Example.ORG"])
def test_a_taken_address(
    client: Client, service: HostileService, caplog: pytest.LogCaptureFixture, email: str
) -> None:
    """Accounts are never merged silently; after the local sign-in the linking goes on."""
    user = make_user(email=email)
    response = sign_in(client, "/adults/")
    refused(response, "email_taken", caplog)
    assert "/accounts/login/?next=%2Fidentity%2Flogin%2F" in response.content.decode()
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    assert sign_in(client, "/adults/")["Location"] == "/adults/"
    assert LinkedIdentity.objects.get().user == user


def test_two_browsers_sign_one_new_subject_up(service: HostileService) -> None:
    """One of them makes the account, and both end up in it."""
    browsers = [Client(), Client()]
    states = [begin(browser) for browser in browsers]
    both = threading.Barrier(2)
    claims = hostile.answer(service.good("claims"))

    def answered_together(connection: socket.socket) -> None:
        both.wait(timeout=5)
        connection.sendall(claims)

    service.answers["claims"] = answered_together
    callers = [partial(come_back, *pair) for pair in zip(browsers, states, strict=True)]
    assert [response.status_code for response in at_once(callers)] == [302, 302]
    assert User.objects.count() == LinkedIdentity.objects.count() == 1


@pytest.mark.parametrize("event_type", ["consent.revoked", "data.deletion_requested"])
def test_a_revocation_on_the_way(
    client: Client, service: HostileService, caplog: pytest.LogCaptureFixture, event_type: str
) -> None:
    """A revocation that arrives between the button and the callback is obeyed."""
    identity = make_identity(make_user("temporary"))
    digest = identity.subject_digest
    User.objects.all().delete()
    state = begin(client)
    now = timezone.now()
    WebhookEvent.objects.create(
        application="default", event_id="e1", event_digest="d1", event_type=event_type,
        occurred_at=now, received_at=now, subject_digest=digest, outcome="applied",
    )  # fmt: skip
    refused(come_back(client, state), "consent_withdrawn", caplog)
    assert nobody_was_made()


@pytest.mark.parametrize("field", ["is_staff", "is_superuser", "is_active", "password", "pk", "id"])
def test_fields_that_no_policy_may_write(
    client: Client, service: HostileService, caplog: pytest.LogCaptureFixture, field: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """A policy that reaches for power is refused as a whole."""
    monkeypatch.setattr(
        "django_identity.policy.IdentityPolicy.new_user_fields",
        lambda self, *, profile, kyc: {"username": "x", field: 1},
    )
    refused(sign_in(client), "configuration", caplog)
    assert nobody_was_made()


def test_every_error_has_a_code_of_its_own() -> None:
    """One root, and a stable code for each leaf."""

    def tree(kind: type[IdentityError]) -> list[type[IdentityError]]:
        return [kind, *(leaf for child in kind.__subclasses__() for leaf in tree(child))]

    codes = [kind.code for kind in tree(IdentityError)]
    assert len(codes) == len(set(codes))
