"""Connect: codes and their states, POST /connect/request, and what a person sees of it."""

import hashlib
import hmac
import json
import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from jwcrypto.common import base64url_encode
from jwcrypto.jwk import JWK
from jwcrypto.jws import JWS

from tests.sandbox.driver import CONNECT_SCOPES, Application, Person, basic, refusal

CODE = re.compile(r"CNX-[A-Z0-9]{4}-[A-Z0-9]{4}")
NEW_CODE = "/account/connect-codes/new"
INVALID = (400, "INVALID_CONNECT_CODE")
UNUSABLE = (400, "INVALID_REQUEST")


def result_of(application: Application, person: Person, *scopes: str) -> Any:
    """The result of a redemption, which must be a success."""
    answer = application.connect(person.make_code(), scopes or CONNECT_SCOPES)
    assert answer.status_code == 200
    assert answer.json()["success"] is True
    return answer.json()["data"]


def canonical(result: dict[str, Any]) -> bytes:
    how = {"sort_keys": True, "separators": (",", ":"), "ensure_ascii": False}
    return json.dumps(result, **how).encode()


# When a code is taken


def test_code_works_once_under_parallel_requests(application, person):
    """Of twenty requests at once one gets the data."""
    code = person.make_code()
    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda _: application.connect(code), range(20)))
    assert sorted(answer.status_code for answer in answers) == [200] + [400] * 19
    assert refusal(application.connect(code)) == INVALID


def test_code_is_valid_for_ten_minutes(application, person):
    early, late = person.make_code(), person.make_code()
    application.sandbox.advance(595)
    assert application.connect(early).status_code == 200
    application.sandbox.advance(6)
    assert refusal(application.connect(late)) == INVALID
    assert person.code_states() == ["expired", "used"]


@pytest.mark.parametrize(
    "code",
    [
        "CNX-AAAA-0000",
        " CNX-AAAA-0000",
        "CNX-AAAA-0000\n",
        "CNX-ÄÄÄÄ-0000",
        "x",
        "' OR 1=1 --",
        "CNX-AAAA-\u0660\u0660\u0660\u0660",
        "A" * 100_000,
        12,
        ["CNX-AAAA-0000"],
        {},
    ],
)
def test_unknown_code_is_invalid(shop, code):
    """Whatever is sent in place of a code gets one and the same answer."""
    assert refusal(shop.connect(code)) == INVALID


@pytest.mark.parametrize("missing", [{}, {"connect_code": None}, {"connect_code": ""}])
def test_a_missing_code_is_refused_by_either_rule(application, missing):
    """The specification has two rules: a switch, and the retired request, choose the second."""
    body = missing | {"scopes": CONNECT_SCOPES}
    assert refusal(application.ask("connect/request", body)) == INVALID
    retired = application.ask("connect/request", body | {"infra_user_id": "u-1"})
    assert refusal(retired) == (400, "CONNECT_CODE_REQUIRED")
    application.sandbox.switch(missing_connect_code="required")
    answer = application.ask("connect/request", body)
    assert refusal(answer) == (400, "CONNECT_CODE_REQUIRED")


@pytest.mark.parametrize(
    ("mode", "environment", "scopes", "code"),
    [
        ("test", "test", ["profile:basic", "profile:read"], (400, "INVALID_SCOPE")),
        ("test", "live", CONNECT_SCOPES, (403, "ENVIRONMENT_MISMATCH")),
        ("live", "test", CONNECT_SCOPES, (403, "ENVIRONMENT_MISMATCH")),
    ],
)
def test_a_refusal_consumes_the_code(sandbox, mode, environment, scopes, code):
    """A scope that Connect does not have; test credentials and a real user, or the reverse."""
    person = Person(sandbox, environment=environment, verified=True)
    answer = Application(sandbox, mode).connect(person.make_code(), scopes)
    assert refusal(answer) == code
    assert "kyc_required" not in answer.json()
    assert person.code_states() == ["used"]
    assert person.shown()["consents"] == {}


