"""GET /users/:userId/profile, /kyc and /claims."""

from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from tests.sandbox.driver import Application, Person, Sandbox, bearer

ENDPOINT_SCOPES = {"profile": "profile:read", "kyc": "kyc:read", "claims": "claims:read"}


def test_profile_has_the_specified_fields(
    sandbox: Sandbox, application: Application, person: Person
) -> None:
    """The profile has every field of the specification's table."""
    tokens = person.tokens_for(application)
    answer = sandbox.client.get(f"/api/v1/users/{person.user_id}/profile", headers=bearer(tokens))
    body = answer.json()
    assert body["success"] is True
    assert body["data"]["id"] == person.user_id
    assert set(body["data"]) == {
        "id",
        "email",
        "first_name",
        "last_name",
        "country",
        "kyc_level",
        "risk_score",
        "photo_url",
    }
    assert httpx.get(body["data"]["photo_url"]).headers["Content-Type"] == "image/svg+xml"


def test_kyc_of_a_verified_person(
    sandbox: Sandbox, application: Application, person: Person
) -> None:
    """A verified person is ``verified`` at ``level_2`` since a moment, by a vendor."""
    tokens = person.tokens_for(application)
    kyc = sandbox.client.get("/api/v1/users/me/kyc", headers=bearer(tokens)).json()["data"]
    assert (kyc["status"], kyc["kyc_level"]) == ("verified", "level_2")
    assert kyc["provider"] == "Sandbox KYC"
    assert kyc["verified_at"].endswith("Z")


def test_kyc_of_an_unverified_person(sandbox: Sandbox, application: Application) -> None:
    """A person who skipped verification is ``unverified`` and has no claims."""
    person = Person(sandbox)
    tokens = person.tokens_for(application)
    kyc = sandbox.client.get("/api/v1/users/me/kyc", headers=bearer(tokens)).json()["data"]
    assert kyc == {
        "user_id": person.user_id,
        "kyc_level": "level_1",
        "status": "unverified",
        "verified_at": None,
        "provider": None,
    }
    claims = sandbox.client.get("/api/v1/users/me/claims", headers=bearer(tokens)).json()["data"]
    assert claims["claims"] == []


@pytest.mark.parametrize(("endpoint", "scope"), ENDPOINT_SCOPES.items())
def test_scope_is_enforced(
    sandbox: Sandbox, application: Application, person: Person, endpoint: str, scope: str
) -> None:
    """Each endpoint answers its own scope and refuses the others."""
    others = " ".join(set(ENDPOINT_SCOPES.values()) - {scope})
    path = f"/api/v1/users/{person.user_id}/{endpoint}"
    granted = person.tokens_for(application, scope=scope)
    assert sandbox.client.get(path, headers=bearer(granted)).status_code == 200
    withheld = person.tokens_for(application, scope=others)
    refusal = sandbox.client.get(path, headers=bearer(withheld))
    assert refusal.status_code == 403
    assert refusal.json()["error"]["code"] == "INSUFFICIENT_SCOPE"


@pytest.mark.parametrize(
    "header", [{}, {"Authorization": "Bearer x"}, {"Authorization": "Basic x"}]
)
def test_token_is_required(sandbox: Sandbox, person: Person, header: dict[str, str]) -> None:
    """No token, or an unknown one, is a 401 with a challenge."""
    refusal = sandbox.client.get(f"/api/v1/users/{person.user_id}/profile", headers=header)
    assert refusal.status_code == 401
    assert refusal.headers["WWW-Authenticate"].startswith("Bearer")
    assert refusal.json() == {
        "success": False,
        "error": {"code": "UNAUTHORIZED", "message": refusal.json()["error"]["message"]},
    }


def test_token_is_bound_to_its_person(
    sandbox: Sandbox, application: Application, person: Person
) -> None:
    """Another person, or one who does not exist, is refused in the same way."""
    tokens = person.tokens_for(application)
    other = Person(sandbox)
    codes = {
        sandbox.client.get(f"/api/v1/users/{user_id}/kyc", headers=bearer(tokens)).json()["error"][
            "code"
        ]
        for user_id in (other.user_id, "nobody", person.user_id.upper() + "x")
    }
    assert codes == {"USER_MISMATCH"}


def test_live_user_is_an_environment_mismatch(
    sandbox: Sandbox, application: Application, person: Person
) -> None:
    """Test credentials that ask for a live user are told so."""
    tokens = person.tokens_for(application)
    live = Person(sandbox, environment="live")
    answer = sandbox.client.get(f"/api/v1/users/{live.user_id}/kyc", headers=bearer(tokens))
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "ENVIRONMENT_MISMATCH")


def test_me_can_be_switched_off(sandbox: Sandbox, application: Application, person: Person) -> None:
    """``me`` stands for the token's person unless the switch says otherwise."""
    tokens = person.tokens_for(application)
    path = "/api/v1/users/me/profile"
    assert sandbox.client.get(path, headers=bearer(tokens)).json()["data"]["id"] == person.user_id
    sandbox.control("POST", "switches", users_me=False)
    assert sandbox.client.get(path, headers=bearer(tokens)).status_code == 403


def test_subject_can_be_any_text(sandbox: Sandbox, application: Application) -> None:
    """A subject with a slash, a space and a non-ASCII letter is reached when quoted."""
    odd = Person(sandbox, subject=f"a/b ç-{application.client_id}", verified=True)
    tokens = odd.tokens_for(application)
    path = httpx.URL(f"{sandbox.origin}/api/v1/users/").raw_path.decode()
    quoted = odd.user_id.replace("/", "%2F").replace(" ", "%20").replace("ç", "%C3%A7")
    answer = sandbox.client.get(f"{path}{quoted}/profile", headers=bearer(tokens))
    assert answer.json()["data"]["id"] == odd.user_id


def test_unknown_address_and_method_answer_in_the_envelope(
    sandbox: Sandbox, person: Person
) -> None:
    """Errors of the API are JSON, whatever was asked."""
    unknown = sandbox.client.get("/api/v1/nothing")
    assert (unknown.status_code, unknown.json()["error"]["code"]) == (404, "NOT_FOUND")
    posted = sandbox.client.post(f"/api/v1/users/{person.user_id}/kyc")
    assert (posted.status_code, posted.json()["error"]["code"]) == (405, "METHOD_NOT_ALLOWED")


def test_many_parallel_requests_are_answered(
    sandbox: Sandbox, application: Application, person: Person
) -> None:
    """Two hundred simultaneous reads all succeed."""
    headers = bearer(person.tokens_for(application))
    url = f"{sandbox.api}/users/{person.user_id}/claims"
    limits = httpx.Limits(max_connections=200)
    with httpx.Client(limits=limits, timeout=30) as client, ThreadPoolExecutor(200) as pool:
        statuses = list(
            pool.map(lambda _: client.get(url, headers=headers).status_code, range(200))
        )
    assert statuses == [200] * 200
