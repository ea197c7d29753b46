"""The flow with PKCE, the consent screen, and POST /oauth2/token."""

import re
from typing import Any

import httpx
import jwt
import pytest

from tests.sandbox.driver import (
    ALL_SCOPES,
    INVALID_CLIENT,
    INVALID_GRANT,
    REDIRECT_URI,
    TLS,
    Application,
    Person,
    Pkce,
    Sandbox,
    basic,
    callback_parameters,
    exchange,
    refusal,
)


def test_an_approval_ends_in_tokens_and_a_denial_in_an_error(application, person):
    """Both return the state. Only an approval returns a code, which brings a token for an hour."""
    page = person.consent_screen(application, state="a b&c")
    answer = callback_parameters(person.submit(page, deny="Deny"))
    assert answer.items() >= {"error": "access_denied", "state": "a b&c"}.items()
    assert "code" not in answer
    pkce = Pkce()
    page = person.consent_screen(application, pkce, state="a b&c")
    answer = callback_parameters(person.submit(page, allow="Approve"))
    assert answer.keys() == {"code", "state"}
    assert answer["state"] == "a b&c"
    tokens = application.redeem(answer["code"], pkce).json()
    expected = {"expires_in": 3600, "token_type": "Bearer"}
    assert tokens.items() >= expected.items()
    assert tokens.keys() - expected == {"access_token", "refresh_token", "scope"}


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"code_challenge": None, "code_challenge_method": None}, "invalid_request"),
        ({"code_challenge_method": "plain"}, "invalid_request"),
        ({"code_challenge_method": None}, "invalid_request"),
        ({"code_challenge": "too-short"}, "invalid_request"),
        ({"response_type": "token"}, "unsupported_response_type"),
        *(
            ({"scope": scope}, "invalid_scope")
            for scope in ("documents:read", None, "")
        ),
        *(({"state": state}, "invalid_request") for state in (None, "")),
    ],
)
def test_bad_request_is_returned_to_the_application(shop, changes, error):
    """A request that the application got wrong goes back to it as an error, unseen by a person."""
    address = shop.authorization_url(Pkce(), **changes)
    answer = callback_parameters(httpx.get(address, verify=TLS))
    assert answer["error"] == error
    assert answer.get("state", "") == ("" if "state" in changes else "state-value")


OTHER_ADDRESSES = (
    "http://127.0.0.1:8001/callback",
    REDIRECT_URI + "/",
    REDIRECT_URI + "?more=1",
    "http://[",
    "javascript:alert(1)",
    "https://attacker.example/<script>",
    "",
    None,
)


@pytest.mark.parametrize(
    "changes",
    [{"client_id": "unknown"}, *({"redirect_uri": each} for each in OTHER_ADDRESSES)],
)
def test_untrusted_address_is_never_redirected_to(shop, resident, changes):
    """The person sees an error page; a decision without a browser is refused as well."""
    address = shop.authorization_url(Pkce(), **changes)
    response = httpx.get(address, verify=TLS)
    assert response.status_code == 400
    assert "This request cannot be used" in response.text
    assert "<script" not in response.text
    if changes.get("redirect_uri") == REDIRECT_URI + "/":
        # It stands beside the registered one, as text.
        assert f"<code>{REDIRECT_URI}/</code>" in response.text
        assert f"<code>{REDIRECT_URI}</code>" in response.text
    refused = resident.decide(address)
    assert refusal(refused) == (400, "INVALID_REQUEST")
    assert "error page" in refused.json()["error"]["message"]


def test_a_code_is_redeemed_once_within_a_minute_by_its_verifier(application, person):
    """The exchange names the redirect address once more (RFC 6749, section 4.1.3)."""
    code, pkce = person.approve(application)
    missing = application.redeem(code, pkce, redirect_uri="")
    assert refusal(missing) == (400, "invalid_request")
    another = application.redeem(code, pkce, redirect_uri="http://127.0.0.1:8000/other")
    for refused in (another, application.redeem(code, Pkce())):
        assert refusal(refused) == (400, "invalid_grant")
    assert application.redeem(code, pkce).status_code == 200
    assert refusal(application.redeem(code, pkce)) == (400, "invalid_grant")
    late, pkce = person.approve(application)
    application.sandbox.advance(61)
    assert refusal(application.redeem(late, pkce)) == (400, "invalid_grant")


@pytest.mark.parametrize("verifier", ["", "short", "x" * 42, "x" * 129, "ä" * 43])
def test_malformed_verifier_is_refused(shop, resident, verifier):
    """A verifier has 43 to 128 unreserved characters, even if the challenge is made of it."""
    pkce = Pkce(verifier)
    code, _pkce = resident.approve(shop, code_challenge=pkce.challenge)
    assert shop.redeem(code, pkce).status_code == 400


