"""GET /users/:userId/profile, /kyc and /claims; and what every endpoint refuses."""

from urllib.parse import quote

import httpx
import pytest

from tests.sandbox.driver import ALL_SCOPES, Person, refusal

SCOPES = {
    "profile": "profile:read", "kyc": "kyc:read", "claims": "claims:read",
    "documents": "documents:read", "documents/metadata": "documents:metadata",
}  # fmt: skip
BASIC = {"id", "email", "first_name", "last_name", "country", "photo_url"}


@pytest.mark.parametrize(
    ("scope", "switches", "members"),
    [
        ("profile:read", {}, BASIC),
        ("profile:read kyc:read", {}, BASIC | {"kyc_level"}),
        ("profile:read", {"profile_members": "all"}, BASIC | {"kyc_level", "risk_score"}),
        ("profile:read kyc:read", {"optional_members": False}, BASIC - {"photo_url"}),
    ],
)  # fmt: skip
def test_the_scopes_decide_what_a_profile_has(
    application, person, scope, switches, members
):
    """The specification's table of scopes; a switch for its table of fields, and one for less."""
    application.sandbox.switch(**switches)
    answer = person.read(person.tokens_for(application, scope=scope), "profile")
    body = answer.json()
    assert answer.status_code == 200
    assert body["success"] is True
    assert answer.headers["Content-Type"] == "application/json"
    shown, email = body["data"], person.account["email"]
    assert shown.keys() == members
    assert shown["id"] == person.user_id
    assert shown["email"] == email
    assert shown["country"] == "NG"
    assert (shown["first_name"], shown["last_name"]) == ("Ada", "Okafor")
    assert shown.get("kyc_level", "level_2") == "level_2"
    assert isinstance(shown.get("risk_score", 0), int)
    if photo := shown.get("photo_url"):
        assert httpx.get(photo).headers["Content-Type"] == "image/svg+xml"


def test_a_person_may_have_no_address_to_show(sandbox, application):
    """They sign in with an address, and the profile has an empty text in its place."""
    person = Person(sandbox, shows_email=False, verified=True)
    shown = person.read(person.tokens_for(application), "profile").json()["data"]
    assert (shown["first_name"], shown["email"]) == ("Ada", "")


@pytest.mark.parametrize("endpoint", SCOPES)
def test_each_endpoint_answers_its_own_scope_and_person(trusted, person, endpoint):
    """Each endpoint answers its own scope, about its own person, and refuses the others."""
    granted = person.tokens_for(trusted, scope=SCOPES[endpoint])
    assert person.read(granted, endpoint, person.user_id).status_code == 200
    assert refusal(person.read(granted, endpoint, "nobody")) == (403, "USER_MISMATCH")
    others = " ".join(set(SCOPES.values()) - {SCOPES[endpoint]})
    withheld = person.read(person.tokens_for(trusted, scope=others), endpoint)
    assert refusal(withheld) == (403, "INSUFFICIENT_SCOPE")


@pytest.mark.parametrize("endpoint", SCOPES)
def test_a_request_without_a_good_bearer_token_is_challenged(
    application, person, endpoint
):
    """No token, an unknown one, or one that is not sent as Bearer: 401 with a challenge."""
    token = person.tokens_for(application)["access_token"]
    path = f"/api/v1/users/{person.user_id}/{endpoint}"
    for header in ("", "Bearer x", "Basic x", "Bearer", token, f"Token {token}"):
        headers = {"Authorization": header} if header else {}
        refused = application.sandbox.client.get(path, headers=headers)
        assert refusal(refused) == (401, "UNAUTHORIZED"), header
        assert refused.headers["WWW-Authenticate"].startswith("Bearer")
        assert refused.json().keys() == {"success", "error"}
        assert refused.json()["error"]["message"]


def test_token_is_bound_to_its_person(application, person):
    """Somebody else, or nobody, is refused in one way, and somebody of live in another.

    ``me`` is the token's person unless a switch says otherwise; a subject can be any text.
    """
    tokens, sandbox = person.tokens_for(application), application.sandbox
    for user_id in (Person(sandbox).user_id, "nobody", f"{person.user_id}x"):
        assert refusal(person.read(tokens, "kyc", user_id)) == (403, "USER_MISMATCH")
    live = Person(sandbox, environment="live").user_id
    assert refusal(person.read(tokens, "kyc", live)) == (403, "ENVIRONMENT_MISMATCH")
    assert person.read(tokens, "profile").json()["data"]["id"] == person.user_id
    sandbox.switch(users_me=False)
    assert refusal(person.read(tokens, "profile")) == (403, "USER_MISMATCH")
    odd = Person(sandbox, subject=f"a/b ç-{application.client_id}", verified=True)
    answer = odd.read(
        odd.tokens_for(application), "profile", quote(odd.user_id, safe="")
    )
    assert answer.json()["data"]["id"] == odd.user_id


