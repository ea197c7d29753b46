"""Whatever the service answers: a plain page, one log line, and nobody is made."""

from __future__ import annotations

import gzip
import json
import socket
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

import pytest
from django.contrib.auth.models import User
from django.test import Client, override_settings

from django_identity.exceptions import Recovery
from django_identity.models import AuthorizationRequest, LinkedIdentity
from tests import hostile
from tests.faces.bad_input.refusals import CALLS, nobody_was_made, refused
from tests.faces.conftest import begin, come_back, sign_in
from tests.hostile import HostileService, hostile_service, http

pytestmark = pytest.mark.django_db(transaction=True)


NESTED = b'{"a":' * 200_000 + b"1" + b"}" * 200_000


GZIP = http(gzip.compress(b" " * 50_000_000, mtime=0), headers="Content-Encoding: gzip\r\n")


def asked(service: HostileService) -> list[str]:
    return [name for name, _, _ in service.requests]


def up_to(last: str) -> list[str]:
    """The calls of a sign-in that ends with the answer to ``last``."""
    if last == "profile":
        return ["token", "profile"]
    return CALLS[: CALLS.index(last) + 1]


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
        (hostile.html("400 Bad Request"), "service_unavailable"),
        (hostile.html("401 Unauthorized"), "service_unavailable"),
        (http(b"{}", status="400 Bad Request"), "service_unavailable"),
        (http(b'{"error": "invalid_client"}', status="401 Unauthorized"), "client_rejected"),
        (http(b'{"error": "unauthorized_client"}', status="400 Bad Request"), "client_rejected"),
        (http(b'{"error": "invalid_grant"}', status="503 Busy"), "service_unavailable"),
        (http(b'{"error": "invalid_request"}', status="400 Bad Request"), "service_refusal"),
        (http(b"", status="429 Slow", headers="Retry-After: 7\r\n"), "rate_limited"),
        (http(b""), "malformed_answer"),
        (http(b"no", headers="Set-Cookie: k=at-secret\r\n"), "malformed_answer"),
        (b"", "service_unavailable"),
        (http(b'"access_token"'), "malformed_answer"),
        (http(NESTED), "answer_too_large"),
        (http(b'{"a":' * 40_000), "malformed_answer"),
        (http(b'{"a":' * 40_000 + b"1" + b"}" * 40_000), "malformed_answer"),
        (GZIP, "malformed_answer"),
        (http(b'{"access_token":"a","expires_in":60}', headers="Content-Encoding: br\r\n"),
         "malformed_answer"),
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
    with hostile.impatient(service):
        refused(sign_in(client), code, caplog)
    assert time.monotonic() - began < 2
    assert asked(service) == ["token"]
    assert nobody_was_made()


@pytest.mark.parametrize(
    ("code", "http_status", "status", "recovery"),
    [
        ("invalid_grant", "400 Bad Request", 400, Recovery.RESTART),
        ("invalid_client", "401 Unauthorized", 502, Recovery.CONTACT),
        ("unauthorized_client", "400 Bad Request", 502, Recovery.CONTACT),
        ("ENVIRONMENT_MISMATCH", "403 Forbidden", 502, Recovery.CONTACT),
        ("APP_SUSPENDED", "403 Forbidden", 502, Recovery.RESTART),
    ],
)
def test_who_can_mend_a_refused_code(
    client: Client, service: HostileService, code: str, http_status: str, status: int,
    recovery: Recovery,
) -> None:  # fmt: skip
    """The person, who starts again, or the site's operators."""
    service.answers["token"] = hostile.refusal(code, http_status)
    response = sign_in(client)
    assert (response.status_code, response.context["error"].recovery) == (status, recovery)


