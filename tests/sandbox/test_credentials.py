"""Credentials, the key set that verifies them, and documents."""

import base64
import hashlib
import json
from typing import Any

import pytest
from jwcrypto.jwe import JWE
from jwcrypto.jwk import JWK, JWKSet
from sd_jwt.verifier import SDJWTVerifier

from tests.sandbox.driver import (
    KEY,
    Application,
    Person,
    Pkce,
    callback_parameters,
    refusal,
)

ALL_CLAIMS = {"kyc_verified", "age_over_18", "country_resident", "unique_human"}
#: The members of a claim in the credential variant.
VARIANT = {"claim_type", "provider", "proof_hash", "expires_at"}
KYC, OWN = "Sandbox KYC", "Sandbox Identity"
PROVIDERS = {
    "kyc_verified": KYC,
    "age_over_18": OWN,
    "country_resident": OWN,
    "unique_human": KYC,
}


@pytest.fixture
def tokens(application: Application, person: Person) -> dict[str, str]:
    return person.tokens_for(application)


def claims_of(person: Person, tokens: dict[str, str]) -> Any:
    return person.read(tokens, "claims").json()["data"]


def verified(person: Person, tokens: dict[str, str], credential: str = "") -> Any:
    """The payload of the credential of now, or of that one, by another library."""
    keys = JWKSet.from_json(person.sandbox.client.get("/.well-known/jwks.json").text)
    credential = credential or claims_of(person, tokens)["credential"]
    verifier = SDJWTVerifier(
        credential,
        lambda _issuer, header: keys.get_key(header["kid"]),
    )
    return verifier.get_verified_payload()


def decoded(text: str) -> Any:
    return json.loads(base64.urlsafe_b64decode(text + "=="))


def header_and_payload(credential: str) -> tuple[dict[str, Any], dict[str, Any]]:
    header, payload, _signature = credential.split("~", 1)[0].split(".")
    return decoded(header), decoded(payload)


def test_credential_verifies_and_has_the_right_members(application, person, tokens):
    """The library's own verifier accepts it, and every member is the specification's."""
    content = claims_of(person, tokens)
    assert content.keys() == {"user_id", "claims", "credential", "credential_format"}
    assert content["user_id"] == person.user_id
    assert content["credential_format"] == "dc+sd-jwt"
    payload = verified(person, tokens, content["credential"])
    of_all = {
        "iss": person.sandbox.origin,
        "aud": application.client_id,
        "sub": person.user_id,
        "environment": "test",
    }
    assert payload.items() >= of_all.items()
    assert payload.keys() == {"iat", "exp"} | of_all.keys() | ALL_CLAIMS
    assert payload["exp"] - payload["iat"] == 24 * 3600
    for name in ALL_CLAIMS:
        own = {"country"} if name == "country_resident" else set()
        members = {"verified", "provider", "issued_at", "expires_at"} | own
        assert payload[name].keys() == members
        assert payload[name]["verified"] is True
        assert payload[name]["provider"] == PROVIDERS[name]

    assert payload["country_resident"]["country"] == "NG"
    assert payload["age_over_18"]["expires_at"] is None


def test_credential_has_the_specified_form(person, tokens):
    """Header, flat ``_sd``, one disclosure a claim with its digest, and a final tilde.

    Each element of the list has the fields of the basic and of the credential variant.
    """
    content = claims_of(person, tokens)
    header, payload = header_and_payload(content["credential"])
    kid = person.sandbox.control("GET", "keys")["signing"]
    assert header == {"alg": "ES256", "typ": "dc+sd-jwt", "kid": kid}
    _token, *disclosures, end = content["credential"].split("~")
    assert end == ""
    digests = [hashlib.sha256(each.encode()).digest() for each in disclosures]
    listed = {base64.urlsafe_b64encode(each).decode().rstrip("=") for each in digests}
    assert listed == set(payload["_sd"])
    assert {name for _salt, name, _value in map(decoded, disclosures)} == ALL_CLAIMS
    assert not ALL_CLAIMS & set(payload)
    claims = {claim["claim_type"]: claim for claim in content["claims"]}
    assert {name: claim["provider"] for name, claim in claims.items()} == PROVIDERS
    for claim in claims.values():
        assert claim.keys() == VARIANT | {"revoked"}
        assert claim["revoked"] is False
        assert len(claim["proof_hash"]) == 64

    assert claims["unique_human"]["expires_at"] is None
    assert claims["kyc_verified"]["expires_at"].endswith("Z")