def test_unusable_request_leaves_the_code_valid(application, person):
    """It is no object, has another label or a wrong member. A callback address is accepted."""
    form = b"connect_code=CNX-AAAA-0000"
    for content in (b"", b"[]", b"{", b"\xff", b"[" * 100_000, form):
        assert refusal(application.ask("connect/request", content)) == UNUSABLE
    body = {"connect_code": person.make_code(), "scopes": CONNECT_SCOPES}
    for member, value in (
        ("scopes", None),
        ("scopes", "profile:basic kyc:status"),
        ("scopes", []),
        ("scopes", ["profile:basic", 1]),
        ("callback_url", 1),
        ("callback_url", "no address"),
        ("callback_url", "javascript:alert(1)"),
        ("callback_url", "http://[broken"),
    ):
        changed = body | {member: value}
        assert refusal(application.ask("connect/request", changed)) == UNUSABLE, value
    for label in ("text/plain", "application/x-www-form-urlencoded", ""):
        labelled = {"Content-Type": label}
        answer = application.ask("connect/request", body, headers=labelled)
        assert refusal(answer) == UNUSABLE
    assert person.code_states() == ["valid"]
    more = {"callback_url": "https://shop.example/?x"}

    assert application.ask("connect/request", body | more).status_code == 200


def test_wrong_credentials_leave_the_code_valid(application, person):
    body = {"connect_code": person.make_code(), "scopes": CONNECT_SCOPES}
    client_id, secret = application.client_id, application.client_secret
    wrong = [basic(client_id, secret, "Bearer"), basic(client_id, secret[:-1]), {}]
    for text in ("Basic", "Basic !!!", "Basic /w==", "Basic eA=="):
        wrong.append({"Authorization": text})
    post = application.sandbox.client.post
    for headers in wrong:
        answer = post("/api/v1/connect/request", json=body, headers=headers)
        assert refusal(answer) == (401, "UNAUTHORIZED")
        challenge = answer.headers["WWW-Authenticate"]
        assert challenge == 'Basic realm="clients", charset="UTF-8"'
    good = basic(client_id, secret, "basic")
    assert post("/api/v1/connect/request", json=body, headers=good).status_code == 200


# What a redemption brings


def test_redemption_has_every_specified_field(application, person):
    """A good code gives the profile and the KYC status at once, signed with the secret.

    Another code gives the same user id, today's information, and what was asked for alone.
    """
    result = result_of(application, person)
    members = {"status", "request_id", "user_id", "data", "issued_at", "signature"}
    assert result.keys() == members
    assert result["status"] == "approved"
    assert result["user_id"] == person.user_id
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", result["issued_at"])
    signature, secret = result.pop("signature"), application.client_secret.encode()
    assert signature == hmac.new(secret, canonical(result), hashlib.sha256).hexdigest()
    names = {"first_name": "Ada", "last_name": "Okafor", "country": "NG"}
    profile, kyc = result["data"]["profile"], result["data"]["kyc"]
    assert profile == {**names, "email": person.account["email"]}
    assert kyc.pop("verified_at").endswith("Z")
    expected = {"kyc_level": "level_2", "status": "verified", "provider": "Sandbox KYC"}
    assert kyc == expected
    assert set(result_of(application, person, "profile:basic")["data"]) == {"profile"}
    person.cause("verify", bvn="11111111111")
    later = result_of(application, person, *["kyc:status"] * 2)

    assert later["user_id"] == person.user_id
    assert later["request_id"] != result["request_id"]
    assert later["data"].keys() == {"kyc"}
    assert later["data"]["kyc"]["status"] == "rejected"


