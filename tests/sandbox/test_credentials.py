"""The credential of the claims response, and the key set that verifies it."""

import base64
import json
from typing import Any

import pytest
from jwcrypto.jwk import JWK, JWKSet
from sd_jwt.verifier import SDJWTVerifier

from tests.sandbox.driver import Application, Person, Sandbox, bearer

ALL_CLAIMS = {"kyc_verified", "age_over_18", "country_resident", "unique_human"}


def claims_of(sandbox: Sandbox, tokens: dict[str, str]) -> dict[str, Any]:
    answer = sandbox.client.get("/api/v1/users/me/claims", headers=bearer(tokens))
    assert answer.status_code == 200, answer.text
    content: dict[str, Any] = answer.json()["data"]
    return content


def verified_payload(sandbox: Sandbox, credential: str) -> dict[str, Any]:
    keys = JWKSet.from_json(sandbox.client.get("/.well-known/jwks.json").text)

    def key_of(_issuer: str, header: dict[str, str]) -> JWK:
        return keys.get_key(header["kid"])

    payload: dict[str, Any] = SDJWTVerifier(credential, key_of).get_verified_payload()
    return payload


def header_and_payload(credential: str) -> tuple[dict[str, Any], dict[str, Any]]:
    header, payload, _signature = credential.split("~", 1)[0].split(".")
    decoded = [json.loads(base64.urlsafe_b64decode(part + "==")) for part in (header, payload)]
    return decoded[0], decoded[1]


@pytest.fixture
def tokens(application: Application, person: Person) -> dict[str, str]:
    return person.tokens_for(application)


def test_credential_verifies_and_has_the_right_members(
    sandbox: Sandbox, application: Application, person: Person, tokens: dict[str, str]
) -> None:
    """The library's own verifier accepts it, and every member is the specification's."""
    content = claims_of(sandbox, tokens)
    payload = verified_payload(sandbox, content["credential"])
    assert content["user_id"] == payload["sub"] == person.user_id
    assert content["credential_format"] == "dc+sd-jwt"
    assert payload["iss"] == sandbox.origin
    assert payload["aud"] == application.client_id
    assert payload["environment"] == "test"
    assert payload["exp"] - payload["iat"] == 24 * 3600
    for name in ALL_CLAIMS:
        own = {"country"} if name == "country_resident" else set()
        assert set(payload[name]) == {"verified", "provider", "issued_at", "expires_at"} | own
        assert payload[name]["verified"] is True
    assert payload["country_resident"]["country"] == "NG"
    assert payload["age_over_18"]["expires_at"] is None


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (False, {"verified": False}),
        ("maybe", {"verified": True, "value": "maybe"}),
        ({"a": 1}, {"a": 1}),
    ],
)
def test_a_value_that_was_set_takes_the_form_too(
    sandbox: Sandbox, person: Person, tokens: dict[str, str], given: object, told: dict[str, object]
) -> None:
    """Through the control API a claim can say no, or anything; an object stays as it was given."""
    sandbox.control("POST", f"users/{person.user_id}/claims/age_over_18", value=given)
    payload = verified_payload(sandbox, claims_of(sandbox, tokens)["credential"])
    assert payload["age_over_18"].items() >= told.items()


def test_values_can_be_bare(sandbox: Sandbox, tokens: dict[str, str]) -> None:
    """Only ``kyc_verified`` is an object then."""
    sandbox.control("POST", "switches", claim_values="bare")
    payload = verified_payload(sandbox, claims_of(sandbox, tokens)["credential"])
    assert payload["age_over_18"] is True
    assert payload["unique_human"] is True
    assert payload["country_resident"] == "NG"
    assert payload["kyc_verified"]["verified"] is True


def test_credential_has_the_specified_form(sandbox: Sandbox, tokens: dict[str, str]) -> None:
    """Header, flat ``_sd``, one disclosure a claim, and a final tilde."""
    credential = claims_of(sandbox, tokens)["credential"]
    header, payload = header_and_payload(credential)
    assert credential.endswith("~")
    assert (header["alg"], header["typ"]) == ("ES256", "dc+sd-jwt")
    assert header["kid"] == sandbox.control("GET", "keys")["signing"]
    assert len(payload["_sd"]) == len(credential.split("~")[1:-1]) == 4
    assert not ALL_CLAIMS & set(payload)


def test_claims_list_carries_both_variants(sandbox: Sandbox, tokens: dict[str, str]) -> None:
    """Each element has the fields of the basic and of the credential variant."""
    listed = claims_of(sandbox, tokens)["claims"]
    assert {claim["claim_type"] for claim in listed} == ALL_CLAIMS
    for claim in listed:
        assert set(claim) == {"claim_type", "provider", "revoked", "proof_hash", "expires_at"}
        assert claim["revoked"] is False


