"""What goes over the wire, and each member of what comes back: the rows of interface.csv."""

import base64
import hashlib
import json
import re
from collections.abc import Callable
from contextlib import closing, suppress
from datetime import UTC, datetime
from email import message_from_string
from typing import Any
from urllib.parse import parse_qsl

import pytest
from django.test import override_settings

from django_identity import conf, exceptions
from django_identity.event_types import KINDS
from django_identity.secrets import Secret
from django_identity.service import ServiceClient, answers, refusals
from django_identity.service.authorization import authorization_url, code_verifier
from django_identity.service.http import Answer, Call
from django_identity.service.members import Members
from tests.fake_service import answer, refusal
from tests.service.servers import KeepingServer
from tests.test_conf import configured

SECRET = "a-client-secret-for-tests-alone"
BASIC = "Basic " + base64.b64encode(f"test-client:{SECRET}".encode()).decode()
AT, VERIFIED_AT = "2026-11-01T10:00:00Z", datetime(2026, 11, 1, 10, tzinfo=UTC)


def sent(service, ask):
    """The request line, the headers and the body of the one request of ``ask``."""
    # What is played has no answer for some of them.
    with suppress(exceptions.ServiceError):
        ask(ServiceClient(conf.application()))
    ((_name, _target, raw),) = service.requests
    line, _, rest = raw.decode().partition("\r\n")
    head, _, body = rest.partition("\r\n\r\n")
    return line, message_from_string(head), body


GIVEN = {"code": "c", "redirect_uri": "https://site.example/back/"}
ASKS: dict[str, Callable[[ServiceClient], object]] = {
    "exchange": lambda client: client.exchange_code(
        **GIVEN,
        code_verifier=Secret("v" * 43),
    ),
    "refresh": lambda client: client.refresh(Secret("rt")),
    "connect": lambda client: client.redeem_connect_code(
        "CNX-AB12-CD34",
        ["kyc:status"],
    ),
    "rotate": lambda client: client.rotate_secret(
        "app/1",
        mode="test",
        portal_token=Secret("pt"),
    ),
    "test user": lambda client: client.create_test_user(
        "app-1",
        portal_token=Secret("pt"),
    ),
    "verify": lambda client: client.verify_claims("a~"),
    "profile": lambda client: client.profile("s", access_token=Secret("at")),
    "kyc": lambda client: client.kyc("s", access_token=Secret("at")),
    "claims": lambda client: client.claims("s", access_token=Secret("at")),
    "level of me": lambda client: client.kyc(None, access_token=Secret("at")),
}
ENDPOINTS = {
    "exchange": "token",
    "refresh": "token",
    "connect": "request",
    "rotate": "rotate-secret",
    "test user": "test-users",
    "level of me": "kyc",
}
CREDENTIALS = {"client_id": "test-client", "client_secret": SECRET}
CODE = {"connect_code": "CNX-AB12-CD34", "scopes": ["kyc:status"]}
FORM, JSON = "application/x-www-form-urlencoded", "application/json"
TOKEN = ("/oauth2/token", FORM, None)
#: Who asks, where and how, and exactly which members are sent.
SENT: dict[str, tuple[str, str, str | None, dict[str, Any]]] = {
    # A form with the client's credentials, in the body alone.
    "exchange": (
        *TOKEN,
        {
            "grant_type": "authorization_code",
            "code_verifier": "v" * 43,
            **GIVEN,
            **CREDENTIALS,
        },
    ),
    "refresh": (
        *TOKEN,
        {"grant_type": "refresh_token", "refresh_token": "rt", **CREDENTIALS},
    ),
    "connect": ("/api/v1/connect/request", JSON, BASIC, CODE),
    "verify": ("/api/v1/claims/verify", JSON, BASIC, {"credential": "a~"}),
    "rotate": (
        "/api/v1/developer/apps/app%2F1/rotate-secret",
        JSON,
        "Bearer pt",
        {"mode": "test"},
    ),
    "test user": (
        "/api/v1/developer/test-users",
        JSON,
        "Bearer pt",
        {"appId": "app-1"},
    ),
}