@pytest.mark.parametrize(
    "members",
    [
        '"expires_in": 3600',
        '"access_token": 5, "expires_in": 3600',
        '"access_token": "", "expires_in": 3600',
        '"access_token": "a\\nb", "expires_in": 3600',
        '"access_token": "a b", "expires_in": 3600',
        *(f'"access_token": "a", "expires_in": {value}' for value in ("NaN", "1e999")),
        '"access_token": "a", "expires_in": 3600, "token_type": "mac"',
        '"access_token": "a", "access_token": "b", "expires_in": 3600',
        '"access_token": "a", "expires_in": 3600, "refresh_token": 7',
        *(f'"access_token": "a", "expires_in": 3600, "beside": {value}' for value in
          ("NaN", "-Infinity", "1e999", "[" * 40 + "]" * 40)),
        *(f'"access_token": "a", "expires_in": 3600, "scope": {value}' for value in
          ('["claims:read"]', '"a\\u0000"', '"\\ud800"', '"\\u00e9"', '"' + "a" * 2000 + '"')),
        *(f'"access_token": "a", "expires_in": 3600, "user_id": {value}' for value in
          ('""', "0", "true", "[]", '"."', '".."', '"a\\u0000"', '"\\ud800"',
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
@pytest.mark.parametrize("endpoint", [*CALLS, "profile"])
def test_a_redirect_is_not_followed(
    client: Client,
    service: HostileService,
    caplog: pytest.LogCaptureFixture,
    endpoint: str,
    status: int,
) -> None:
    """Neither the secret nor a token ever arrives at another host, and no further call is sent."""
    if endpoint == "profile":
        service.token = {"user_id": service.subject}
    code = "keys_unavailable" if endpoint == "jwks" else "unexpected_redirect"
    with hostile_service() as elsewhere:
        service.answers[endpoint] = hostile.redirect_to(elsewhere.origin, status)
        refused(sign_in(client), code, caplog)
        assert elsewhere.requests == []
    assert asked(service) == up_to(endpoint)
    assert nobody_was_made()


def test_a_service_that_refuses_connections(
    client: Client, service: HostileService, caplog: pytest.LogCaptureFixture
) -> None:
    """Nobody there: a page that says to try again."""
    state = begin(client)
    service._listener.shutdown(socket.SHUT_RDWR)
    service.close()
    refused(come_back(client, state), "service_unavailable", caplog)
    assert nobody_was_made()


@pytest.mark.parametrize(
    ("fields", "code", "last"),
    [
        ({"profile": {"id": "somebody"}, "token": {"user_id": "subject-1"}}, "subject_mismatch",
         "profile"),
        ({"claims_user_id": "somebody"}, "subject_mismatch", "claims"),
        ({"token": {"user_id": "subject-1", "sub": "somebody"}}, "subject_mismatch", "token"),
        ({"payload": {"sub": "somebody"}}, "credential_rejected", "jwks"),
        ({"payload": {"environment": "live"}}, "credential_rejected", "jwks"),
        ({"payload": {"aud": "another-client"}}, "credential_rejected", "jwks"),
        ({"payload": {"iss": "https://evil.example"}}, "credential_rejected", "jwks"),
        ({"payload": {"exp": 1}}, "credential_rejected", "jwks"),
        ({"bend": lambda text: text[:-3] + "AA~"}, "credential_rejected", "jwks"),
        ({"profile": {"id": 7}}, "malformed_answer", "me"),
        ({"profile": {"email": ["a"]}}, "malformed_answer", "me"),
        ({"profile": {"first_name": "a\0"}}, "malformed_answer", "me"),
        ({"kyc": {"verified_at": "yesterday"}}, "malformed_answer", "kyc"),
        ({"kyc": {"status": {}}}, "malformed_answer", "kyc"),
    ],
)  # fmt: skip
def test_answers_about_somebody_else(
    client: Client, service: HostileService, caplog: pytest.LogCaptureFixture,
    fields: dict[str, Any], code: str, last: str,
) -> None:  # fmt: skip
    """Whatever named the subject, everything must be about that one; nothing is asked after it."""
    for name, value in fields.items():
        setattr(service, name, value)
    refused(sign_in(client), code, caplog)
    assert asked(service) == up_to(last)
    assert nobody_was_made()
    request = AuthorizationRequest.objects.get()
    assert (request.outcome, request.code_verifier) == (code, "")


@pytest.mark.parametrize("subject", ["../x", "a/b?c#d", "0", "null", "None", "%2e%2e", "x" * 255])
def test_odd_subjects_are_opaque_text(
    client: Client, service: HostileService, subject: str
) -> None:
    """A subject is quoted in paths and stored as it is."""
    service.subject = subject
    service.token = {"user_id": subject}
    assert sign_in(client).status_code == 302
    assert LinkedIdentity.objects.get().subject == subject
    sent = [target.split("/users/")[1] for _, target, _ in service.requests if "users" in target]
    assert [target.count("/") for target in sent] == [1, 1, 1]
    assert {unquote(target.split("/")[0]) for target in sent} == {subject}


def test_subjects_differ_by_case(service: HostileService) -> None:
    """``ABC`` and ``abc`` are two people."""
    for subject in ("ABC", "abc"):
        service.subject, service.profile = subject, {"email": f"{subject}1@example.org"}
        service.profile["email"] = "" if subject == "abc" else "one@example.org"
        sign_in(Client())
    assert User.objects.count() == 2


def test_a_profile_of_somebody_else_where_nothing_else_is_read(
    client: Client, service: HostileService, caplog: pytest.LogCaptureFixture
) -> None:
    """The token's own word for the subject binds the profile, also without the claims."""
    service.token, service.profile = {"user_id": "subject-1"}, {"id": "somebody"}
    with override_settings(DJANGO_IDENTITY={"default": service.settings(SCOPES=["profile:read"])}):
        refused(sign_in(client), "subject_mismatch", caplog)
    assert nobody_was_made()
