"""POST /oauth2/token: who may ask, rotation, lifetimes, and how the answer names the subject."""

from typing import Any

import jwt
import pytest

from tests.sandbox.driver import (
    INVALID_CLIENT,
    INVALID_GRANT,
    Application,
    Sandbox,
    basic,
    exchange,
    refusal,
)

DAY = 86_400


def verified(sandbox: Sandbox, token: str, audience: str) -> Any:
    """Verify ``token`` as an application does: key set, issuer, audience, expiry, ES256 alone."""
    keys = jwt.PyJWKSet.from_dict(sandbox.client.get("/.well-known/jwks.json").json())
    key = keys[jwt.get_unverified_header(token)["kid"]]
    options = {"require": ["exp", "iss", "aud", "sub"]}
    issued = {"issuer": sandbox.origin, "audience": audience, "options": options}
    return jwt.decode(token, key, algorithms=["ES256"], **issued)


# How long tokens live


def test_each_refresh_gives_a_new_pair_and_spends_the_old_one(application, person):
    """The scopes stay. A spent refresh token that is sent again ends all tokens of its family."""
    first = person.tokens_for(application)
    second = application.refresh(first["refresh_token"]).json()
    assert second["refresh_token"] != first["refresh_token"]
    assert second["scope"] == first["scope"]
    assert person.read(second, "profile").status_code == 200
    assert person.read(first, "profile").status_code == 401
    for spent in (first, second):
        assert refusal(application.refresh(spent["refresh_token"])) == INVALID_GRANT
    assert person.read(second, "profile").status_code == 401


def test_access_tokens_last_an_hour_and_refresh_tokens_thirty_days(application, person):
    """By the sandbox's clock; the thirty days begin anew with each refresh."""
    tokens = person.tokens_for(application)
    application.sandbox.advance(3590)
    assert person.read(tokens, "profile").status_code == 200
    application.sandbox.advance(11)
    assert person.read(tokens, "profile").status_code == 401
    for _ in range(2):
        tokens = application.refresh(tokens["refresh_token"]).json()
        application.sandbox.advance(29 * DAY)
    application.sandbox.advance(2 * DAY)
    assert refusal(application.refresh(tokens["refresh_token"])) == INVALID_GRANT


def test_a_replayed_code_ends_its_tokens(application, person):
    """Refreshed ones too, and no others (RFC 6749, section 4.1.2); no stranger can do that."""
    other, form = person.tokens_for(application), exchange(*person.approve(application))
    tokens = application.token_request(**form).json()
    refreshed = application.refresh(tokens["refresh_token"]).json()
    nobody = form | {"client_id": application.client_id}
    post = application.sandbox.client.post
    assert post("/oauth2/token", data=nobody).status_code == 401
    another = Application(application.sandbox).token_request(**form)
    assert refusal(another) == INVALID_GRANT
    assert person.read(refreshed, "profile").status_code == 200
    assert refusal(application.token_request(**form)) == INVALID_GRANT
    assert person.read(refreshed, "profile").status_code == 401
    assert refusal(application.refresh(refreshed["refresh_token"])) == INVALID_GRANT
    assert person.read(other, "profile").status_code == 200


# Who may ask


def test_client_credentials_count_in_the_body_alone(application, person):
    """A Basic header is refused, and so is any grant but the two of the specification."""
    for grant_type in ("client_credentials", "password", "x", ""):
        refused = application.token_request(grant_type=grant_type)
        assert refusal(refused) == (400, "unsupported_grant_type")
    client, form = application.sandbox.client, exchange(*person.approve(application))
    header = basic(application.client_id, application.client_secret)
    refused = client.post("/oauth2/token", data=form, headers=header)
    assert refusal(refused) == INVALID_CLIENT
    assert application.token_request(**form).status_code == 200


