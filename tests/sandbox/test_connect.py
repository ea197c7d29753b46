"""POST /connect/request: every row of the specification's Connect parts."""

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

from tests.sandbox.connect_driver import (
    BOTH_SCOPES,
    codes_of,
    connect,
    make_code,
    policy,
    redeem,
    refusal,
)
from tests.sandbox.driver import Application, Person, Sandbox

VALID_MINUTES = 10


def test_redemption_has_every_specified_field(application: Application, person: Person) -> None:
    """A good code gives the profile and the KYC status at once."""
    answer = redeem(application, make_code(person))
    assert answer.status_code == 200
    body = answer.json()
    assert body["success"] is True
    result = body["data"]
    assert set(result) == {"status", "request_id", "user_id", "data", "issued_at", "signature"}
    assert result["status"] == "approved"
    assert result["user_id"] == person.user_id
    assert result["request_id"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", result["issued_at"])
    assert result["data"]["profile"] == {
        "first_name": "Ada",
        "last_name": "Okafor",
        "email": person.account["email"],
        "country": "NG",
    }
    kyc = result["data"]["kyc"]
    assert set(kyc) == {"kyc_level", "status", "verified_at", "provider"}
    assert (kyc["kyc_level"], kyc["status"], kyc["provider"]) == (
        "level_2",
        "verified",
        "Sandbox KYC",
    )


@pytest.mark.parametrize(
    ("scopes", "shared"),
    [(["profile:basic"], {"profile"}), (["kyc:status"], {"kyc"}), (["kyc:status"] * 2, {"kyc"})],
)
def test_only_what_is_asked_for_is_shared(
    application: Application, person: Person, scopes: list[str], shared: set[str]
) -> None:
    """Each scope stands for one part of the answer."""
    answer = redeem(application, make_code(person), scopes=scopes)
    assert set(answer.json()["data"]["data"]) == shared


def test_person_without_kyc_is_told_as_such(sandbox: Sandbox, application: Application) -> None:
    """Without a policy an unverified person's code works and says *unverified*."""
    answer = redeem(application, make_code(Person(sandbox)))
    assert answer.json()["data"]["data"]["kyc"] == {
        "kyc_level": "level_1",
        "status": "unverified",
        "verified_at": None,
        "provider": None,
    }


def test_code_has_its_shape_and_is_new_each_time(person: Person) -> None:
    """Fifty codes are fifty different ones of the specified shape."""
    codes = {make_code(person) for _ in range(50)}
    assert len(codes) == 50
    assert all(re.fullmatch(r"CNX-[A-Z0-9]{4}-[A-Z0-9]{4}", code) for code in codes)


def test_code_works_once(application: Application, person: Person) -> None:
    """The second redemption fails, and so does every later one."""
    code = make_code(person)
    assert redeem(application, code).status_code == 200
    for _ in range(2):
        assert refusal(redeem(application, code)) == (400, "INVALID_CONNECT_CODE")
    assert codes_of(person) == ["used"]


def test_code_works_once_under_parallel_requests(application: Application, person: Person) -> None:
    """Of twenty requests at once one gets the data."""
    code = make_code(person)
    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda _: redeem(application, code), range(20)))
    assert sorted(answer.status_code for answer in answers) == [200] + [400] * 19


def test_code_is_valid_for_ten_minutes(
    sandbox: Sandbox, application: Application, person: Person
) -> None:
    """A code works just before its ten minutes are over and not after."""
    early, late = make_code(person), make_code(person)
    sandbox.control("POST", "clock", advance=VALID_MINUTES * 60 - 5)
    assert redeem(application, early).status_code == 200
    sandbox.control("POST", "clock", advance=6)
    assert refusal(redeem(application, late)) == (400, "INVALID_CONNECT_CODE")
    assert codes_of(person) == ["expired", "used"]


def test_code_of_another_application_is_spent_by_the_first(
    sandbox: Sandbox, application: Application, person: Person
) -> None:
    """A code is bound to the person and not to an application, and only one gets it."""
    code = make_code(person)
    assert redeem(application, code).status_code == 200
    assert refusal(redeem(Application(sandbox), code)) == (400, "INVALID_CONNECT_CODE")


