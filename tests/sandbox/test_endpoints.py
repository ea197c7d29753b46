"""Endpoints of users and of developers, and what every endpoint refuses."""

from urllib.parse import quote

import httpx
import pytest

from tests.sandbox.driver import ALL_SCOPES, TLS, Person, Sandbox, refusal

SCOPES = {
    "profile": "profile:read",
    "kyc": "kyc:read",
    "claims": "claims:read",
    "documents": "documents:read",
    "documents/metadata": "documents:metadata",
}
NOBODY = "00000000-0000-0000-0000-000000000000"
BASIC = {"id", "email", "first_name", "last_name", "country", "photo_url"}


@pytest.mark.parametrize(
    ("scope", "switches", "members"),
    [
        ("profile:read", {}, BASIC),
        ("profile:read kyc:read", {}, BASIC | {"kyc_level"}),
        (
            "profile:read",
            {"profile_members": "all"},
            BASIC | {"kyc_level", "risk_score"},
        ),
        ("profile:read kyc:read", {"optional_members": False}, BASIC - {"photo_url"}),
    ],
)
def test_the_scopes_decide_what_a_profile_has(
    application,
    person,
    scope,
    switches,
    members,
):
    """The specification's table of scopes; a switch for its table of fields, and one for less."""
    application.sandbox.switch(**switches)
    answer = person.read(person.tokens_for(application, scope=scope), "profile")
    assert answer.status_code == 200
    assert answer.json()["success"] is True
    shown = answer.json()["data"]
    assert shown.keys() == members
    of_all = {
        "id": person.user_id,
        "email": person.account["email"],
        "country": "NG",
        "first_name": "Ada",
        "last_name": "Okafor",
    }
    assert shown.items() >= of_all.items()
    assert shown.get("kyc_level", "level_2") == "level_2"
    assert isinstance(shown.get("risk_score", 0), int)
    if photo := shown.get("photo_url"):
        image = httpx.get(photo, verify=TLS)
        assert image.headers["Content-Type"] == "image/svg+xml"


@pytest.mark.parametrize("endpoint", SCOPES)
def test_each_endpoint_answers_its_own_scope_and_person(trusted, person, endpoint):
    granted = person.tokens_for(trusted, scope=SCOPES[endpoint])
    assert person.read(granted, endpoint, person.user_id).status_code == 200
    assert refusal(person.read(granted, endpoint, "nobody")) == (403, "USER_MISMATCH")
    others = " ".join(set(SCOPES.values()) - {SCOPES[endpoint]})
    withheld = person.read(person.tokens_for(trusted, scope=others), endpoint)
    assert refusal(withheld) == (403, "INSUFFICIENT_SCOPE")


@pytest.mark.parametrize("endpoint", SCOPES)
def test_a_request_without_a_good_bearer_token_is_challenged(shop, resident, endpoint):
    """No token, an unknown one, or one that is not sent as Bearer: 401 with a challenge."""
    token = resident.tokens_for(shop)["access_token"]
    path = f"/api/v1/users/{resident.user_id}/{endpoint}"
    for header in ("", "Bearer x", "Basic x", "Bearer", token, f"Token {token}"):
        headers = {"Authorization": header} if header else {}
        refused = shop.sandbox.client.get(path, headers=headers)
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
        odd.tokens_for(application),
        "profile",
        quote(odd.user_id, safe=""),
    )
    assert answer.json()["data"]["id"] == odd.user_id


@pytest.mark.parametrize("path", ["users", "nothing", "connect/result/req_1", "a\nb"])
def test_an_unknown_endpoint_is_refused_in_json(shop, path):
    """Errors of the API are JSON, whatever was asked; Connect's retired address is one."""
    answer = shop.sandbox.client.get(f"/api/v1/{quote(path)}")
    assert refusal(answer) == (404, "NOT_FOUND")


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/oauth2/token", "POST"),
        ("/.well-known/jwks.json", "GET"),
        ("/api/v1/users/me/kyc", "GET"),
        ("/api/v1/users/me/documents", "GET"),
        ("/api/v1/claims/verify", "POST"),
        ("/api/v1/connect/request", "POST"),
        ("/api/v1/developer/test-users", "POST"),
        ("/api/v1/developer/apps/x/rotate-secret", "POST"),
    ],
)
def test_another_method_is_refused_in_json(shop, path, allowed):
    """405 as JSON, with the method that is allowed; never a page about CSRF."""
    foreign = {"Origin": "https://shop.example"}
    for method in {"GET", "POST", "PUT", "PATCH", "DELETE"} - {allowed}:
        refused = shop.sandbox.client.request(method, path, headers=foreign)
        assert refusal(refused) == (405, "METHOD_NOT_ALLOWED")
        assert allowed in refused.headers["Allow"]


