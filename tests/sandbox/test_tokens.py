"""Refresh rotation, lifetimes and how the token answer names the subject."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jwt
import pytest

from tests.sandbox.driver import Application, Person, Sandbox, bearer


def profile_status(sandbox: Sandbox, user_id: str, tokens: dict[str, str]) -> int:
    return sandbox.client.get(
        f"/api/v1/users/{user_id}/profile", headers=bearer(tokens)
    ).status_code


def verified(sandbox: Sandbox, application: Application, token: str) -> dict[str, Any]:
    """Verify ``token`` as an application does: key set, issuer, audience, expiry, ES256 alone."""
    keys = jwt.PyJWKSet.from_dict(sandbox.client.get("/.well-known/jwks.json").json())
    claims: dict[str, Any] = jwt.decode(
        token,
        keys[jwt.get_unverified_header(token)["kid"]],
        algorithms=["ES256"],
        issuer=sandbox.origin,
        audience=application.client_id,
        options={"require": ["exp", "iss", "aud", "sub"]},
    )
    return claims


def test_refresh_rotates(sandbox: Sandbox, application: Application, person: Person) -> None:
    """Each use gives a new pair with the same scopes, and the new one works."""
    first = person.tokens_for(application)
    second = application.refresh(first["refresh_token"]).json()
    assert second["refresh_token"] != first["refresh_token"]
    assert second["scope"] == first["scope"]
    assert profile_status(sandbox, person.user_id, second) == 200


def test_reuse_revokes_the_family(
    sandbox: Sandbox, application: Application, person: Person
) -> None:
    """A spent refresh token, presented again, voids everything that came of it."""
    first = person.tokens_for(application)
    second = application.refresh(first["refresh_token"]).json()
    reuse = application.refresh(first["refresh_token"])
    assert (reuse.status_code, reuse.json()["error"]) == (400, "invalid_grant")
    assert application.refresh(second["refresh_token"]).json()["error"] == "invalid_grant"
    assert profile_status(sandbox, person.user_id, second) == 401


def test_one_refresh_token_is_spent_once(application: Application, person: Person) -> None:
    """Of parallel refreshes with one token exactly one succeeds."""
    tokens = person.tokens_for(application)
    barrier = threading.Barrier(8)

    def refresh(_number: int) -> int:
        barrier.wait()
        return application.refresh(tokens["refresh_token"]).status_code

    with ThreadPoolExecutor(8) as pool:
        assert sorted(pool.map(refresh, range(8))) == [200] + [400] * 7


def test_access_token_expires(sandbox: Sandbox, application: Application, person: Person) -> None:
    """An access token lives one hour of the sandbox's clock."""
    tokens = person.tokens_for(application)
    sandbox.control("POST", "clock", advance=3590)
    assert profile_status(sandbox, person.user_id, tokens) == 200
    sandbox.control("POST", "clock", advance=11)
    assert profile_status(sandbox, person.user_id, tokens) == 401


def test_refresh_token_expires(sandbox: Sandbox, application: Application, person: Person) -> None:
    """A refresh token lives thirty days from its own issue."""
    tokens = person.tokens_for(application)
    sandbox.control("POST", "clock", advance=29 * 86400)
    rotated = application.refresh(tokens["refresh_token"]).json()
    sandbox.control("POST", "clock", advance=29 * 86400)
    again = application.refresh(rotated["refresh_token"]).json()
    sandbox.control("POST", "clock", advance=31 * 86400)
    assert application.refresh(again["refresh_token"]).json()["error"] == "invalid_grant"


def test_refresh_with_the_other_environment_is_a_mismatch(
    application: Application, person: Person
) -> None:
    """Live credentials cannot spend a test refresh token."""
    tokens = person.tokens_for(application)
    application.use("live")
    response = application.refresh(tokens["refresh_token"])
    assert (response.status_code, response.json()["error"]["code"]) == (403, "ENVIRONMENT_MISMATCH")


@pytest.mark.parametrize("how", ["user_id", "sub"])
def test_subject_is_named_in_the_answer(
    sandbox: Sandbox, application: Application, person: Person, how: str
) -> None:
    """The switch adds the user id as a plain member."""
    sandbox.control("POST", "switches", token_subject=how)
    assert person.tokens_for(application)[how] == person.user_id


@pytest.mark.parametrize(
    ("how", "member", "typ"),
    [("id_token", "id_token", "JWT"), ("jwt_access_token", "access_token", "at+jwt")],
)
def test_subject_is_named_in_a_signed_token(
    sandbox: Sandbox, application: Application, person: Person, how: str, member: str, typ: str
) -> None:
    """The switch gives a token, signed with a published key, whose ``sub`` is the user id."""
    sandbox.control("POST", "switches", token_subject=how)
    first = person.tokens_for(application)
    refreshed = application.refresh(first["refresh_token"]).json()
    for tokens in (first, refreshed):
        claims = verified(sandbox, application, tokens[member])
        assert claims["sub"] == person.user_id
        assert claims["exp"] - claims["iat"] == 3600
        assert jwt.get_unverified_header(tokens[member])["typ"] == typ
    assert profile_status(sandbox, person.user_id, refreshed) == 200


def test_a_signed_token_expires_by_the_sandboxs_clock(
    sandbox: Sandbox, application: Application, person: Person
) -> None:
    """``iat`` and ``exp`` follow the clock, and a rotated key signs the next token."""
    sandbox.control("POST", "switches", token_subject="id_token")
    sandbox.control("POST", "clock", advance=-7200)
    token = person.tokens_for(application)["id_token"]
    with pytest.raises(jwt.ExpiredSignatureError):
        verified(sandbox, application, token)
    sandbox.control("POST", "clock", reset=True)
    rotated = sandbox.control("POST", "keys/rotate")["signing"]
    token = person.tokens_for(application)["id_token"]
    assert jwt.get_unverified_header(token)["kid"] == rotated
    assert verified(sandbox, application, token)


def test_literal_reading_names_no_subject(application: Application, person: Person) -> None:
    """By default neither the answer nor the token tells who signed in."""
    tokens = person.tokens_for(application)
    assert person.user_id not in str(tokens)
    assert "." not in tokens["access_token"]
