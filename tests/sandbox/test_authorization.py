"""GET /oauth2/auth: the flow with PKCE and the consent screen (spec: Authentication)."""

import re

import httpx
import pytest

from tests.sandbox.driver import (
    ALL_SCOPES,
    REDIRECT_URI,
    TLS,
    Person,
    Pkce,
    callback_parameters,
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
    assert (answer.keys(), answer["state"]) == ({"code", "state"}, "a b&c")
    tokens = application.redeem(answer["code"], pkce).json()
    expected = {"expires_in": 3600, "token_type": "Bearer"}
    assert tokens.items() >= expected.items()
    assert tokens.keys() - expected == {"access_token", "refresh_token", "scope"}


@pytest.mark.parametrize("is_known", [True, False], ids=["signed in", "signed out"])
def test_a_long_state_comes_back(application, sandbox, is_known):
    """Whatever the person does first: sign in, verify, or skip that."""
    person = Person(sandbox, verified=False)
    if is_known:
        person.sign_in()
    page = person.consent_screen(application, state="s" * 4_000)
    assert page.url.path == "/oauth2/auth"
    answer = callback_parameters(person.submit(page, allow="Approve"))
    assert answer["state"] == "s" * 4_000


@pytest.mark.parametrize(
    "foreign",
    ["//evil.example/", "https://evil.example/?" + "x" * 3_000, "/\\evil.example", "///evil"],
)  # fmt: skip
def test_nobody_is_led_elsewhere(shop, resident, foreign):
    person = Person(shop.sandbox, resident.account)
    page = person.open(str(httpx.URL("/account/sign-in", params={"next": foreign})))
    assert person.sign_in(page).url.path == "/account/"


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
    "http://127.0.0.1:8001/callback", REDIRECT_URI + "/", REDIRECT_URI + "?more=1", "http://[",
    "javascript:alert(1)", "https://attacker.example/<script>", "", None,
)  # fmt: skip


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
    "id": "user id", "email": "e-mail address", "photo_url": "photo",
    "kyc_level": "verification level", "verified_at": "date of the verification",
    "provider": "the provider that verified you",
}  # fmt: skip


BOTH = "profile:read kyc:read"


@pytest.mark.parametrize(
    ("scope", "switches"),
    [("profile:read", {}), ("kyc:read", {}), (BOTH, {}),
     (BOTH, {"profile_members": "all"}), (BOTH, {"optional_members": False})],
)  # fmt: skip
def test_what_the_screen_lists_is_what_is_handed_over(
    application, person, scope, switches
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