def test_signature_can_be_a_detached_jws(application, person):
    """A switch signs it with the published key; another makes the result flat."""
    application.sandbox.switch(connect_signature="jws", connect_nested=False)
    result = result_of(application, person)
    assert "data" not in result
    assert result["profile"]["first_name"] == "Ada"
    assert result["kyc"]["status"] == "verified"
    header, payload, signature = result.pop("signature").split(".")
    assert payload == ""
    keys = application.sandbox.client.get("/.well-known/jwks.json").json()["keys"]
    token, content = JWS(), base64url_encode(canonical(result))
    token.deserialize(f"{header}.{content}.{signature}", key=JWK(**keys[0]))
    assert token.is_valid


def test_consent_is_recorded_beside_that_of_a_sign_in(application, person):
    """A redemption adds to what the person has granted, and it can be withdrawn as one."""
    person.tokens_for(application, scope="kyc:read")
    result_of(application, person, "profile:basic")
    result_of(application, person)
    granted = {application.client_id: ["kyc:read", *CONNECT_SCOPES]}
    assert person.shown()["consents"] == granted
    person.cause(f"consents/{application.client_id}/revoke")
    assert person.shown()["consents"] == {}
    result_of(application, person, "kyc:status")
    assert person.shown()["consents"] == {application.client_id: ["kyc:status"]}


# What the person sees


def make_on_page(person: Person, password: str = "") -> httpx.Response:
    given = password or person.account["password"]
    return person.submit(person.open(NEW_CODE), password=given)


def code_on(page: httpx.Response) -> str:
    return CODE.search(page.text)[0]


def test_code_is_made_after_the_password(application, person):
    """It is shown to its person alone, until it ends."""
    person.sign_in(person.open(NEW_CODE))
    for password in ("wrong", " "):
        refused = make_on_page(person, password)
        assert refused.url.path == NEW_CODE
        assert "field-invalid" in refused.text
    assert person.code_states() == []
    page = make_on_page(person)
    assert code_on(page) not in str(page.url)
    other = Person(application.sandbox)
    other.sign_in()
    assert other.open(str(page.url)).status_code == 404
    application.sandbox.advance(601)
    expired = person.open(str(page.url))
    assert "This code has expired" in expired.text
    assert code_on(page) not in expired.text


def test_account_tells_who_received_what(application, person):
    """It shows each code's state, and a notice of what was shared. An e-mail says the same."""
    used, valid = person.make_code(), person.make_code()
    application.connect(used, ["kyc:status"])
    page = person.sign_in()
    for words in ("Valid", "Used", "by Example shop", "verification status"):
        assert words in page.text
    for code in (used, valid):
        assert f"CNX-••••-{code[-4:]}" in page.text
        assert code not in page.text
    [email] = person.shown()["emails"]
    assert email["to"] == [person.account["email"]]
    assert email["subject"] == "Example shop received your information"
    assert "Your verification status" in email["body"]


def test_policy_failure_then_verification_then_a_new_code(sandbox, application):
    """``kyc_url`` leads to what is missing; after that a new code works, and the old one never."""
    policy = {"kyc_level": "level_2", "proof_of_address": True}
    sandbox.control("POST", f"{application.path}/connect-policy", **policy)
    person = Person(sandbox)
    person.sign_in()
    first = code_on(make_on_page(person))
    answer = application.connect(first)
    assert refusal(answer) == (403, "KYC_LEVEL_REQUIRED")
    assert "a higher verification level is required" in person.open("/account/").text
    page = person.submit(person.open(answer.json()["kyc_url"]), bvn="22222222222")
    assert "Your identity is verified" in page.text
    answer = application.connect(code_on(make_on_page(person)))
    assert refusal(answer) == (403, "POA_REQUIRED")
    assert answer.json()["kyc_required"] is True
    page = person.submit(person.open(answer.json()["kyc_url"]), document="utility_bill")

    assert "Your proof of address is accepted" in page.text
    assert refusal(application.connect(first)) == INVALID
    assert application.connect(code_on(make_on_page(person))).status_code == 200
