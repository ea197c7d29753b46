"""Documents at the sandbox: who may ask, what is shared, and that only the key's owner reads it."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from jwcrypto.jwe import JWE
from jwcrypto.jwk import JWK

from tests.sandbox.driver import (
    Application,
    Developer,
    Person,
    Pkce,
    Sandbox,
    bearer,
    callback_parameters,
)

KEY = JWK.generate(kty="EC", crv="P-256", kid="documents-1", alg="ECDH-ES+A256KW", use="enc")
RSA = JWK.generate(kty="RSA", size=2048, kid="documents-2", alg="RSA-OAEP-256", use="enc")
DIRECT = JWK.generate(kty="EC", crv="P-256", kid="documents-3", alg="ECDH-ES", use="enc")
BOTH = "profile:read documents:metadata documents:read"


def public(key: JWK) -> dict[str, Any]:
    return key.export_public(as_dict=True)


def approve(application: Application, key: JWK = KEY) -> None:
    path = f"applications/{application.registration['app_id']}/trusted-tier"
    application.sandbox.control("POST", path, document_key=public(key))


@pytest.fixture
def trusted(application: Application) -> Application:
    approve(application)
    return application


def ask(person: Person, tokens: dict[str, Any], what: str = "documents") -> httpx.Response:
    path = f"/api/v1/users/{person.user_id}/{what}"
    return person.sandbox.client.get(path, headers=bearer(tokens))


def refusal(response: httpx.Response) -> tuple[int, str]:
    return response.status_code, response.json()["error"]["code"]


def test_metadata_has_no_content(application: Application, person: Person) -> None:
    """The standard tier: type, country and status."""
    tokens = person.tokens_for(application, scope="profile:read documents:metadata")
    data = ask(person, tokens, "documents/metadata").json()["data"]
    assert data["user_id"] == person.user_id
    assert [each["document_type"] for each in data["documents"]] == [
        "passport", "national_id", "bank_verification_number",
    ]  # fmt: skip
    assert data["documents"][0] == {
        "document_id": data["documents"][0]["document_id"],
        "document_type": "passport", "country": "NG", "status": "verified",
    }  # fmt: skip


@pytest.mark.parametrize("key", [KEY, RSA, DIRECT], ids=["ECDH, wrapped", "RSA", "ECDH"])
def test_a_trusted_application_reads_documents(
    application: Application, person: Person, key: JWK
) -> None:
    """Each opens with the private part of the registered key, and is what it says."""
    approve(application, key)
    answer = ask(person, person.tokens_for(application, scope=BOTH))
    assert answer.headers["Cache-Control"] == "no-store"
    opened = {}
    for each in answer.json()["data"]["documents"]:
        sealed = JWE()
        sealed.deserialize(each["content"], key)
        header = json.loads(sealed.objects["protected"])
        assert (header["kid"], header["alg"]) == (key["kid"], key["alg"])
        opened[each["document_type"]] = (each["content_type"], sealed.payload)
    assert opened["passport"][0] == "image/png"
    assert opened["passport"][1].startswith(b"\x89PNG\r\n\x1a\n")
    assert opened["national_id"][0] == "application/pdf"
    assert opened["national_id"][1].startswith(b"%PDF-1.4")
    assert opened["national_id"][1].endswith(b"%%EOF\n")
    number = json.loads(opened["bank_verification_number"][1])["bank_verification_number"]
    assert len(number) == 11
    for _kind, content in opened.values():
        assert content not in answer.content


def test_a_person_who_is_not_verified_has_no_documents(
    sandbox: Sandbox, trusted: Application
) -> None:
    """And proof of address is one more."""
    nobody = Person(sandbox)
    tokens = nobody.tokens_for(trusted, scope=BOTH)
    assert ask(nobody, tokens).json()["data"]["documents"] == []
    resident = Person(sandbox, verified=True, proof_of_address=True)
    tokens = resident.tokens_for(trusted, scope=BOTH)
    listed = ask(resident, tokens).json()["data"]["documents"]
    assert listed[-1]["document_type"] == "proof_of_address"


def test_a_standard_application_may_not_ask(application: Application, person: Person) -> None:
    """The person is never asked to consent to what nothing serves."""
    for scope in ("documents:read", "documents:write", "openid"):
        page = person.open(application.authorization_url(Pkce(), scope=f"profile:read {scope}"))
        assert callback_parameters(page)["error"] == "invalid_scope"


def test_nothing_grants_what_is_not_served(application: Application, person: Person) -> None:
    """The control API's way past the screen has the same rule."""
    path = f"users/{person.user_id}/consents/{application.client_id}/grant"
    for scope in ("documents:read", "made:up"):
        response = application.sandbox.client.post(f"/sandbox/{path}", json={"scopes": [scope]})
        assert refusal(response) == (400, "INVALID_REQUEST")
    approve(application)
    assert application.sandbox.control("POST", path, scopes=["documents:read"])


