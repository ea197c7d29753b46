"""POST /connect/request: what a redemption answers, and what it leaves behind."""

import hashlib
import hmac
import json
import re
from typing import Any

import pytest
from jwcrypto.common import base64url_encode
from jwcrypto.jwk import JWK
from jwcrypto.jws import JWS

from tests.sandbox.connect_driver import (
    make_code,
    redeem,
)
from tests.sandbox.driver import Application, Person, Sandbox


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


def canonical(result: dict[str, Any]) -> bytes:
    return json.dumps(result, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
