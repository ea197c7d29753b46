"""What goes over the wire, and each member of what comes back: the rows of docs/interface.md."""

import base64
import hashlib
import hmac
import json
import re
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from email import message_from_string
from typing import Any
from urllib.parse import parse_qsl

import pytest
from django.test import override_settings

from django_identity import conf, exceptions
from django_identity.handlers import KNOWN_TYPES
from django_identity.secrets import Secret
from django_identity.service import ServiceClient, answers, refusals
from django_identity.service.authorization import authorization_url, code_challenge, code_verifier
from django_identity.service.http import Answer
from django_identity.service.webhooks import signing_secret
from tests.fake_service import FakeService

SECRET = "a-client-secret-for-tests-alone"
BASIC = "Basic " + base64.b64encode(f"test-client:{SECRET}".encode()).decode()
VERIFIED_AT = datetime(2026, 11, 1, 10, tzinfo=UTC)


def sent(service: FakeService, ask: Callable[[ServiceClient], Any]) -> tuple[str, Any, str]:
    """The request line, the headers and the body of the one request of ``ask``."""
    # What is played has no answer for some of them.
    with (
        override_settings(DJANGO_IDENTITY={"default": service.settings()}),
        suppress(exceptions.ServiceError),
    ):
        ask(ServiceClient(conf.application()))
    ((_name, _target, raw),) = service.requests
    line, _, rest = raw.decode().partition("\r\n")
    head, _, body = rest.partition("\r\n\r\n")
    return line, message_from_string(head), body


def test_the_exchange_is_a_form_with_the_clients_credentials(service: FakeService) -> None:
    """In the body alone, and with nothing else."""
    given = {"code": "c", "redirect_uri": "https://site.example/back/"}
    verifier = "v" * 43
    line, headers, body = sent(
        service, lambda client: client.exchange_code(**given, code_verifier=Secret(verifier))
    )
    assert line == "POST /oauth2/token HTTP/1.1"
    assert headers["content-type"] == "application/x-www-form-urlencoded"
    assert headers["authorization"] is None
    client = {"client_id": "test-client", "client_secret": SECRET}
    assert dict(parse_qsl(body)) == {
        "grant_type": "authorization_code", "code_verifier": verifier, **given, **client,
    }  # fmt: skip


def test_a_verifier_has_43_to_128_characters() -> None:
    """None but those of RFC 7636, and its challenge is the digest of them."""
    verifier = code_verifier()
    assert re.fullmatch(r"[A-Za-z0-9._~-]{43,128}", verifier.reveal())
    digest = hashlib.sha256(verifier.reveal().encode()).digest()
    assert code_challenge(verifier) == base64.urlsafe_b64encode(digest).decode().rstrip("=")


def test_the_refresh_is_rfc_6749s(service: FakeService) -> None:
    """``grant_type``, ``refresh_token`` and the client's credentials."""
    line, headers, body = sent(service, lambda client: client.refresh(Secret("rt")))
    assert (line, headers["authorization"]) == ("POST /oauth2/token HTTP/1.1", None)
    client = {"client_id": "test-client", "client_secret": SECRET}
    assert dict(parse_qsl(body)) == {"grant_type": "refresh_token", "refresh_token": "rt", **client}


@pytest.mark.parametrize("endpoint", ["profile", "kyc", "claims"])
@pytest.mark.parametrize(("subject", "segment"), [("a/b", "a%2Fb"), (None, "me")])
def test_a_user_endpoint_is_read_with_bearer(
    service: FakeService, endpoint: str, subject: str | None, segment: str
) -> None:
    """By the person's id, quoted, or ``me``; without a query and a body."""
    ask: Any = lambda client: getattr(client, endpoint)(subject, access_token=Secret("at"))  # noqa: E731
    line, headers, body = sent(service, ask)
    assert line == f"GET /api/v1/users/{segment}/{endpoint} HTTP/1.1"
    assert (headers["authorization"], body) == ("Bearer at", "")