@pytest.mark.parametrize(
    "code",
    [
        "CNX-AAAA-0000",
        " CNX-AAAA-0000",
        "CNX-AAAA-0000\n",
        "CNX-ÄÄÄÄ-0000",
        "CNX-AAAA-\u0660\u0660\u0660\u0660",
        "x",
        "' OR 1=1 --",
        "\ud800",
        "A" * 100_000,
        12,
        ["CNX-AAAA-0000"],
        {},
    ],
)
def test_unknown_code_is_invalid(application: Application, code: object) -> None:
    """Whatever is sent as a code and is none gets one and the same answer."""
    answer = connect(application, {"connect_code": code, "scopes": BOTH_SCOPES})
    assert refusal(answer) == (400, "INVALID_CONNECT_CODE")


def test_code_is_compared_exactly(application: Application, person: Person) -> None:
    """The service forgives no lower case and no missing hyphen; the code stays valid."""
    code = make_code(person)
    for spelled in (code.lower(), code.replace("-", ""), f" {code}"):
        assert refusal(redeem(application, spelled)) == (400, "INVALID_CONNECT_CODE")
    assert redeem(application, code).status_code == 200


@pytest.mark.parametrize("missing", [{}, {"connect_code": None}, {"connect_code": ""}])
def test_missing_code(sandbox: Sandbox, application: Application, missing: dict[str, Any]) -> None:
    """Both rules that the specification has for a missing code can be had."""
    body = missing | {"scopes": BOTH_SCOPES}
    assert refusal(connect(application, body)) == (400, "INVALID_CONNECT_CODE")
    retired = body | {"infra_user_id": "u-1"}
    assert refusal(connect(application, retired)) == (400, "CONNECT_CODE_REQUIRED")
    sandbox.control("POST", "switches", missing_connect_code="required")
    assert refusal(connect(application, body)) == (400, "CONNECT_CODE_REQUIRED")


def test_retired_result_address_is_gone(sandbox: Sandbox) -> None:
    """There is nothing to poll."""
    answer = sandbox.client.get("/api/v1/connect/result/req_1")
    assert refusal(answer) == (404, "NOT_FOUND")


@pytest.mark.parametrize(
    "change",
    [
        {"scopes": None},
        {"scopes": "profile:basic kyc:status"},
        {"scopes": []},
        {"scopes": ["profile:basic", 1]},
        {"callback_url": 1},
        {"callback_url": "not an address"},
        {"callback_url": "javascript:alert(1)"},
        {"callback_url": "http://[broken"},
        {"callback_url": "https://a.example/" + "x" * 2000},
    ],
)
def test_unusable_request_leaves_the_code_valid(
    application: Application, person: Person, change: dict[str, Any]
) -> None:
    """A request that cannot be read is refused before any code is looked at."""
    code = make_code(person)
    body = {"connect_code": code, "scopes": BOTH_SCOPES} | change
    assert refusal(connect(application, body)) == (400, "INVALID_REQUEST")
    assert codes_of(person) == ["valid"]


@pytest.mark.parametrize(
    "content", [b"", b"[]", b'"x"', b"{", b"\xff", b"[" * 100_000, b"connect_code=CNX-AAAA-0000"]
)
def test_body_that_is_no_object(application: Application, content: bytes) -> None:
    """Anything but a JSON object is a plain refusal."""
    answer = connect(application, content)
    assert refusal(answer) == (400, "INVALID_REQUEST")


def test_oversized_body_is_refused(application: Application) -> None:
    """A body of megabytes is refused, not read."""
    answer = connect(application, b'{"connect_code": "' + b"A" * 3_000_000 + b'"}')
    assert refusal(answer) == (400, "INVALID_REQUEST")


def test_callback_url_is_taken(application: Application, person: Person) -> None:
    """An address may be sent along; it changes nothing."""
    body = {
        "connect_code": make_code(person),
        "scopes": BOTH_SCOPES,
        "callback_url": "https://shop.example/back?x=1",
    }
    assert connect(application, body).status_code == 200


@pytest.mark.parametrize("spends", [True, False])
def test_unknown_scope(
    sandbox: Sandbox, application: Application, person: Person, spends: bool
) -> None:
    """A scope that Connect does not have is refused; the switch says what becomes of the code."""
    sandbox.control("POST", "switches", connect_refusals_spend=spends)
    answer = redeem(application, make_code(person), scopes=["profile:basic", "profile:read"])
    assert refusal(answer) == (400, "INVALID_SCOPE")
    assert codes_of(person) == ["used" if spends else "valid"]


