"""Whatever the service answers: a plain page, one log line, and nobody is made."""

import json
import re
import time

import pytest

from django_identity.gates import claims_of
from django_identity.instruments.signs import of_rows
from django_identity.lifecycle.standing.standing import standing_of
from django_identity.models import AuthorizationRequest, LinkedIdentity
from tests import fake_service
from tests.fake_service import FakeService, http, refusal, serving
from tests.sign_in import sign_in
from tests.views.bad_input.refusals import nobody_was_made

pytestmark = pytest.mark.django_db(transaction=True)

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
    *(f'{GOOD}"scope": {value}'
      for value in ('["claims:read"]', '"a\\u0000"', '"\\u00e9"', '"' + "a" * 2000 + '"')),
    *(f'{GOOD}"user_id": {value}' for value in
      ('""', '" "', "0", "true", "[]", '"."', '".."', '"a\\u0000"', json.dumps("x" * 300))),
)  # fmt: skip


def asked(service: FakeService) -> list[str]:
    return [name for name, _, _ in service.requests]


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
        (http(b"", status="429 Slow", headers="Retry-After: 3000\r\n"), "rate_limited"),
        (http(b""), "service_unavailable"),
        (http(b"no", headers="Set-Cookie: k=at-secret\r\n"), "service_unavailable"),
        (b"", "service_unavailable"),
        (http(b'"access_token"'), "service_unavailable"),
        (http(b'{"a":' * 40_000 + b"1" + b"}" * 40_000), "service_unavailable"),
        (fake_service.huge, "malformed_answer"),
        (fake_service.silent, "service_timeout"),
        (fake_service.reset, "service_unavailable"),
        *((http(("{" + members + "}").encode()), "malformed_answer") for members in MISTYPED),
    ],
)  # fmt: skip
def test_a_bad_token_answer_ends_in_a_page_and_makes_nobody(
    client, service, refused, answer, code
):
    """However badly the token endpoint answers: one call, no user, a page within the deadline."""
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
        ({"profile": {"id": "somebody"}, "token": {"user_id": "subject-1"}}, "subject_mismatch",
         "profile"),
        ({"claims_user_id": "somebody"}, "subject_mismatch", "claims"),
        ({"token": {"user_id": "subject-1", "sub": "somebody"}}, "subject_mismatch", "token"),
        ({"payload": {"sub": "somebody"}}, "credential_rejected", "jwks"),
        ({"payload": {"environment": "live"}}, "credential_rejected", "jwks"),
        ({"profile": {"id": 7}}, "malformed_answer", "me"),
        ({"profile": {"email": ["a"]}}, "malformed_answer", "me"),
        ({"profile": {"first_name": "a\0"}}, "malformed_answer", "me"),
        ({"kyc": {"user_id": "x"}}, "subject_mismatch", "kyc"),
        ({"answers": {"me": refusal("USER_MISMATCH", "403 No")}}, "subject_unknown", "me"),
        ({"answers": {"me": refusal("NOT_FOUND", "404 Not Found")}}, "subject_unknown", "me"),
        # Fewer scopes were granted.
        ({"token": {"scope": "documents:metadata"}}, "subject_unknown", "token"),
        ({"token": {"scope": ""}}, "subject_unknown", "token"),
        ({"token": {"scope": "kyc:read"}}, "subject_unknown", "kyc"),
        ({"token": {"scope": "kyc:read"}, "kyc": {"user_id": None}}, "subject_unknown", "kyc"),
        ({"token": {"scope": "kyc:read"}, "kyc": {"user_id": 7}}, "malformed_answer", "kyc"),
        ({"token": {"scope": "kyc:read"}, "kyc": {"user_id": "a", "sub": "b"}}, "subject_mismatch",
         "kyc"),
        ({"token": {"scope": "claims:read"}, "payload": {"sub": "x"}}, "credential_rejected",
         "jwks"),
        ({"token": {"scope": "claims:read"}, "claims_user_id": "x"}, "credential_rejected", "jwks"),
        ({"token": {"scope": "kyc:read claims:read"}, "kyc": {"user_id": "x"}}, "subject_mismatch",
         "kyc"),
    ],
    ids=str,
)  # fmt: skip
def test_answers_about_different_people_sign_nobody_in(
    client, service, refused, fields, code, last
):
    """All answers must name one subject. At the first that does not, the calls end."""
    for name, value in fields.items():
        setattr(service, name, value)
    refused(sign_in(client), code)
    assert asked(service)[-1] == last
    assert nobody_was_made()
    request = AuthorizationRequest.objects.get()
    assert (request.outcome, request.code_verifier) == (code, "")


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
        ({"kyc": {"status": {}}}, "malformed_answer"),
        ({"answers": {"kyc": "redirect"}}, "unexpected_redirect"),
        ({"answers": {"claims": "redirect"}}, "unexpected_redirect"),
        ({"answers": {"claims": fake_service.html("504 No")}}, "service_unavailable"),
        ({"answers": {"jwks": fake_service.html("504 No")}}, "keys_unavailable"),
    ],
)
def test_what_cannot_be_read_opens_nothing(client, service, caplog, fields, error):
    """The person is signed in with what could be read; the rest is fetched again soon.

    A line of the log and a sign of the doctor say it at once, and not only the next upkeep.
    """
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
    assert (identity.last_error, identity.is_due) == (error, True)
    [line] = [each for each in caplog.records if "sign_in.unread" in each.getMessage()]
    assert (line.levelname, line.__dict__["code"]) == ("WARNING", error)
    assert re.fullmatch(r"[0-9a-f]{8}", line.__dict__["reference"])
    [said] = [finding for finding in of_rows() if finding.check == "unread"]
    assert said.message.endswith(f"could not be read or proven: 1, {error}")