@pytest.mark.parametrize("ask", SENT)
def test_each_call_is_the_specs(service, ask):
    path, kind, authorization, members = SENT[ask]
    line, headers, body = sent(service, ASKS[ask])
    assert line == f"POST {path} HTTP/1.1"
    assert headers["content-type"] == kind
    assert headers["authorization"] == authorization
    assert (dict(parse_qsl(body)) if kind == FORM else json.loads(body)) == members


@pytest.mark.parametrize("endpoint", ["profile", "kyc", "claims"])
@pytest.mark.parametrize(("subject", "segment"), [("a/b", "a%2Fb"), (None, "me")])
def test_a_user_endpoint_is_read_with_bearer(service, endpoint, subject, segment):
    """By the person's id, quoted, or ``me``; without a query, a body, or a word of one."""

    def ask(client):
        return getattr(client, endpoint)(subject, access_token=Secret("at"))

    line, headers, body = sent(service, ask)
    assert line == f"GET /api/v1/users/{segment}/{endpoint} HTTP/1.1"
    assert headers["authorization"] == "Bearer at"
    assert headers["content-length"] is None
    assert body == ""
    assert headers["accept-encoding"] == "identity"


@pytest.mark.parametrize(
    "ask",
    ["exchange", "refresh", "connect", "rotate", "test user"],
)
def test_what_is_sent_once_gets_a_connection_of_its_own(service, ask):
    """On a kept connection nobody could tell whether the service read the request."""
    with closing(KeepingServer()) as server:
        addresses = {"BASE_URL": f"{server.origin}/api/v1", "AUTH_URL": server.origin}
        with override_settings(DJANGO_IDENTITY=service.settings(**addresses)):
            for _ in range(2):
                with suppress(exceptions.ServiceError):
                    ASKS[ask](ServiceClient(conf.application()))
        assert len(set(server.callers)) == len(server.callers) == 2


PROFILE = {
    "id": "s",
    "email": "a@example.org",
    "first_name": "Ada",
    "last_name": "Öbi",
    "country": "NG",
    "kyc_level": "level_2",
    "risk_score": 12,
    "photo_url": "https://photos.example/1.png",
}
KYC = {"kyc_level": "level_2", "status": "verified", "provider": "Vendor"}
CLAIM = {
    "claim_type": "age_over_18",
    "provider": "Vendor",
    "revoked": True,
    "proof_hash": "ab12",
}
LISTED = {
    "claims": [CLAIM | {"expires_at": AT}, {"claim_type": "x"}],
    "credential": "a.b.c~",
}
#: The answer, and what is read of it.
READ: dict[str, tuple[Any, dict[str, Any], dict[str, Any]]] = {
    "token": (
        answers.TokenAnswer.parse,
        {
            "access_token": "at",
            "refresh_token": "rt",
            "expires_in": 3600,
            "scope": "a b",
            "token_type": "Bearer",
            "user_id": "s",
            "id_token": "it",
        },
        {
            "access_token": Secret("at"),
            "refresh_token": Secret("rt"),
            "expires_in": 3600,
            "scopes": ("a", "b"),
            "subject": "s",
            "id_token": Secret("it"),
        },
    ),
    # As some servers write that there is none, or no error.
    "token without another": (
        answers.TokenAnswer.parse,
        {"access_token": "at", "refresh_token": ""},
        {"access_token": Secret("at"), "refresh_token": None},
    ),
    **{
        f"revoked {odd!r}": (
            answers.ListedClaim.parse,
            Members(CLAIM | {"revoked": odd, "proof_hash": ["x"]}, "claims"),
            {"revoked": meant, "proof_hash": ""},
        )
        for odd, meant in (
            ("true", True),
            ("True", True),
            (1, True),
            ("false", False),
            (0, False),
        )
    },
    "profile": (answers.Profile.parse, PROFILE, PROFILE),
    **{
        f"country {odd}": (
            answers.Profile.parse,
            PROFILE | {"country": odd},
            PROFILE | {"country": ""},
        )
        for odd in ("Nigeria", "ng", "N1", "NGA", "\u039d\u0393")
    },
    "kyc": (
        answers.KycStatus.parse,
        KYC | {"verified_at": AT},
        KYC | {"verified_at": VERIFIED_AT},
    ),
    "kyc without a time": (
        answers.KycStatus.parse,
        KYC,
        KYC | {"verified_at": None, "subject": None},
    ),
    "claims": (
        answers.ClaimsAnswer.parse,
        {"user_id": "s", "credential_format": "dc+sd-jwt", **LISTED},
        {
            "user_id": "s",
            "credential": "a.b.c~",
            "claims": (
                answers.ListedClaim(**CLAIM, expires_at=VERIFIED_AT),
                answers.ListedClaim("x", "", False, "", None),
            ),
        },
    ),
}