@pytest.mark.parametrize(
    ("ask", "path", "authorization", "members"),
    [
        (
            lambda client: client.redeem_connect_code("CNX-AB12-CD34", ["kyc:status"]),
            "connect/request", BASIC, {"connect_code": "CNX-AB12-CD34", "scopes": ["kyc:status"]},
        ),
        (lambda client: client.verify_claims("a~"), "claims/verify", BASIC, {"credential": "a~"}),
        (
            lambda client: client.rotate_secret("app/1", mode="test", portal_token=Secret("pt")),
            "developer/apps/app%2F1/rotate-secret", "Bearer pt", {"mode": "test"},
        ),
        (
            lambda client: client.create_test_user("app-1", portal_token=Secret("pt")),
            "developer/test-users", "Bearer pt", {"appId": "app-1"},
        ),
    ],
    ids=["connect", "verify", "rotate", "test user"],
)  # fmt: skip
def test_a_call_with_json(
    service: FakeService, ask: Any, path: str, authorization: str, members: dict[str, Any]
) -> None:
    """Who asks, where, and exactly which members."""
    line, headers, body = sent(service, ask)
    assert line == f"POST /api/v1/{path} HTTP/1.1"
    assert headers["authorization"] == authorization
    assert headers["content-type"] == "application/json"
    assert json.loads(body) == members


def test_every_member_of_a_token_answer_is_read() -> None:
    """And the subject, if it is named."""
    body = {"access_token": "at", "refresh_token": "rt", "expires_in": 3600, "scope": "a b"}
    read = answers.TokenAnswer.parse(body | {"token_type": "Bearer", "user_id": "s"})
    assert (read.access_token, read.refresh_token) == (Secret("at"), Secret("rt"))
    assert (read.expires_in, read.scopes, read.subject) == (3600, ("a", "b"), "s")


PROFILE = {
    "id": "s", "email": "a@example.org", "first_name": "Ada", "last_name": "Öbi", "country": "NG",
    "kyc_level": "level_2", "risk_score": 12, "photo_url": "https://photos.example/1.png",
}  # fmt: skip


def test_every_member_of_a_profile_is_read() -> None:
    """As it was sent."""
    read = answers.Profile.parse(PROFILE)
    assert {name: getattr(read, name) for name in PROFILE} == PROFILE


def test_every_member_of_a_kyc_status_is_read() -> None:
    """With the moment as a moment; what may be absent is empty."""
    body = {"kyc_level": "level_2", "status": "verified", "provider": "Vendor"}
    read = answers.KycStatus.parse(body | {"verified_at": "2026-11-01T10:00:00Z"})
    assert (read.kyc_level, read.status, read.provider) == ("level_2", "verified", "Vendor")
    assert (read.verified_at, read.subject) == (VERIFIED_AT, None)
    assert answers.KycStatus.parse(body).verified_at is None


@pytest.mark.parametrize("hidden", ["\n", "\x1b", "\x85", "\u200e", "\u202e", "\u2069"])
def test_a_text_has_no_control_characters(hidden: str) -> None:
    """And no known code comes of one that had some. A name is one line without them."""
    read = answers.KycStatus.parse({"kyc_level": f"level_2{hidden}", "status": f"{hidden}verified"})
    assert (read.kyc_level, read.status) == ("level_2\ufffd", "\ufffdverified")
    named = answers.Profile.parse({"id": "s", "first_name": f"Ada{hidden} Lovelace"})
    assert named.first_name == "Ada Lovelace"


@pytest.mark.parametrize("revoked", [False, True])
def test_every_member_of_a_claims_answer_is_read(revoked: bool) -> None:
    """Of both variants of an element, and of the answer around them."""
    element = {
        "claim_type": "age_over_18", "provider": "Vendor", "revoked": revoked,
        "proof_hash": "ab12", "expires_at": "2026-11-01T10:00:00Z",
    }  # fmt: skip
    body = {"user_id": "s", "claims": [element], "credential": "a.b.c~"}
    read = answers.ClaimsAnswer.parse(body | {"credential_format": "dc+sd-jwt"})
    assert (read.user_id, read.credential) == ("s", "a.b.c~")
    assert read.claims == (
        answers.ListedClaim("age_over_18", "Vendor", revoked, "ab12", VERIFIED_AT),
    )
    with pytest.raises(exceptions.MalformedAnswer):
        answers.ClaimsAnswer.parse(body | {"credential_format": "jwt"})


