"""The authorization code flow with PKCE (spec: Authentication)."""

import html

import httpx
import pytest

from tests.sandbox.driver import (
    REDIRECT_URI,
    Application,
    Person,
    Pkce,
    Sandbox,
    bearer,
    callback_parameters,
)


def test_walk_ends_in_tokens(application: Application, person: Person) -> None:
    """Sign-in, consent and the exchange give a bearer token for an hour and a refresh token."""
    tokens = person.tokens_for(application)
    assert set(tokens) == {"access_token", "refresh_token", "expires_in", "token_type", "scope"}
    assert tokens["expires_in"] == 3600
    assert tokens["token_type"] == "Bearer"


def test_redirect_carries_code_and_state(application: Application, person: Person) -> None:
    """Approval returns a code and the state as it was sent, and nothing else."""
    page = person.sign_in(person.open(application.authorization_url(Pkce(), state="a b&c")))
    answer = callback_parameters(person.submit(page, allow="Approve"))
    assert set(answer) == {"code", "state"}
    assert answer["state"] == "a b&c"


def test_denial_is_returned(application: Application, person: Person) -> None:
    """Denial returns ``access_denied`` with the state and no code."""
    page = person.sign_in(person.open(application.authorization_url(Pkce())))
    answer = callback_parameters(person.submit(page, deny="Deny"))
    assert answer["error"] == "access_denied"
    assert answer["state"] == "state-value"
    assert "code" not in answer


def test_consent_names_application_scopes_and_account(
    application: Application, person: Person
) -> None:
    """The consent screen says who asks, for what, and as whom, each time."""
    person.tokens_for(application)
    page = person.open(application.authorization_url(Pkce(), scope="profile:read kyc:read"))
    for words in ("Example shop", "Your profile", "Your verification status", "Test environment"):
        assert words in page.text
    assert "Your verified claims" not in page.text
    assert person.account["email"] in page.text


def test_switching_account_returns_to_the_consent(application: Application, person: Person) -> None:
    """Another account can be chosen on the way."""
    page = person.sign_in(person.open(application.authorization_url(Pkce())))
    switched = person.submit(page, "/account/switch")
    assert switched.url.path == "/account/sign-in"
    assert person.sign_in(switched).url.path == "/oauth2/auth"


@pytest.mark.parametrize(
    "changes",
    [
        {"code_challenge": None, "code_challenge_method": None},
        {"code_challenge_method": "plain"},
        {"code_challenge_method": None},
        {"code_challenge": "too-short"},
        {"response_type": "token"},
        {"scope": "documents:read"},
    ],
    ids=["no-pkce", "plain", "method-missing", "short-challenge", "implicit", "trusted-scope"],
)
def test_bad_request_is_returned_to_the_application(
    application: Application, changes: dict[str, str | None]
) -> None:
    """A request that the application got wrong goes back to it as an error, unseen by a person."""
    url = application.authorization_url(Pkce(), **changes)
    answer = callback_parameters(httpx.get(url))
    assert answer["error"] in {"invalid_request", "invalid_scope", "unauthorized_client"} | {
        "unsupported_response_type"
    }
    assert answer["state"] == "state-value"


@pytest.mark.parametrize(
    "changes",
    [
        {"redirect_uri": "http://127.0.0.1:8001/callback"},
        {"redirect_uri": REDIRECT_URI + "/"},
        {"redirect_uri": REDIRECT_URI + "?more=1"},
        {"redirect_uri": "https://attacker.example/"},
        {"client_id": "unknown"},
    ],
    ids=["port", "slash", "query", "foreign", "client"],
)
def test_untrusted_address_is_never_redirected_to(
    application: Application, changes: dict[str, str | None]
) -> None:
    """Without a registered address the person sees an error page."""
    response = httpx.get(application.authorization_url(Pkce(), **changes))
    assert response.status_code == 400
    assert "This request cannot be used" in response.text


def test_wrong_verifier_is_refused(application: Application, person: Person) -> None:
    """A code is worth nothing without its own verifier."""
    code, _pkce = person.approve(application)
    response = application.redeem(code, Pkce())
    assert (response.status_code, response.json()["error"]) == (400, "invalid_grant")


@pytest.mark.parametrize("verifier", ["", "short", "x" * 129, "ä" * 43])
def test_malformed_verifier_is_refused(
    application: Application, person: Person, verifier: str
) -> None:
    """A verifier has 43 to 128 unreserved characters, though the challenge be made of it."""
    pkce = Pkce(verifier)
    code, _pkce = person.approve(application, code_challenge=pkce.challenge)
    assert application.redeem(code, pkce).status_code == 400