@pytest.mark.parametrize("path", ["users", "nothing", "connect/result/req_1", "a\nb"])
def test_an_unknown_endpoint_is_refused_in_json(sandbox, path):
    """Errors of the API are JSON, whatever was asked; Connect's retired address is one."""
    assert refusal(sandbox.client.get(f"/api/v1/{quote(path)}")) == (404, "NOT_FOUND")


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/oauth2/token", "POST"), ("/.well-known/jwks.json", "GET"),
        ("/api/v1/users/me/profile", "GET"), ("/api/v1/users/me/kyc", "GET"),
        ("/api/v1/users/me/claims", "GET"), ("/api/v1/users/me/documents", "GET"),
        ("/api/v1/users/me/documents/metadata", "GET"), ("/api/v1/claims/verify", "POST"),
        ("/api/v1/connect/request", "POST"), ("/api/v1/developer/test-users", "POST"),
        ("/api/v1/developer/apps/x/rotate-secret", "POST"),
    ],
)  # fmt: skip
def test_another_method_is_refused_in_json(sandbox, path, allowed):
    """405 as JSON, with the method that is allowed; never a page about CSRF."""
    for method in {"GET", "POST", "PUT", "PATCH", "DELETE"} - {allowed}:
        refused = sandbox.client.request(
            method, path, headers={"Origin": "https://shop.example"}
        )
        assert refusal(refused) == (405, "METHOD_NOT_ALLOWED")
        assert allowed in refused.headers["Allow"]


@pytest.mark.parametrize(
    "path",
    ["/api/v1/users/me/kyc", "/api/v1/users/me/documents/metadata", "/api/v1/users/nobody/kyc",
     "/.well-known/jwks.json", "/account/sign-in", "/oauth2/auth", "/", "/portal/",
     "/console/switches", "/sandbox/health"],
)  # fmt: skip
def test_head_is_answered_as_get(application, person, path):
    """The same status and headers, without a body (RFC 9110, section 9.3.2)."""
    token = person.tokens_for(application)["access_token"]
    bearer = {"Authorization": f"Bearer {token}"}
    client = application.sandbox.client
    got, head = (client.request(each, path, headers=bearer) for each in ("GET", "HEAD"))
    assert head.status_code == got.status_code
    assert head.headers["Content-Type"] == got.headers["Content-Type"]
    assert (head.content, bool(got.content)) == (b"", True)


def test_an_unverified_person_has_a_status_and_no_claims(sandbox, application):
    """They are ``unverified`` at ``level_1``, and the list of claims is empty."""
    nobody = Person(sandbox)
    tokens = nobody.tokens_for(application)
    kyc, claims = (nobody.read(tokens, each) for each in ("kyc", "claims"))
    left = {"verified_at": None, "provider": None}
    told = {"kyc_level": "level_1", "status": "unverified", **left}
    assert kyc.json()["data"] == told
    assert claims.json()["data"]["claims"] == []


def test_a_verified_person_has_a_level_a_vendor_and_a_time(application, person):
    """A verified person is ``verified`` at ``level_2`` since a moment, by a vendor.

    What is optional can be absent: in the status, in the claims, and the message of an error.
    """
    tokens = person.tokens_for(application, scope=ALL_SCOPES)
    kyc = person.read(tokens, "kyc").json()["data"]
    assert kyc.pop("verified_at").endswith("Z")
    verified = {"kyc_level": "level_2", "status": "verified"}
    assert kyc == verified | {"provider": "Sandbox KYC"}
    application.sandbox.switch(optional_members=False, kyc_user_id=True)
    kyc = person.read(tokens, "kyc").json()["data"]
    assert kyc == verified | {"user_id": person.user_id}
    listed = person.read(tokens, "claims").json()["data"]["claims"]
    assert listed[0].keys() == {"claim_type", "provider", "revoked"}
    refused = person.read(tokens, "kyc", "nobody").json()
    assert refused == {"success": False, "error": {"code": "USER_MISMATCH"}}