@pytest.mark.parametrize("spends", [True, False])
@pytest.mark.parametrize(("mode", "environment"), [("test", "live"), ("live", "test")])
def test_environments_do_not_mix(
    sandbox: Sandbox, mode: str, environment: str, spends: bool
) -> None:
    """Test credentials get no real user's code and live ones no sandbox user's."""
    sandbox.control("POST", "switches", connect_refusals_spend=spends)
    person = Person(sandbox, environment=environment, verified=True)
    answer = redeem(Application(sandbox, mode), make_code(person))
    assert refusal(answer) == (403, "ENVIRONMENT_MISMATCH")
    assert "kyc_required" not in answer.json()
    assert codes_of(person) == ["used" if spends else "valid"]
    assert sandbox.control("GET", f"users/{person.user_id}")["consents"] == {}


def test_live_credentials_redeem_a_live_users_code(sandbox: Sandbox) -> None:
    """Live goes with live."""
    person = Person(sandbox, environment="live", verified=True)
    assert redeem(Application(sandbox, "live"), make_code(person)).status_code == 200


@pytest.mark.parametrize(
    ("required", "account", "code"),
    [
        ({"kyc_level": "level_2"}, {}, "KYC_LEVEL_REQUIRED"),
        ({"proof_of_address": True}, {"verified": True}, "POA_REQUIRED"),
        (
            {"kyc_level": "level_2", "proof_of_address": True},
            {"proof_of_address": True},
            "KYC_LEVEL_REQUIRED",
        ),
    ],
)
def test_policy_that_is_not_met_spends_the_code(
    sandbox: Sandbox,
    application: Application,
    required: dict[str, object],
    account: dict[str, object],
    code: str,
) -> None:
    """Each requirement has its code; the answer leads to verification, and a new code is needed."""
    person = Person(sandbox, **account)
    policy(application, **required)
    spent = make_code(person)
    answer = redeem(application, spent)
    assert refusal(answer) == (403, code)
    assert answer.json()["kyc_required"] is True
    assert answer.json()["kyc_url"] == f"{sandbox.origin}/account/verify"
    policy(application, kyc_level="level_1", proof_of_address=False)
    assert refusal(redeem(application, spent)) == (400, "INVALID_CONNECT_CODE")
    shown = sandbox.control("GET", f"users/{person.user_id}")
    assert shown["consents"] == {}
    assert sandbox.control("GET", f"users/{person.user_id}/notices") == []


def test_policy_that_is_met_lets_pass(sandbox: Sandbox, application: Application) -> None:
    """A person who has what is required is shared."""
    person = Person(sandbox, verified=True, proof_of_address=True)
    policy(application, kyc_level="level_2", proof_of_address=True)
    assert redeem(application, make_code(person)).status_code == 200


def test_policy_is_one_applications_own(
    sandbox: Sandbox, application: Application, person: Person
) -> None:
    """What one application requires is nothing to another."""
    policy(application, proof_of_address=True)
    assert redeem(Application(sandbox), make_code(person)).status_code == 200


def test_rejected_person_does_not_meet_the_level(
    sandbox: Sandbox, application: Application, person: Person
) -> None:
    """A verification that was invalidated no longer counts."""
    policy(application, kyc_level="level_2")
    sandbox.control("POST", f"users/{person.user_id}/verify", bvn="11111111111")
    assert refusal(redeem(application, make_code(person))) == (403, "KYC_LEVEL_REQUIRED")