def test_live_client_refuses_sandbox_user(application, person):
    application.use("live")
    page = person.sign_in(person.open(application.authorization_url(Pkce())))
    token = {"csrfmiddlewaretoken": person.browser.cookies["sandbox_csrftoken"]}
    address = application.authorization_url(Pkce())
    sent = person.browser.post(address, data=token | {"allow": "Approve"})
    for answer in (page, sent):
        assert answer.status_code == 403
        assert "ENVIRONMENT_MISMATCH" in answer.text
        assert "Location" not in answer.headers


def test_codes_and_tokens_of_test_are_a_mismatch_for_live(application, person):
    """Live credentials get a live person's tokens; a test code or token is a mismatch there."""
    tokens = person.tokens_for(application)
    code, pkce = person.approve(application)
    application.use("live")
    mismatch = (403, "ENVIRONMENT_MISMATCH")
    assert refusal(application.redeem(code, pkce)) == mismatch
    assert refusal(application.refresh(tokens["refresh_token"])) == mismatch
    live = Person(application.sandbox, environment="live", verified=True)
    tokens = live.tokens_for(application)
    assert live.read(tokens, "profile", live.user_id).status_code == 200


def test_consent_can_be_decided_without_a_browser(application, person):
    """An approval is a consent, and its code brings tokens; a denial is no consent."""
    pkce = Pkce()
    address = application.authorization_url(pkce, state="s ä")
    live = Person(application.sandbox, environment="live")
    assert live.decide(address).status_code == 400
    assert person.decide(address, user_id="nobody").status_code == 404
    denied = person.decide(address, deny=True).json()["callback"]
    assert httpx.URL(denied).params["error"] == "access_denied"
    assert person.shown()["consents"] == {}
    callback = httpx.URL(person.decide(address).json()["callback"])
    assert callback.params["state"] == "s ä"
    assert application.redeem(callback.params["code"], pkce).status_code == 200
    assert person.shown()["consents"] == {application.client_id: ALL_SCOPES.split()}
    person.cause("deletion")
    assert "closed" in person.decide(address).json()["error"]["message"]


WORDS = {
    "id": "user id",
    "email": "e-mail address",
    "photo_url": "photo",
    "kyc_level": "verification level",
    "verified_at": "date of the verification",
    "provider": "the provider that verified you",
}


BOTH = "profile:read kyc:read"


@pytest.mark.parametrize(
    ("scope", "switches"),
    [
        ("profile:read", {}),
        ("kyc:read", {}),
        (BOTH, {}),
        (BOTH, {"profile_members": "all"}),
        (BOTH, {"optional_members": False}),
    ],
)
def test_what_the_screen_lists_is_what_is_handed_over(
    application,
    person,
    scope,
    switches,
):
    """Member by member, for the scopes that were asked for."""
    application.sandbox.switch(**switches)
    page = person.consent_screen(application, scope=scope).text
    shown = re.search(r'<ul class="scopes".*?</ul>', page, re.DOTALL)[0]
    listed = re.sub(r"<strong>.*?</strong>|<[^>]+>", "", shown).lower()
    tokens = person.tokens_for(application, scope=scope)

    for each in scope.split():
        for member in person.read(tokens, each.removesuffix(":read")).json()["data"]:
            words = WORDS.get(member, member.replace("_", " "))
            assert words in listed
            listed = listed.replace(words, "", 1)
    assert not re.search("[a-z]", listed)


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
    ("id:wrong", "", INVALID_CLIENT),
    ("", "id:wrong", INVALID_CLIENT),
    ("", "id", INVALID_CLIENT),
    ("???", "", INVALID_CLIENT),
    ("id:secret", "another", INVALID_CLIENT),
    # It proves itself once (RFC 6749, section 2.3), right or wrong.
    ("id:wrong", "id:secret", INVALID_CLIENT),
    ("???", "id:secret", INVALID_CLIENT),
    ("another:its", "id:secret", INVALID_CLIENT),
    ("id:secret", "id:secret", (400, "invalid_request")),
]


def test_a_bad_client_is_challenged(application, person):
    """401, ``invalid_client``, and the scheme that would have been right; the code stays good."""
    form = exchange(*person.approve(application))
    other = Application(application.sandbox)
    names = {
        "id": application.client_id,
        "secret": application.client_secret,
        "another": other.client_id,
        "its": other.client_secret,
    }
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
    for tokens in (first, application.refresh(first["refresh_token"]).json()):
        claims = verified(sandbox, tokens[member], named)
        assert claims["sub"] == person.user_id
        assert claims["aud"] == audience
        assert claims["exp"] - claims["iat"] == 3600
        assert jwt.get_unverified_header(tokens[member])["typ"] == typ
    assert person.read(tokens, "profile").status_code == 200