def test_code_is_used_once(application: Application, person: Person) -> None:
    """The second exchange of a code fails."""
    code, pkce = person.approve(application)
    assert application.redeem(code, pkce).status_code == 200
    assert application.redeem(code, pkce).json()["error"] == "invalid_grant"


def test_code_expires(sandbox: Sandbox, application: Application, person: Person) -> None:
    """A code lives one minute."""
    code, pkce = person.approve(application)
    sandbox.control("POST", "clock", advance=61)
    assert application.redeem(code, pkce).json()["error"] == "invalid_grant"


def test_exchange_names_the_same_redirect_uri(application: Application, person: Person) -> None:
    """The exchange must repeat the address of the request."""
    code, pkce = person.approve(application)
    assert application.redeem(code, pkce, redirect_uri="http://other/").status_code == 400


def test_live_client_refuses_sandbox_user(application: Application, person: Person) -> None:
    """The authorization page does not mix live and test."""
    application.use("live")
    page = person.sign_in(person.open(application.authorization_url(Pkce())))
    assert page.status_code == 403
    assert "ENVIRONMENT_MISMATCH" in page.text


def test_live_client_takes_no_approval_of_a_sandbox_user(
    application: Application, person: Person
) -> None:
    """Nor does a form that was sent without the page."""
    person.sign_in(person.open(application.authorization_url(Pkce())))
    application.use("live")
    form = {"allow": "Approve", "csrfmiddlewaretoken": person.browser.cookies["sandbox_csrftoken"]}
    answer = person.browser.post(application.authorization_url(Pkce()), data=form)
    assert answer.status_code == 403
    assert "ENVIRONMENT_MISMATCH" in answer.text
    assert "Location" not in answer.headers


def test_live_user_signs_in_to_live_client(sandbox: Sandbox) -> None:
    """Live beside test is complete."""
    live = Person(sandbox, environment="live", verified=True)
    tokens = live.tokens_for(Application(sandbox, "live"))
    profile = sandbox.client.get(f"/api/v1/users/{live.user_id}/profile", headers=bearer(tokens))
    assert profile.status_code == 200


def test_code_of_the_other_environment_is_a_mismatch(
    application: Application, person: Person
) -> None:
    """Live credentials cannot redeem a test code, and are told why."""
    code, pkce = person.approve(application)
    application.use("live")
    response = application.redeem(code, pkce)
    assert response.status_code == 403
    assert response.json()["error"]["code"] == "ENVIRONMENT_MISMATCH"


def test_cookies_do_not_collide_with_the_site(person: Person) -> None:
    """A site on the same host keeps its own session, so the sandbox's cookies have other names."""
    person.sign_in()
    assert set(person.browser.cookies) <= {"sandbox_session", "sandbox_csrftoken"}


@pytest.mark.parametrize(
    ("requested", "part", "shown"),
    [
        ("http://localhost:8000/callback", "host", ("localhost", "127.0.0.1")),
        ("http://127.0.0.1:8001/callback", "port", ("8001", "8000")),
        ("http://127.0.0.1/callback", "port", ("\u2013", "8000")),
        ("https://127.0.0.1:8000/callback", "scheme", ("https", "http")),
        ("http://127.0.0.1:8000/callback/?a=1", "path and query", ("/callback/?a=1", "/callback")),
    ],
)
def test_another_redirect_address_is_explained(
    application: Application, person: Person, requested: str, part: str, shown: tuple[str, str]
) -> None:
    """The page shows both addresses and the part in which they differ."""
    page = person.open(application.authorization_url(Pkce(), redirect_uri=requested))
    assert page.status_code == 400
    text = html.unescape(page.text)
    assert f"<code>{requested}</code>" in text
    assert f"<code>{REDIRECT_URI}</code>" in text
    assert f"The {part} differs" in text
    assert f"<code>{shown[0]}</code> / <code>{shown[1]}</code>" in text
    assert text.count(" differs</dt>") == 1


@pytest.mark.parametrize("requested", ["", "http://[", "javascript:alert(1)", "/<script>", "a b"])
def test_no_address_at_all_is_explained_safely(
    application: Application, person: Person, requested: str
) -> None:
    """What is no address ends on the same page, escaped, and never in an error of the sandbox."""
    page = person.open(application.authorization_url(Pkce(), redirect_uri=requested))
    assert page.status_code == 400
    assert "<script>" not in page.text