@pytest.mark.parametrize(("parse", "body", "read"), READ.values(), ids=READ)
def test_every_member_of_an_answer_is_read(parse, body, read):
    """As it was sent: secrets as secrets, moments as moments; what may be absent is empty.

    A country that is not two capitals is left out.
    """
    parsed = parse(body)
    assert {name: getattr(parsed, name) for name in read} == read


@pytest.mark.parametrize("hidden", ["\n", "\x1b", "\x85", "\u200e", "\u202e", "\u2069"])
def test_a_text_has_no_control_characters(hidden):
    """And no known code comes of one that had some. A name is one line without them."""
    hiding = {"kyc_level": f"level_2{hidden}", "status": f"{hidden}verified"}
    read = answers.KycStatus.parse(hiding)
    assert read.kyc_level == "level_2\ufffd"
    assert read.status == "\ufffdverified"
    named = answers.Profile.parse({"id": "s", "first_name": f"Ada{hidden} Lovelace"})
    assert named.first_name == "Ada Lovelace"


PAIR = {"access_token": "at", "refresh_token": "rt", "expires_in": 60}


@pytest.mark.parametrize("ask", ["exchange", "refresh"])
@pytest.mark.parametrize(
    "given",
    [{"success": True, "data": PAIR}, {**PAIR, "success": True}, PAIR],
)
def test_a_token_answer_may_be_in_the_envelope(service, ask, given):
    """As every other answer is."""
    service.answers["token"] = given
    answered: Any = ASKS[ask](ServiceClient(conf.application()))
    assert answered.access_token == Secret("at")
    assert answered.expires_in == 60


@pytest.mark.parametrize("none", [None, "", {}, [], False])
def test_an_empty_error_beside_success_is_none(service, none):
    service.answers["token"] = {**PAIR, "error": none}
    client = ServiceClient(conf.application())
    assert client.refresh(Secret("rt")).access_token == Secret("at")


@pytest.mark.parametrize("verdict", [True, False])
def test_the_verdict_is_a_boolean(service, verdict):
    """The service's on a credential, which knows of revocations."""
    service.answers["verify"] = {"success": True, "data": {"valid": verdict}}
    assert ASKS["verify"](ServiceClient(conf.application())) is verdict