@pytest.mark.parametrize(
    "changed",
    [{"success": "true"}, {"success": 1}, {"success": None}, {"data": []}, {"data": None}],
)
def test_a_success_is_the_envelope(service: FakeService, changed: dict[str, Any]) -> None:
    """``success`` is exactly true, and ``data`` an object."""
    data = {"kyc_level": "level_2", "status": "verified"}
    service.answers["kyc"] = {"success": True, "data": data} | changed
    with (
        override_settings(DJANGO_IDENTITY={"default": service.settings()}),
        pytest.raises(exceptions.MalformedAnswer),
    ):
        ServiceClient(conf.application()).kyc("subject-1", access_token=Secret("at"))


def error_of(status: int, body: dict[str, Any], endpoint: str = "kyc") -> Any:
    answer = Answer(status, {}, json.dumps(body).encode())
    with (
        override_settings(DJANGO_IDENTITY={"default": {**conf_of(), "ENVIRONMENT": "test"}}),
        pytest.raises(exceptions.ServiceError) as raised,
    ):
        refusals.members_of(conf.application(), endpoint, answer)
    return raised.value


def conf_of() -> dict[str, Any]:
    return {
        "BASE_URL": "https://service.example/api/v1", "AUTH_URL": "https://auth.example",
        "CLIENT_ID": "test-client", "CLIENT_SECRET": SECRET,
    }  # fmt: skip


def test_the_authorization_address_is_of_the_configured_server() -> None:
    """With every parameter of the specification, and no other one."""
    asked = {"state": "s", "redirect_uri": "https://site.example/back/"}
    verifier = code_verifier()
    with override_settings(DJANGO_IDENTITY={"default": {**conf_of(), "ENVIRONMENT": "test"}}):
        url = authorization_url(
            conf.application(), scopes=("profile:read", "kyc:read"), verifier=verifier, **asked
        )
    address, _, query = url.partition("?")
    assert address == "https://auth.example/oauth2/auth"
    more = {"response_type": "code", "client_id": "test-client", "scope": "profile:read kyc:read"}
    pkce = {"code_challenge": code_challenge(verifier), "code_challenge_method": "S256"}
    assert dict(parse_qsl(query)) == {**asked, **more, **pkce}


@pytest.mark.parametrize("message", [{"message": "No."}, {}])
def test_an_error_is_read_by_its_code(message: dict[str, str]) -> None:
    """In the service's envelope with or without a message, and in OAuth's form."""
    code = {"code": "ENVIRONMENT_MISMATCH", **message}
    error = error_of(403, {"success": False, "error": code})
    assert isinstance(error, exceptions.EnvironmentMismatch)
    assert error.service_code == "ENVIRONMENT_MISMATCH"
    told = {"error": "invalid_grant", **({"error_description": "No."} if message else {})}
    assert error_of(400, told, "token").code == "invalid_grant"


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("7", 7), ("0", 0), ("99999", 3600), ("9" * 5000, 3600), ("", 0), ("-7", 0), ("1e9", 0),
        ("\u0663", 0), ("soon", 0), ("Fri, 01 Jan 2021 00:00:00 GMT", 0),
        ("Fri, 01 Jan 2100 00:00:00 GMT", 3600),
    ],
)  # fmt: skip
def test_a_pause_is_an_hour_at_most(header: str, seconds: float) -> None:
    """In seconds or as a date; anything else is no pause."""
    assert refusals.pause({"retry-after": header}) == seconds


def test_there_are_seven_types_of_events() -> None:
    """Each by its name in the specification."""
    assert set(KNOWN_TYPES) == {
        "kyc.verified", "kyc.rejected", "consent.granted", "consent.revoked", "claim.issued",
        "claim.revoked", "data.deletion_requested",
    }  # fmt: skip


@pytest.mark.parametrize("sent", [b'{"a": 1}', b'{"a":1}\n', b' {"a":1}', b'{"a":1,}', b""])
def test_the_bytes_as_sent_are_signed(sent: bytes) -> None:
    """However the JSON is serialised: no other bytes have its signature."""
    given = hmac.new(b"whsec", sent, hashlib.sha256).hexdigest()
    secrets = [Secret("other"), Secret("whsec")]
    for active in (secrets, secrets[::-1], secrets[1:]):
        assert signing_secret(sent, signature=given, secrets=active) == secrets[1]
    for bent in (sent + b" ", b"\n" + sent, b'{"a":1}'):
        assert signing_secret(bent, signature=given, secrets=secrets) is None