def test_an_unverified_person_has_a_status_and_no_claims(sandbox, application):
    nobody = Person(sandbox)
    tokens = nobody.tokens_for(application)
    kyc, claims = (nobody.read(tokens, each).json() for each in ("kyc", "claims"))
    left = {"verified_at": None, "provider": None}
    assert kyc["data"] == {"kyc_level": "level_1", "status": "unverified", **left}
    assert claims["data"]["claims"] == []


def test_a_verified_person_has_a_level_a_vendor_and_a_time(application, person):
    """What is optional can be absent: in the status, in the claims, and an error's message."""
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


# What a developer asks


def ask(sandbox: Sandbox, path: str, body: object, token: str = "") -> httpx.Response:
    """Send a request as the developer, or with another token."""
    headers = {"Authorization": f"Bearer {token or sandbox.portal_token}"}
    return sandbox.client.post(f"/api/v1/developer/{path}", json=body, headers=headers)


@pytest.mark.parametrize("mode", ["test", "live"])
def test_rotated_secret_replaces_the_old_one(sandbox, application, mode):
    """The answer holds the new secret of that mode, and the old one is void. No mode, no secret."""
    person = Person(sandbox, environment=mode, verified=True)
    application.use(mode)
    code, pkce = person.approve(application)
    path = f"apps/{application.app_id}/rotate-secret"
    answer = ask(sandbox, path, {"mode": mode})
    issued = answer.json()["data"]
    assert answer.status_code == 200
    assert answer.json()["success"] is True
    assert set(issued) == {"mode", "clientId", "clientSecret"}
    assert issued["mode"] == mode
    assert issued["clientId"] == application.client_id
    assert application.redeem(code, pkce).status_code == 401
    application.client_secret = issued["clientSecret"]
    assert application.redeem(code, pkce).status_code == 200
    application.use("live" if mode == "test" else "test")

    # The other mode keeps its secret.
    assert application.refresh("x").status_code == 400


def test_test_user_can_sign_in(sandbox, application):
    answer = ask(sandbox, "test-users", {"appId": application.app_id})
    made = answer.json()["data"]
    assert answer.status_code == 201
    assert set(made) == {"userId", "email", "password"}
    person = Person(sandbox, {**made, "user_id": made["userId"]})
    assert made["email"] in person.sign_in().text
    shown = person.shown()
    assert shown["environment"] == "test"
    assert shown["kyc_status"] == "unverified"


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("apps/{app}/rotate-secret", {"mode": ["test"]}, 400),
        ("apps/{app}/rotate-secret", {"mode": "both"}, 400),
        ("apps/{app}/rotate-secret", {}, 400),
        (f"apps/{NOBODY}/rotate-secret", {"mode": "test"}, 404),
        ("apps/x/rotate-secret", {"mode": "test"}, 404),
        ("test-users", {}, 400),
        ("test-users", {"appId": 1}, 400),
        ("test-users", {"appId": NOBODY}, 404),
    ],
)
def test_an_unusable_request_is_refused_in_the_envelope(shop, path, body, status):
    answer = ask(shop.sandbox, path.format(app=shop.app_id), body)
    code = {400: "INVALID_REQUEST", 404: "NOT_FOUND"}[status]
    assert refusal(answer) == (status, code)


@pytest.mark.parametrize("path", ["apps/x/rotate-secret", "test-users"])
def test_session_token_is_required(shop, resident, path):
    """Nothing else opens the endpoints: no user's token, no client's secret, no Basic."""
    tokens, sandbox = resident.tokens_for(shop), shop.sandbox
    for token in ("x", "x" * 5000, tokens["access_token"], shop.client_secret):
        refused = ask(sandbox, path, {}, token)
        assert refusal(refused) == (401, "UNAUTHORIZED")
        assert "Bearer" in refused.headers["WWW-Authenticate"]
    by_password = {"auth": ("x", sandbox.portal_token)}
    basic = httpx.post(f"{sandbox.api}/developer/{path}", **by_password)
    assert basic.status_code == 401