NO_CLAIMS = {"success": True, "data": {"user_id": "s", "claims": []}}
SPELLINGS = (str.upper, str.lower, str.title)
TOKEN_ERRORS = {
    "invalid_grant": (exceptions.InvalidGrant, "400 No"),
    "token_inactive": (exceptions.InvalidGrant, "401 No"),
    "invalid_client": (exceptions.ClientRejected, "401 No"),
    "unauthorized_client": (exceptions.ClientRejected, "400 No"),
    "environment_mismatch": (exceptions.EnvironmentMismatch, "403 No"),
}
#: Who asks, what the service answers, and the error.
REFUSED: list[tuple[str, Any, type[exceptions.ServiceError]]] = [
    # ``success`` is exactly true, and ``data`` an object with members of its types.
    *(
        ("claims", NO_CLAIMS | changed, exceptions.MalformedAnswer)
        for changed in (
            {"success": "true"},
            {"success": 1},
            {"success": None},
            {"data": []},
            {"data": None},
            {"data": {"user_id": "s", "claims": [], "credential_format": "jwt"}},
        )
    ),
    *(
        (
            "claims",
            {"success": True, "data": {"user_id": "s", "claims": claims}},
            exceptions.MalformedAnswer,
        )
        for claims in (
            {},
            ["x"],
            [{"claim_type": "x", "revoked": "no"}],
            [{"claim_type": "x", "revoked": {}}],
            [{"claim_type": "x"}] * 201,
        )
    ),
    *(
        (ask, {"success": True, "data": odd}, exceptions.MalformedAnswer)
        for ask in ("exchange", "refresh")
        for odd in ([PAIR], None, "at")
    ),
    (
        "verify",
        {"success": True, "data": {"valid": "true"}},
        exceptions.MalformedAnswer,
    ),
    ("verify", refusal("UNAUTHORIZED", "401 No"), exceptions.ClientRejected),
    # With or without a message. It is no sign that the service does not know ``me``.
    *(
        (
            "level of me",
            answer(
                {"success": False, "error": {"code": "ENVIRONMENT_MISMATCH", **more}},
                status="403 No",
            ),
            exceptions.EnvironmentMismatch,
        )
        for more in ({"message": "No."}, {})
    ),
    # Whatever its code, a 401 for a read is about its token: a refresh may help.
    *(
        (ask, refusal(code, "401 No"), exceptions.AccessTokenRejected)
        for ask in ("profile", "kyc", "claims")
        for code in ("token_inactive", "invalid_grant", "UNAUTHORIZED")
    ),
    # The portal; where it is unclear, the secret may have changed.
    *(
        (ask, given, kind)
        for ask in ("rotate", "test user")
        for given, kind in (
            (refusal("NO_TOKEN", "401 No"), exceptions.AccessTokenRejected),
            (refusal("NO_APP", "404 No"), exceptions.ServiceRefusal),
            (refusal("OOPS", "500 Oops"), exceptions.ServiceUnavailable),
            (
                answer({"success": True, "data": {"mode": "test"}}),
                exceptions.MalformedAnswer,
            ),
        )
    ),
    # The service's envelope and OAuth's form mean the same, in any case of letters.
    *(
        (ask, answer(body, status=status), kind)
        for ask in ("exchange", "refresh")
        for code, (kind, status) in TOKEN_ERRORS.items()
        for spelled in SPELLINGS
        for body in (
            {"success": False, "error": {"code": spelled(code), "message": "No."}},
            {"success": False, "error": spelled(code)},
            {"error": spelled(code), "error_description": "No."},
        )
    ),
]


@pytest.mark.parametrize(("ask", "given", "kind"), REFUSED)
def test_a_refusal_is_typed(service, ask, given, kind):
    """It has the code as the service spelled it, and may have changed something."""
    service.answers[ENDPOINTS.get(ask, ask)] = given
    with pytest.raises(exceptions.ServiceError) as raised:
        ASKS[ask](ServiceClient(conf.application()))
    assert type(raised.value) is kind
    assert raised.value.may_have_arrived
    if isinstance(raised.value, exceptions.ServiceRefusal):
        assert f'"{raised.value.service_code}"'.encode() in given
    assert len(service.requests) == 1


def test_the_authorization_address_is_of_the_configured_server(service):
    """With every parameter of the specification, and no other one; PKCE is RFC 7636's."""
    verifier = code_verifier()
    asked = {"state": "s", "redirect_uri": "https://site.example/back/"}
    scopes = ("profile:read", "kyc:read")

    url = authorization_url(
        conf.application(),
        scopes=scopes,
        verifier=verifier,
        **asked,
    )

    address, _, query = url.partition("?")
    assert address == f"{service.origin}/oauth2/auth"
    assert re.fullmatch(r"[A-Za-z0-9._~-]{43,128}", verifier.reveal())
    digest = hashlib.sha256(verifier.reveal().encode()).digest()
    assert dict(parse_qsl(query)) == {
        **asked,
        "response_type": "code",
        "client_id": "test-client",
        "scope": "profile:read kyc:read",
        "code_challenge_method": "S256",
        "code_challenge": base64.urlsafe_b64encode(digest).decode().rstrip("="),
    }


