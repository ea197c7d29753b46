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
from django.test import Client

from django_identity.gates import claims_of
from django_identity.lifecycle.standing import standing_of
from django_identity.models import AuthorizationRequest, LinkedIdentity
from tests import fake_service
from tests.fake_service import FakeService, http, serving
from tests.sign_in import sign_in
from tests.views.bad_input.refusals import CALLS, nobody_was_made, refused

pytestmark = pytest.mark.django_db(transaction=True)


NESTED = b'{"a":' * 200_000 + b"1" + b"}" * 200_000


GZIP = http(gzip.compress(b" " * 50_000_000, mtime=0), headers="Content-Encoding: gzip\r\n")


def asked(service: FakeService) -> list[str]:
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
        (http(b'{"success": false, "error": {"code": "NOPE"}}'), "service_unavailable"),
        (http(b'{"success":false,"error":{"code":"ENVIRONMENT_MISMATCH"}}', status="403 No"),
         "environment_mismatch"),
        (fake_service.html(), "service_unavailable"),
        (fake_service.html("500 Oops"), "service_unavailable"),
        (fake_service.html("400 Bad Request"), "service_unavailable"),
        (fake_service.html("401 Unauthorized"), "service_unavailable"),
        (http(b"{}", status="400 Bad Request"), "service_unavailable"),
        (http(b'{"error": "invalid_client"}', status="401 Unauthorized"), "client_rejected"),
        (http(b'{"error": "unauthorized_client"}', status="400 Bad Request"), "client_rejected"),
        (http(b'{"error": "invalid_grant"}', status="503 Busy"), "service_unavailable"),
        (http(b'{"error": "invalid_request"}', status="400 Bad Request"), "service_unavailable"),
        (http(b"", status="429 Slow", headers="Retry-After: 7\r\n"), "rate_limited"),
        (http(b""), "service_unavailable"),
        (http(b"no", headers="Set-Cookie: k=at-secret\r\n"), "service_unavailable"),
        (b"", "service_unavailable"),
        (http(b'"access_token"'), "service_unavailable"),
        (http(NESTED), "malformed_answer"),
        (http(b'{"a":' * 40_000), "service_unavailable"),
        (http(b'{"a":' * 40_000 + b"1" + b"}" * 40_000), "service_unavailable"),
        (GZIP, "malformed_answer"),
        (http(b'{"access_token":"a","expires_in":60}', headers="Content-Encoding: br\r\n"),
         "malformed_answer"),
        (fake_service.truncated, "service_unavailable"),
        (fake_service.huge, "malformed_answer"),
        (fake_service.silent, "service_timeout"),
        (fake_service.dribble_body, "service_timeout"),
        (fake_service.reset, "service_unavailable"),
    ],
    ids=lambda value: getattr(value, "__name__", None) or str(value)[:30],
)  # fmt: skip
def test_a_bad_token_answer(
    client: Client, service: FakeService, caplog: pytest.LogCaptureFixture,
    answer: bytes | Callable[[socket.socket], None], code: str,
) -> None:  # fmt: skip
    """However badly the token endpoint answers: one call, no user, a page within the deadline."""
    service.answers["token"] = answer
    began = time.monotonic()
    with fake_service.impatient(service):
        refused(sign_in(client), code, caplog)
    assert time.monotonic() - began < 20
    assert asked(service) == ["token"]
    assert nobody_was_made()


@pytest.mark.parametrize(
    "members",
    [
        '"expires_in": 3600',
        '"access_token": 5, "expires_in": 3600',
        '"access_token": "", "expires_in": 3600',
        '"access_token": "a\\nb", "expires_in": 3600',
        '"access_token": "a b", "expires_in": 3600',
        '"access_token": "a", "expires_in": 3600, "token_type": "mac"',
        '"access_token": "a", "expires_in": 3600, "refresh_token": 7',
        *(f'"access_token": "a", "expires_in": 3600, "scope": {value}' for value in
          ('["claims:read"]', '"a\\u0000"', '"\\u00e9"', '"' + "a" * 2000 + '"')),
        *(f'"access_token": "a", "expires_in": 3600, "user_id": {value}' for value in
          ('""', "0", "true", "[]", '"."', '".."', '"a\\u0000"', json.dumps("x" * 300))),
    ],
)  # fmt: skip
def test_a_token_answer_of_wrong_types(
    client: Client, service: FakeService, caplog: pytest.LogCaptureFixture, members: str
) -> None:
    """Every member is checked before anything is done with it."""
    service.answers["token"] = http(("{" + members + "}").encode())
    refused(sign_in(client), "malformed_answer", caplog)
    assert service.calls("token") == len(service.requests) == 1
    assert nobody_was_made()