def test_a_switch_makes_claim_values_bare(person, tokens):
    """Only ``kyc_verified`` is an object then, and ``iat`` can be left out; a claim can say no.

    Revocation shows in the list at once and leaves the credential; so does its own expiry.
    """
    person.cause("claims/age_over_18", value=False)
    assert verified(person, tokens)["age_over_18"]["verified"] is False
    person.cause("claims/age_over_18", value=True)
    person.sandbox.switch(claim_values="bare", claims_iat=False)
    payload = verified(person, tokens)
    assert payload["age_over_18"] is True
    assert payload["unique_human"] is True
    assert payload["country_resident"] == "NG"
    assert payload["kyc_verified"]["verified"] is True
    assert "iat" not in payload
    person.cause("claims/age_over_18/revoke")
    person.cause("claims/country_resident", expires_at="2001-01-01T00:00:00Z")
    content = claims_of(person, tokens)
    revoked = {claim["claim_type"]: claim["revoked"] for claim in content["claims"]}
    assert revoked == dict.fromkeys(ALL_CLAIMS, False) | {"age_over_18": True}
    disclosed = verified(person, tokens, content["credential"]).keys() & ALL_CLAIMS

    assert disclosed == {"kyc_verified", "unique_human"}


def test_minor_gets_no_age_claim(sandbox, application):
    """``age_over_18`` is issued to adults only; ``_sd`` is a list for who has no claim at all."""
    minor = Person(sandbox, date_of_birth="2020-06-01", verified=True)
    listed = claims_of(minor, minor.tokens_for(application))["claims"]
    assert {claim["claim_type"] for claim in listed} == ALL_CLAIMS - {"age_over_18"}
    nobody = Person(sandbox)
    content = claims_of(nobody, nobody.tokens_for(application))
    assert header_and_payload(content["credential"])[1]["_sd"] == []


def test_rotated_key_stays_published_for_a_day(application, person, tokens):
    """The newest key signs; an old one verifies for a day of the clock; no private part is shown.

    What is withdrawn leaves at once, and another key signs.
    """
    old, sandbox = claims_of(person, tokens)["credential"], person.sandbox
    rotated = sandbox.control("POST", "keys/rotate")["signing"]
    old_kid = header_and_payload(old)[0]["kid"]
    new = claims_of(person, tokens)["credential"]
    assert header_and_payload(new)[0]["kid"] == rotated != old_kid
    assert verified(person, tokens, old)
    ends = verified(person, tokens)["exp"]
    sandbox.advance(24 * 3600)
    tokens = person.tokens_for(application)
    assert 0 <= verified(person, tokens)["exp"] - ends - 24 * 3600 < 60
    assert old_kid in sandbox.control("GET", "keys")["published"]
    sandbox.advance(2 * 3600)
    assert old_kid not in sandbox.control("GET", "keys")["published"]
    sandbox.control("POST", "keys/withdraw", kid=rotated)
    response = sandbox.client.get("/.well-known/jwks.json")
    assert response.headers["Cache-Control"] == "public, max-age=300"
    for key in response.json()["keys"]:
        assert set(key) == {"kty", "crv", "x", "y", "kid", "use", "alg"}
        assert key["kid"] != rotated

    assert verified(person, person.tokens_for(application))


def verdict(application: Application, credential: str) -> Any:
    data = application.ask("claims/verify", {"credential": credential}).json()["data"]
    assert set(data) == {"valid", "reason", "claims"}
    assert data["valid"] is (data["reason"] is None)
    assert data["valid"] or not data["claims"]
    return data


@pytest.fixture
def credential(person: Person, tokens: dict[str, str]) -> str:
    return str(claims_of(person, tokens)["credential"])