BAD_CLIENTS = [
    ("id:wrong", "", INVALID_CLIENT), ("", "id:wrong", INVALID_CLIENT), ("", "id", INVALID_CLIENT),
    ("???", "", INVALID_CLIENT), ("id:secret", "another", INVALID_CLIENT),
    # It proves itself once (RFC 6749, section 2.3), right or wrong.
    ("id:wrong", "id:secret", INVALID_CLIENT), ("???", "id:secret", INVALID_CLIENT),
    ("another:its", "id:secret", INVALID_CLIENT),
    ("id:secret", "id:secret", (400, "invalid_request")),
]  # fmt: skip


def test_a_bad_client_is_challenged(application, person):
    """401, ``invalid_client``, and the scheme that would have been right; the code stays good."""
    form = exchange(*person.approve(application))
    other = Application(application.sandbox)
    names = {
        "id": application.client_id, "secret": application.client_secret,
        "another": other.client_id, "its": other.client_secret,
    }  # fmt: skip
    for header, body, expected in BAD_CLIENTS:
        sent = [names.get(each, each) for each in header.split(":")]
        headers = (
            basic(*sent) if len(sent) == 2 else {"Authorization": f"Basic {header}"}
        )
        given = [names.get(each, each) for each in body.split(":") if each]
        refused = application.sandbox.client.post(
            "/oauth2/token",
            data=form | dict(zip(("client_id", "client_secret"), given, strict=False)),
            headers=headers if header else {},
        )
        assert refusal(refused) == expected, (header, body)
        challenge = refused.headers.get("WWW-Authenticate", "")
        assert challenge.startswith("Basic realm=") is (expected == INVALID_CLIENT)
    assert application.token_request(**form).status_code == 200


@pytest.mark.parametrize("message", [True, False])
def test_errors_can_come_in_the_envelope(application, message):
    """A switch changes their form; statuses and challenges stay, and codes are in capitals."""
    application.sandbox.switch(token_errors="envelope", optional_members=message)
    dead = application.refresh("x")
    assert refusal(dead) == (400, "INVALID_GRANT")
    assert bool(dead.json()["error"].get("message")) is message
    rejected = application.refresh("x", client_secret="wrong")
    assert refusal(rejected) == (401, "INVALID_CLIENT")
    assert rejected.headers["WWW-Authenticate"].startswith("Basic realm=")


# Whom tokens name


def test_by_default_no_token_names_its_person(application, person):
    """By default neither the answer nor the token tells who signed in; switches name the person."""
    tokens = person.tokens_for(application)
    assert person.user_id not in str(tokens)
    assert "." not in tokens["access_token"]
    for how in ("user_id", "sub"):
        application.sandbox.switch(token_subject=how)
        assert person.tokens_for(application)[how] == person.user_id


@pytest.mark.parametrize(
    ("member", "typ", "aud"),
    [
        ("id_token", "JWT", {"id_token_aud": "text"}),
        ("id_token", "JWT", {"id_token_aud": "list"}),
        ("access_token", "at+jwt", {"access_token_aud": "client"}),
        ("access_token", "at+jwt", {"access_token_aud": "origin"}),
    ],
)
def test_subject_is_named_in_a_signed_token(application, person, member, typ, aud):
    """The switch gives a token, signed with a published key, whose ``sub`` is the user id."""
    sandbox = application.sandbox
    how = "id_token" if member == "id_token" else "jwt_access_token"
    sandbox.switch(token_subject=how, **aud)
    expected = {"list": [application.client_id], "origin": sandbox.origin}
    audience = expected.get(*aud.values(), application.client_id)
    named = sandbox.origin if audience == sandbox.origin else application.client_id
    first = person.tokens_for(application)
    refreshed = application.refresh(first["refresh_token"]).json()
    for tokens in (first, refreshed):
        claims = verified(sandbox, tokens[member], named)
        assert (claims["sub"], claims["aud"]) == (person.user_id, audience)
        assert claims["exp"] - claims["iat"] == 3600
        assert jwt.get_unverified_header(tokens[member])["typ"] == typ
    assert person.read(refreshed, "profile").status_code == 200