@pytest.mark.parametrize("status", [302, 307])
@pytest.mark.parametrize("endpoint", ["token", "me", "profile"])
def test_a_redirect_is_not_followed(
    client: Client,
    service: FakeService,
    caplog: pytest.LogCaptureFixture,
    endpoint: str,
    status: int,
) -> None:
    """Neither the secret nor a token ever arrives at another host, and no further call is sent."""
    if endpoint == "profile":
        service.token = {"user_id": service.subject}
    with serving() as elsewhere:
        service.answers[endpoint] = fake_service.redirect_to(elsewhere.origin, status)
        refused(sign_in(client), "unexpected_redirect", caplog)
        assert elsewhere.requests == []
    assert asked(service) == up_to(endpoint)
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
        ({"profile": {"id": 7}}, "malformed_answer", "me"),
        ({"profile": {"email": ["a"]}}, "malformed_answer", "me"),
        ({"profile": {"first_name": "a\0"}}, "malformed_answer", "me"),
    ],
)  # fmt: skip
def test_answers_about_somebody_else(
    client: Client, service: FakeService, caplog: pytest.LogCaptureFixture,
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


@pytest.mark.parametrize(
    "fields",
    [
        {"payload": {"aud": "another-client"}},
        {"payload": {"iss": "https://evil.example"}},
        {"payload": {"exp": 1}},
        {"bend": lambda text: text[:-3] + "AA~"},
    ],
)
def test_a_rejected_credential_opens_nothing(
    client: Client, service: FakeService, fields: dict[str, Any]
) -> None:
    """The person is signed in, and no gate that asks for a claim opens."""
    for name, value in fields.items():
        setattr(service, name, value)
    assert sign_in(client).status_code == 302
    identity = LinkedIdentity.objects.get()
    assert claims_of(identity.user) == {}
    assert identity.last_error == "credential_rejected"


@pytest.mark.parametrize("kyc", [{"verified_at": "yesterday"}, {"status": {}}])
def test_an_unreadable_level_opens_nothing(
    client: Client, service: FakeService, kyc: dict[str, Any]
) -> None:
    """The person is signed in with their claims, and without a level."""
    service.kyc = kyc
    assert sign_in(client).status_code == 302
    identity = LinkedIdentity.objects.get()
    assert not standing_of(identity.user).has_kyc_level("level_1")
    assert claims_of(identity.user) == {"age_over_18": True}
    assert identity.last_error == "malformed_answer"


@pytest.mark.parametrize("endpoint", ["kyc", "claims"])
def test_a_redirect_after_the_profile_is_not_followed(
    client: Client, service: FakeService, endpoint: str
) -> None:
    """No token arrives at another host, and what was not read opens nothing."""
    with serving() as elsewhere:
        service.answers[endpoint] = fake_service.redirect_to(elsewhere.origin, 307)
        assert sign_in(client).status_code == 302
        assert elsewhere.requests == []
    assert LinkedIdentity.objects.get().last_error == "unexpected_redirect"


@pytest.mark.parametrize("subject", ["../x", "a/b?c#d", "0", "null", "None", "%2e%2e", "x" * 255])
def test_odd_subjects_are_opaque_text(client: Client, service: FakeService, subject: str) -> None:
    """A subject is quoted in paths and stored as it is."""
    service.subject = subject
    service.token = {"user_id": subject}
    assert sign_in(client).status_code == 302
    assert LinkedIdentity.objects.get().subject == subject
    sent = [target.split("/users/")[1] for _, target, _ in service.requests if "users" in target]
    assert [target.count("/") for target in sent] == [1, 1, 1]
    assert {unquote(target.split("/")[0]) for target in sent} == {subject}


def test_subjects_differ_by_case(service: FakeService) -> None:
    """``ABC`` and ``abc`` are two people."""
    for subject in ("ABC", "abc"):
        service.subject, service.profile = subject, {"email": f"{subject}1@example.org"}
        service.profile["email"] = "" if subject == "abc" else "one@example.org"
        sign_in(Client())
    assert User.objects.count() == 2