def test_the_approval_can_be_taken_back(trusted: Application, person: Person) -> None:
    """A token from before it reads nothing any more."""
    tokens = person.tokens_for(trusted, scope=BOTH)
    path = f"applications/{trusted.registration['app_id']}/trusted-tier"
    ended = trusted.sandbox.control("DELETE", path)
    assert ended == {"trusted": False, "document_key": None}
    assert refusal(ask(person, tokens)) == (403, "TRUSTED_TIER_REQUIRED")
    assert ask(person, tokens, "documents/metadata").status_code == 200


@pytest.mark.parametrize("declined", ["documents:read", "documents:metadata"])
def test_a_declined_scope_is_not_served(
    trusted: Application, person: Person, declined: str
) -> None:
    """The person approves the rest; the token names what it was granted."""
    pkce = Pkce()
    page = person.sign_in(person.open(trusted.authorization_url(pkce, scope=BOTH)))
    assert page.text.count("Do not share this") == 2
    answer = person.submit(page, allow="Approve", decline=declined)
    tokens = trusted.redeem(callback_parameters(answer)["code"], pkce).json()
    assert set(tokens["scope"].split()) == {*BOTH.split()} - {declined}
    ways = {"documents:read": "documents", "documents:metadata": "documents/metadata"}
    for scope, way in ways.items():
        expected = 403 if scope == declined else 200
        assert ask(person, tokens, way).status_code == expected
    shown = trusted.sandbox.control("GET", f"users/{person.user_id}")["consents"]
    assert declined not in shown[trusted.client_id]


def test_to_decline_all_is_to_deny(trusted: Application, person: Person) -> None:
    """Nothing would be left to share."""
    page = person.sign_in(person.open(trusted.authorization_url(Pkce(), scope="documents:read")))
    answer = person.submit(page, allow="Approve", decline="documents:read")
    assert callback_parameters(answer)["error"] == "access_denied"


def test_only_what_may_be_declined_is(trusted: Application, person: Person) -> None:
    """A form that declines the profile changes nothing."""
    pkce = Pkce()
    page = person.sign_in(person.open(trusted.authorization_url(pkce, scope=BOTH)))
    answer = person.submit(page, allow="Approve", decline="profile:read")
    tokens = trusted.redeem(callback_parameters(answer)["code"], pkce).json()
    assert "profile:read" in tokens["scope"].split()


@pytest.mark.parametrize("what", ["documents", "documents/metadata"])
def test_the_endpoints_have_the_guards_of_the_others(
    trusted: Application, person: Person, what: str
) -> None:
    """A token, its scope, its own person, and GET alone."""
    path = f"/api/v1/users/{person.user_id}/{what}"
    assert trusted.sandbox.client.get(path).status_code == 401
    assert refusal(trusted.sandbox.client.post(path)) == (405, "METHOD_NOT_ALLOWED")
    tokens = person.tokens_for(trusted, scope="profile:read")
    assert refusal(ask(person, tokens, what)) == (403, "INSUFFICIENT_SCOPE")
    tokens = person.tokens_for(trusted, scope=BOTH)
    other = trusted.sandbox.client.get(f"/api/v1/users/other/{what}", headers=bearer(tokens))
    assert refusal(other) == (403, "USER_MISMATCH")


BAD_KEYS: dict[str, Any] = {
    "nothing": None,
    "a text": "key",
    "a private key": KEY.export(as_dict=True),
    "no kid": {name: value for name, value in public(KEY).items() if name != "kid"},
    "no alg": {name: value for name, value in public(KEY).items() if name != "alg"},
    "another alg": public(KEY) | {"alg": "RSA1_5"},
    "an alg of another type": public(RSA) | {"alg": "ECDH-ES"},
    "a shared secret": {"kty": "oct", "k": "AAAA", "kid": "1", "alg": "dir"},
    "a point off the curve": public(KEY) | {"x": "AAAA"},
    "short": public(JWK.generate(kty="RSA", size=1024, kid="1", alg="RSA-OAEP-256")),
}


@pytest.mark.parametrize("key", BAD_KEYS.values(), ids=BAD_KEYS)
def test_a_key_that_does_not_do_is_refused(application: Application, key: Any) -> None:
    """In words, and the application stays in the standard tier."""
    path = f"/sandbox/applications/{application.registration['app_id']}/trusted-tier"
    response = application.sandbox.client.post(path, json={"document_key": key})
    assert refusal(response) == (400, "INVALID_REQUEST")
    assert application.sandbox.client.get(path).json()["trusted"] is False


def test_the_portal_approves(sandbox: Sandbox, application: Application) -> None:
    """With the public key; what is no key is refused beside the field, and empty takes it back."""
    developer = Developer(sandbox)
    developer.sign_in()
    address = f"/portal/applications/{application.registration['app_id']}"
    tier = f"{address}/trusted-tier"
    page = developer.submit(developer.open(address), tier, document_key="{")
    assert "This is not JSON." in page.text
    page = developer.submit(page, tier, document_key=json.dumps(KEY.export(as_dict=True)))
    assert "This is your private key." in page.text
    page = developer.submit(page, tier, document_key=json.dumps(public(KEY)))
    assert "The application is in the trusted tier." in page.text
    page = developer.submit(page, tier, document_key="")
    assert "The application is in the standard tier." in page.text