def test_revoked_claim_is_listed_and_not_disclosed(
    sandbox: Sandbox, person: Person, tokens: dict[str, str]
) -> None:
    """Revocation shows in the list at once and leaves the credential."""
    sandbox.control("POST", f"users/{person.user_id}/claims/age_over_18/revoke")
    content = claims_of(sandbox, tokens)
    revoked = {claim["claim_type"]: claim["revoked"] for claim in content["claims"]}
    assert revoked["age_over_18"] is True
    assert revoked["kyc_verified"] is False
    assert "age_over_18" not in verified_payload(sandbox, content["credential"])


def test_expired_claim_is_not_disclosed(
    sandbox: Sandbox, person: Person, tokens: dict[str, str]
) -> None:
    """A claim past its own expiry stays in the list and leaves the credential."""
    path = f"users/{person.user_id}/claims/country_resident"
    sandbox.control("POST", path, expires_at="2001-01-01T00:00:00Z")
    content = claims_of(sandbox, tokens)
    assert len(content["claims"]) == 4
    assert "country_resident" not in verified_payload(sandbox, content["credential"])


def test_minor_gets_no_age_claim(sandbox: Sandbox, application: Application) -> None:
    """``age_over_18`` is issued to adults only."""
    minor = Person(sandbox, date_of_birth="2020-06-01", verified=True)
    listed = claims_of(sandbox, minor.tokens_for(application))["claims"]
    assert {claim["claim_type"] for claim in listed} == ALL_CLAIMS - {"age_over_18"}


def test_credential_without_claims_has_an_empty_list(
    sandbox: Sandbox, application: Application
) -> None:
    """``_sd`` is a list even when there is nothing to disclose."""
    tokens = Person(sandbox).tokens_for(application)
    _header, payload = header_and_payload(claims_of(sandbox, tokens)["credential"])
    assert payload["_sd"] == []


def test_iat_can_be_left_out(sandbox: Sandbox, tokens: dict[str, str]) -> None:
    """The switch decides whether ``iat`` is sent."""
    sandbox.control("POST", "switches", claims_iat=False)
    assert "iat" not in verified_payload(sandbox, claims_of(sandbox, tokens)["credential"])


def test_decoys_are_at_the_top_level_only(sandbox: Sandbox, tokens: dict[str, str]) -> None:
    """Decoys add digests and nothing to the claims."""
    sandbox.control("POST", "switches", decoys=3)
    credential = claims_of(sandbox, tokens)["credential"]
    _header, payload = header_and_payload(credential)
    assert len(payload["_sd"]) == 7
    assert "_sd" not in verified_payload(sandbox, credential)["kyc_verified"]


def test_credential_time_follows_the_clock(sandbox: Sandbox, tokens: dict[str, str]) -> None:
    """The clock moves the issue and the expiry."""
    before = verified_payload(sandbox, claims_of(sandbox, tokens)["credential"])
    sandbox.control("POST", "clock", advance=1800)
    after = verified_payload(sandbox, claims_of(sandbox, tokens)["credential"])
    assert 1800 <= after["exp"] - before["exp"] <= 1860


def test_rotated_key_stays_published_for_a_day(sandbox: Sandbox, tokens: dict[str, str]) -> None:
    """The newest key signs; an old one verifies for 24 hours and then goes."""
    old = claims_of(sandbox, tokens)["credential"]
    rotated = sandbox.control("POST", "keys/rotate")
    old_kid = header_and_payload(old)[0]["kid"]
    assert rotated["signing"] != old_kid
    assert (
        rotated["signing"] == header_and_payload(claims_of(sandbox, tokens)["credential"])[0]["kid"]
    )
    assert verified_payload(sandbox, old)
    sandbox.control("POST", "clock", advance=24 * 3600)
    assert old_kid in sandbox.control("GET", "keys")["published"]
    sandbox.control("POST", "clock", advance=2 * 3600)
    assert old_kid not in sandbox.control("GET", "keys")["published"]


def test_withdrawn_key_leaves_at_once(sandbox: Sandbox, tokens: dict[str, str]) -> None:
    """Withdrawing the key in charge puts a new one in its place."""
    withdrawn = sandbox.control("GET", "keys")["signing"]
    keys = sandbox.control("POST", "keys/withdraw", kid=withdrawn)
    assert withdrawn not in keys["published"]
    assert verified_payload(sandbox, claims_of(sandbox, tokens)["credential"])


def test_key_set_is_public_and_cacheable(sandbox: Sandbox) -> None:
    """No private member is published, and applications may cache for five minutes."""
    response = sandbox.client.get("/.well-known/jwks.json")
    assert response.headers["Cache-Control"] == "public, max-age=300"
    for key in response.json()["keys"]:
        assert set(key) == {"kty", "crv", "x", "y", "kid", "use", "alg"}
