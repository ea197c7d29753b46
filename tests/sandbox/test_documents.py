"""Documents: who may ask, what is shared, and that only the key's owner reads it."""

import json
from typing import Any

import pytest
from jwcrypto.jwe import JWE
from jwcrypto.jwk import JWK

from tests.sandbox.driver import (
    KEY,
    Person,
    Pkce,
    callback_parameters,
    refusal,
)

RSA = JWK.generate(kty="RSA", size=2048, kid="d-2", alg="RSA-OAEP-256", use="enc")
DIRECT = JWK.generate(kty="EC", crv="P-256", kid="d-3", alg="ECDH-ES", use="enc")
BOTH = "profile:read documents:metadata documents:read"
TYPES = ["passport", "national_id", "bank_verification_number"]
WAYS = {"documents:read": "documents", "documents:metadata": "documents/metadata"}


@pytest.mark.parametrize(
    ("account", "types"),
    [({}, []), ({"verified": True}, TYPES),
     ({"verified": True, "proof_of_address": True}, [*TYPES, "proof_of_address"])],
)  # fmt: skip
def test_metadata_has_no_content(application, account, types):
    """The standard tier: type, country and status, of a person who is verified."""
    person = Person(application.sandbox, **account)
    tokens = person.tokens_for(application, scope="profile:read documents:metadata")
    data = person.read(tokens, "documents/metadata").json()["data"]
    assert data["user_id"] == person.user_id
    assert [each["document_type"] for each in data["documents"]] == types
    for each in data["documents"]:
        assert each.keys() == {"document_id", "document_type", "country", "status"}
        assert (each["country"], each["status"]) == ("NG", "verified")


@pytest.mark.parametrize(
    "key", [KEY, RSA, DIRECT], ids=["ECDH, wrapped", "RSA", "ECDH"]
)
def test_a_trusted_application_reads_documents(application, person, key):
    """Each opens with the private part of the registered key, and is what it says.

    The content encryption is a switch, and whether the key is named.
    """
    assert application.trust(key)["trusted"] is True
    answer = person.read(person.tokens_for(application, scope=BOTH), "documents")
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
    national = json.loads(opened["national_id"][1])
    bank = json.loads(opened["bank_verification_number"][1])
    assert national["national_id_number"] == bank["bank_verification_number"]
    assert len(bank["bank_verification_number"]) == 11
    assert (national["first_name"], national["last_name"]) == ("Ada", "Okafor")


def test_a_standard_application_may_not_ask(application, person):
    """The person is never asked to consent to what nothing serves; nor by the control API.

    A token from before the approval was taken back reads nothing any more.
    """
    for scope in ("documents:read", "documents:write", "openid"):
        asked = f"profile:read {scope}"
        page = person.open(application.authorization_url(Pkce(), scope=asked))
        assert callback_parameters(page)["error"] == "invalid_scope"
        path = f"/sandbox/users/{person.user_id}/consents/{application.client_id}/grant"
        granted = application.sandbox.client.post(path, json={"scopes": [scope]})
        assert refusal(granted) == (400, "INVALID_REQUEST")
    application.trust(KEY)
    person.consent_to(application, "documents:read")
    tokens = person.tokens_for(application, scope=BOTH)
    ended = application.sandbox.control("DELETE", f"{application.path}/trusted-tier")
    assert (ended["trusted"], ended["document_key"]) == (False, None)
    assert refusal(person.read(tokens, "documents")) == (403, "TRUSTED_TIER_REQUIRED")
    assert person.read(tokens, "documents/metadata").status_code == 200


@pytest.mark.parametrize("declined", [*WAYS, "profile:read"])
def test_a_declined_scope_is_not_served(trusted, person, declined):
    """The person keeps documents, and nothing else, from an application that they approve."""
    pkce = Pkce()
    page = person.consent_screen(trusted, pkce, scope=BOTH)
    answer = person.submit(page, allow="Approve", decline=declined)
    tokens = trusted.redeem(callback_parameters(answer)["code"], pkce).json()
    granted = {*BOTH.split()} - ({declined} & WAYS.keys())
    assert set(tokens["scope"].split()) == granted
    assert set(person.shown()["consents"][trusted.client_id]) == granted
    for scope, way in WAYS.items():
        is_read = person.read(tokens, way).status_code == 200
        assert is_read is (scope in granted)


PUBLIC, PUBLIC_RSA = KEY.export_public(as_dict=True), RSA.export_public(as_dict=True)
SHORT = JWK.generate(kty="RSA", size=1024, kid="1", alg="RSA-OAEP-256")
BAD_KEYS: dict[str, Any] = {
    "a text": "key",
    "a private key": KEY.export(as_dict=True),
    "no kid": {name: value for name, value in PUBLIC.items() if name != "kid"},
    "another alg": PUBLIC | {"alg": "RSA1_5"},
    "an alg of another type": PUBLIC_RSA | {"alg": "ECDH-ES"},
    "a shared secret": {"kty": "oct", "k": "AAAA", "kid": "1", "alg": "dir"},
    "a point off the curve": PUBLIC | {"x": "AAAA"},
    "short": SHORT.export_public(as_dict=True),
}


@pytest.mark.parametrize("key", BAD_KEYS.values(), ids=BAD_KEYS)
def test_an_unusable_document_key_is_refused(shop, key):
    """The message names the member, and the application stays in the standard tier."""
    given, client = {"document_key": key}, shop.sandbox.client
    response = client.post(f"/sandbox/{shop.path}/trusted-tier", json=given)
    assert refusal(response) == (400, "INVALID_REQUEST")
    assert "document_key" in response.json()["error"]["message"]
    assert client.get(f"/sandbox/{shop.path}").json()["trusted"] is False