def test_wrong_credentials_leave_the_code_valid(application: Application, person: Person) -> None:
    """Who is not known gets a challenge and touches no code."""
    code = make_code(person)
    body = {"connect_code": code, "scopes": BOTH_SCOPES}
    url = f"{application.sandbox.api}/connect/request"
    good = httpx.BasicAuth(application.client_id, application.client_secret)
    encoded = httpx.Request("POST", url)
    encoded = next(good.auth_flow(encoded))
    headers = [
        {},
        {"Authorization": "Basic"},
        {"Authorization": "Basic !!!"},
        {"Authorization": "Basic /w=="},
        {"Authorization": "Basic eA=="},
        {"Authorization": encoded.headers["Authorization"].replace("Basic", "Bearer")},
        {"Authorization": encoded.headers["Authorization"][:-8]},
    ]
    for header in headers:
        answer = httpx.post(url, json=body, headers=header)
        assert refusal(answer) == (401, "UNAUTHORIZED")
        assert answer.headers["WWW-Authenticate"] == 'Basic realm="connect", charset="UTF-8"'
    lower = {"Authorization": encoded.headers["Authorization"].replace("Basic", "basic")}
    assert httpx.post(url, json=body, headers=lower).status_code == 200


def test_other_secrets_are_refused(sandbox: Sandbox, application: Application) -> None:
    """A secret of the other environment, or of another application, is a wrong one."""
    body = {"connect_code": "CNX-AAAA-0000", "scopes": BOTH_SCOPES}
    for other in (application.registration["live"], Application(sandbox).registration["test"]):
        auth = (application.client_id, other["client_secret"])
        answer = sandbox.client.post("/api/v1/connect/request", json=body, auth=auth)
        assert refusal(answer) == (401, "UNAUTHORIZED")


@pytest.mark.parametrize("secret", ["a:b::c", "pässwörd-€-秘密", ":", " leading and trailing "])
def test_secret_can_be_any_text(sandbox: Sandbox, person: Person, secret: str) -> None:
    """Colons, spaces and UTF-8 are part of the secret (RFC 7617)."""
    application = Application(sandbox, client_secrets={"test": secret})
    assert application.client_secret == secret
    assert redeem(application, make_code(person)).status_code == 200


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_other_methods_are_refused(sandbox: Sandbox, method: str) -> None:
    """The endpoint takes POST."""
    answer = sandbox.client.request(method, "/api/v1/connect/request")
    assert refusal(answer) == (405, "METHOD_NOT_ALLOWED")
    assert answer.headers["Allow"] == "POST"


def test_person_is_recognised_on_later_visits(
    sandbox: Sandbox, application: Application, person: Person
) -> None:
    """Another code gives the same user id, another request id and today's information."""
    first = redeem(application, make_code(person)).json()["data"]
    sandbox.control("POST", f"users/{person.user_id}/verify", bvn="11111111111")
    second = redeem(application, make_code(person)).json()["data"]
    assert second["user_id"] == first["user_id"] == person.user_id
    assert second["request_id"] != first["request_id"]
    assert second["data"]["kyc"]["status"] == "rejected"


def test_consent_is_recorded_beside_that_of_a_sign_in(
    sandbox: Sandbox, application: Application, person: Person
) -> None:
    """A redemption adds to what the person has granted, and it can be withdrawn as one."""
    person.tokens_for(application, scope="kyc:read")
    redeem(application, make_code(person), scopes=["profile:basic"])
    redeem(application, make_code(person))
    path = f"users/{person.user_id}"
    granted = sandbox.control("GET", path)["consents"]
    assert granted == {application.client_id: ["kyc:read", "profile:basic", "kyc:status"]}
    sandbox.control("POST", f"{path}/consents/{application.client_id}/revoke")
    assert sandbox.control("GET", path)["consents"] == {}
    redeem(application, make_code(person), scopes=["kyc:status"])
    assert sandbox.control("GET", path)["consents"] == {application.client_id: ["kyc:status"]}


def test_person_is_told_by_e_mail(
    sandbox: Sandbox, application: Application, person: Person
) -> None:
    """One e-mail per redemption says who received what, and holds neither code nor user id."""
    sandbox.control("DELETE", "emails")
    code = make_code(person)
    for _ in range(2):
        redeem(application, code)
    (email,) = sandbox.control("GET", "emails")
    assert email["to"] == [person.account["email"]]
    assert email["subject"] == "Example shop received your information"
    for words in ("Hello Ada", "Your basic profile", "/account/"):
        assert words in email["body"]
    assert code not in str(email)
    assert person.user_id not in str(email)


def test_signature_can_be_checked_with_the_client_secret(
    application: Application, person: Person
) -> None:
    """By default it is the HMAC of the result's canonical JSON under the secret."""
    result = redeem(application, make_code(person)).json()["data"]
    signature = result.pop("signature")
    assert (
        signature
        == hmac.new(
            application.client_secret.encode(), canonical(result), hashlib.sha256
        ).hexdigest()
    )