def test_the_portal_of_the_sandbox_is_understood(identity_sandbox):
    """A new secret names its client, and voids the old one. The service knows the test user."""
    asked = {"redirect_uris": ["http://testserver/back"]}
    made = identity_sandbox.control("POST", "applications", **asked)
    held = made["test"]
    site = {
        "BASE_URL": identity_sandbox.base_url,
        "AUTH_URL": identity_sandbox.auth_url,
    }
    portal = {"portal_token": Secret(identity_sandbox.portal_token)}

    def client(secret: str) -> ServiceClient:
        with configured(**site, CLIENT_ID=held["client_id"], CLIENT_SECRET=secret):
            return ServiceClient(conf.application())

    ours = client(held["client_secret"])
    user = ours.create_test_user(made["app_id"], **portal)
    rotated = ours.rotate_secret(made["app_id"], mode="test", **portal)

    assert rotated.mode == "test"
    assert rotated.client_id == held["client_id"]
    shown = identity_sandbox.control("GET", f"users/{user.user_id}")
    assert shown["email"] == user.email
    assert shown["environment"] == "test"
    with pytest.raises(exceptions.ClientRejected):
        ours.redeem_connect_code("CNX-AAAA-0000", ["kyc:status"])
    ours = client(rotated.client_secret.reveal())
    with pytest.raises(exceptions.InvalidConnectCode):
        ours.redeem_connect_code("CNX-AAAA-0000", ["kyc:status"])


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("7", 7),
        ("0", 0),
        ("99999", 3600),
        ("9" * 5000, 3600),
        ("", 0),
        ("-7", 0),
        ("1e9", 0),
        ("\u0663", 0),
        ("soon", 0),
        ("Fri, 01 Jan 2021 00:00:00 GMT", 0),
        ("Fri, 01 Jan 2100 00:00:00 GMT", 3600),
    ],
)
def test_a_pause_is_an_hour_at_most(header, seconds):
    """In seconds or as a date; anything else is no pause."""
    assert refusals.seconds_to_wait({"retry-after": header}) == seconds


def test_there_are_seven_types_of_events():
    """Each by its name in the specification."""
    assert set(KINDS) == {
        "kyc.verified",
        "kyc.rejected",
        "consent.granted",
        "consent.revoked",
        "claim.issued",
        "claim.revoked",
        "data.deletion_requested",
    }


HIDDEN = "what-nobody-may-see"
ADDRESS = "https://x.y"
TOKENS = {"access_token": "a", "expires_in": 60}
USER = {"userId": "a", "email": "b", "password": "c"}
SECRETS: dict[str, object] = {
    "access token": answers.TokenAnswer.parse(TOKENS | {"access_token": HIDDEN}),
    "refresh token": answers.TokenAnswer.parse(TOKENS | {"refresh_token": HIDDEN}),
    "subject of tokens": answers.TokenAnswer.parse(TOKENS | {"sub": HIDDEN}),
    "subject of claims": answers.ClaimsAnswer.parse({"user_id": HIDDEN, "claims": []}),
    "credential": answers.ClaimsAnswer.parse(
        {"user_id": "a", "claims": [], "credential": HIDDEN},
    ),
    "subject of a profile": answers.Profile.parse({"id": HIDDEN}),
    "e-mail address": answers.Profile.parse({"id": "a", "email": HIDDEN}),
    "address": Call("claims", f"{ADDRESS}/users/{HIDDEN}"),
    "header": Call("claims", ADDRESS, {"Authorization": HIDDEN}),
    "form": Call("token", ADDRESS, form={"refresh_token": HIDDEN}),
    "JSON of a call": Call("connect", ADDRESS, json={"connect_code": HIDDEN}),
    "header of an answer": Answer(200, {"location": HIDDEN}, b""),
    "body of an answer": Answer(200, {}, HIDDEN.encode()),
    "client secret": answers.RotatedSecret.parse(
        {"mode": "test", "clientId": "a", "clientSecret": HIDDEN},
    ),
    "address of a test user": answers.NewTestUser.parse(USER | {"email": HIDDEN}),
    "password": answers.NewTestUser.parse(USER | {"password": HIDDEN}),
}


@pytest.mark.parametrize("value", SECRETS.values(), ids=SECRETS)
def test_it_prints_no_secret(value):
    """Not in a log, a traceback or a debugger that prints what it holds."""
    assert HIDDEN not in f"{value!r} {value}"