def test_a_bad_credential_is_answered_with_its_reason(application, credential):
    """POST /claims/verify answers that it is not valid, and the first reason."""
    head, rest = credential.split(".", 1)
    token, *disclosures = credential.split("~")[:-1]
    added = base64.urlsafe_b64encode(b'["salt","age_over_18",true]').decode()
    for what, text, reason in (
        ("no text", "", "malformed"),
        ("no token", "a.b.c~", "malformed"),
        ("no tilde", credential[:-1], "malformed"),
        ("a key binding", credential + token, "malformed"),
        (
            "another signature",
            "~".join((f"{token[:-6]}AAAAAA", *disclosures, "")),
            "signature",
        ),
        ("another header", f"e30.{rest}", "malformed"),
        ("another payload", f"{head}.e30.{rest.split('.', 1)[1]}", "malformed"),
        ("an unlisted disclosure", f"{credential}{added.rstrip('=')}~", "disclosure"),
        ("a broken disclosure", f"{credential}!~", "malformed"),
        ("the same twice", f"{credential}{disclosures[0]}~", "malformed"),
        ("a letter that is none", credential.replace(".", ".ü", 1), "malformed"),
        ("huge", "a" * 200_000, "malformed"),
    ):
        assert verdict(application, text)["reason"] == reason, what
    for body in ({}, b"{", {"credential": ["x"]}):
        refused = application.ask("claims/verify", body)
        assert refusal(refused) == (400, "INVALID_REQUEST")
    # Applications alone may ask.
    stranger = application.ask("claims/verify", {}, auth=("x", "wrong"))

    assert refusal(stranger) == (401, "UNAUTHORIZED")


def test_a_credential_is_valid_for_its_own_application_alone(application, credential):
    """Another application, and the other environment, are told why it is not theirs."""
    assert verdict(application, credential)["claims"].keys() == ALL_CLAIMS
    assert verdict(Application(application.sandbox), credential)["reason"] == "audience"
    application.use("live")
    assert verdict(application, credential)["reason"] == "environment"


def test_revocation_time_and_a_withdrawn_key_end_a_credential(
    application,
    person,
    credential,
):
    """A revoked claim is known before the credential runs out; a withdrawn key signs nothing."""
    sandbox = application.sandbox
    person.cause("claims/age_over_18/revoke")
    assert verdict(application, credential)["reason"] == "revoked"
    sandbox.advance(24 * 3600)
    assert verdict(application, credential)["reason"] == "expired"
    kid = sandbox.control("POST", "keys/rotate")["published"][1]
    sandbox.control("POST", "keys/withdraw", kid=kid)
    assert verdict(application, credential)["reason"] == "signature"


RSA = JWK.generate(kty="RSA", size=2048, kid="d-2", alg="RSA-OAEP-256", use="enc")
DIRECT = JWK.generate(kty="EC", crv="P-256", kid="d-3", alg="ECDH-ES", use="enc")
BOTH = "profile:read documents:metadata documents:read"
TYPES = ["passport", "national_id", "bank_verification_number"]
WAYS = {"documents:read": "documents", "documents:metadata": "documents/metadata"}


@pytest.mark.parametrize(
    ("account", "types"),
    [
        ({}, []),
        ({"verified": True}, TYPES),
        ({"verified": True, "proof_of_address": True}, [*TYPES, "proof_of_address"]),
    ],
)
def test_metadata_has_no_content(application, account, types):
    """The standard tier: type, country and status, of a person who is verified."""
    person = Person(application.sandbox, **account)
    tokens = person.tokens_for(application, scope="profile:read documents:metadata")
    data = person.read(tokens, "documents/metadata").json()["data"]
    assert data["user_id"] == person.user_id
    assert [each["document_type"] for each in data["documents"]] == types
    for each in data["documents"]:
        assert each.keys() == {"document_id", "document_type", "country", "status"}
        assert each["country"] == "NG"
        assert each["status"] == "verified"


@pytest.mark.parametrize(
    "key",
    [KEY, RSA, DIRECT],
    ids=["ECDH, wrapped", "RSA", "ECDH"],
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
        assert header["kid"] == key["kid"]
        assert header["alg"] == key["alg"]
        opened[each["document_type"]] = (each["content_type"], sealed.payload)
    assert opened["passport"][0] == "image/png"
    assert opened["passport"][1].startswith(b"\x89PNG\r\n\x1a\n")
    national = json.loads(opened["national_id"][1])
    bank = json.loads(opened["bank_verification_number"][1])

    assert national["national_id_number"] == bank["bank_verification_number"]
    assert len(bank["bank_verification_number"]) == 11
    assert national["first_name"] == "Ada"
    assert national["last_name"] == "Okafor"


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
    assert ended["trusted"] is False
    assert ended["document_key"] is None
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