def test_signature_can_be_a_detached_jws(
    sandbox: Sandbox, application: Application, person: Person
) -> None:
    """By a switch it is signed with the published key."""
    sandbox.control("POST", "switches", connect_signature="jws")
    result = redeem(application, make_code(person)).json()["data"]
    header, payload, signature = result.pop("signature").split(".")
    assert payload == ""
    (public,) = sandbox.client.get("/.well-known/jwks.json").json()["keys"][:1]
    key = JWK(**public)
    token = JWS()
    token.deserialize(f"{header}.{base64url_encode(canonical(result))}.{signature}", key=key)
    assert token.is_valid


def test_result_can_be_flat(sandbox: Sandbox, application: Application, person: Person) -> None:
    """By a switch ``data.profile`` is read as a member of the envelope's ``data``."""
    sandbox.control("POST", "switches", connect_nested=False)
    result = redeem(application, make_code(person)).json()["data"]
    assert "data" not in result
    assert result["profile"]["first_name"] == "Ada"
    assert result["kyc"]["status"] == "verified"


def test_message_may_be_missing(sandbox: Sandbox, application: Application) -> None:
    """By a switch Connect errors have a code and no message."""
    sandbox.control("POST", "switches", connect_messages=False)
    answer = redeem(application, "CNX-AAAA-0000")
    assert answer.json() == {"success": False, "error": {"code": "INVALID_CONNECT_CODE"}}


def test_answer_lost_after_the_code_was_spent(application: Application, person: Person) -> None:
    """A drop *after* has spent the code; a drop *before* has not."""
    sandbox, code = application.sandbox, make_code(person)
    sandbox.control("POST", "faults", kind="drop", endpoint="connect")
    with pytest.raises(httpx.RemoteProtocolError):
        redeem(application, code)
    assert codes_of(person) == ["valid"]
    sandbox.control("POST", "faults", kind="drop", endpoint="connect", when="after")
    with pytest.raises(httpx.RemoteProtocolError):
        redeem(application, code)
    assert codes_of(person) == ["used"]


def test_request_log_shows_the_request_without_its_code(
    sandbox: Sandbox, application: Application, person: Person
) -> None:
    """A code sent twice can be seen to be the same, and cannot be read."""
    code = make_code(person)
    sandbox.control("DELETE", "requests")
    for _ in range(2):
        redeem(application, code)
    log = sandbox.control("GET", "requests")
    assert [(entry["endpoint"], entry["status"]) for entry in log] == [
        ("connect", 200),
        ("connect", 400),
    ]
    digest = "sha256:" + hashlib.sha256(code.encode()).hexdigest()[:16]
    assert [entry["form"] for entry in log] == [
        {"connect_code": digest, "scopes": BOTH_SCOPES},
    ] * 2
    for secret in (code, application.client_secret):
        assert secret not in str(log)


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("connect-codes", {}, 404),
        ("connect-codes", {"user_id": "nobody"}, 404),
        ("connect-codes", {"user_id": 1}, 400),
        ("applications/{app_id}/connect-policy", {"kyc_level": "level_9"}, 400),
        ("applications/{app_id}/connect-policy", {"proof_of_address": "yes"}, 400),
        ("applications/00000000-0000-4000-8000-000000000000/connect-policy", {}, 404),
        ("users/{user_id}/proof-of-address", {"proved": 1}, 400),
        ("applications", {"redirect_uris": ["http://a/"], "client_secrets": []}, 400),
        ("applications", {"redirect_uris": ["http://a/"], "client_secrets": {"test": 1}}, 400),
        ("switches", {"connect_signature": "none"}, 400),
    ],
)
def test_unusable_control_request_is_explained(
    application: Application, person: Person, path: str, body: dict[str, Any], status: int
) -> None:
    """A control request that cannot be followed says why."""
    filled = path.format(app_id=application.registration["app_id"], user_id=person.user_id)
    answer = application.sandbox.client.post(f"/sandbox/{filled}", json=body)
    assert answer.status_code == status
    assert answer.json()["error"]["message"]


def canonical(result: dict[str, Any]) -> bytes:
    return json.dumps(result, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
