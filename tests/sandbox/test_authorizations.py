"""A sign-in in one control call: what a person does on the pages, without a browser."""

import httpx
import pytest

from tests.sandbox.driver import REDIRECT_URI, Application, Person, Pkce, Sandbox


def decide(person: Person, url: str, **body: object) -> httpx.Response:
    members = {"url": url, "user_id": person.user_id, **body}
    return person.sandbox.client.post("/sandbox/authorizations", json=members)


def test_the_callback_brings_a_code(application: Application, person: Person) -> None:
    """The code is good for tokens, and the approval is a consent that is announced."""
    pkce = Pkce()
    answer = decide(person, application.authorization_url(pkce, state="s ä"))
    callback = httpx.URL(answer.json()["callback"])
    assert str(callback).startswith(REDIRECT_URI)
    assert callback.params["state"] == "s ä"
    assert application.redeem(callback.params["code"], pkce).status_code == 200
    account = person.sandbox.control("GET", f"users/{person.user_id}")
    assert account["consents"] == {
        application.client_id: ["profile:read", "kyc:read", "claims:read"]
    }


def test_a_person_may_deny(application: Application, person: Person) -> None:
    """The callback says so, and no consent is recorded."""
    answer = decide(person, application.authorization_url(Pkce()), deny=True)
    callback = httpx.URL(answer.json()["callback"])
    assert callback.params["error"] == "access_denied"
    assert person.sandbox.control("GET", f"users/{person.user_id}")["consents"] == {}


def test_a_bad_request_goes_back_to_the_application(
    application: Application, person: Person
) -> None:
    """As on the page: the application hears what is wrong with its request."""
    url = application.authorization_url(Pkce(), code_challenge_method="plain")
    callback = httpx.URL(decide(person, url).json()["callback"])
    assert callback.params["error"] == "invalid_request"


@pytest.mark.parametrize(
    "changes",
    [{"client_id": "unknown"}, {"redirect_uri": "https://attacker.example/"}],
    ids=["client", "redirect address"],
)
def test_what_has_no_way_back_is_refused(
    application: Application, person: Person, changes: dict[str, str]
) -> None:
    """Where the page would show an error, so does the answer."""
    refused = decide(person, application.authorization_url(Pkce(), **changes))
    assert refused.status_code == 400
    assert "error page" in refused.json()["error"]["message"]


def test_the_environments_do_not_mix(sandbox: Sandbox, application: Application) -> None:
    """A live person approves no test application."""
    refused = decide(Person(sandbox, environment="live"), application.authorization_url(Pkce()))
    assert refused.status_code == 400
    assert decide(Person(sandbox), "http://127.0.0.1/account/").status_code == 400
    gone = decide(Person(sandbox), application.authorization_url(Pkce()), user_id="nobody")
    assert gone.status_code == 404


def test_a_closed_account_approves_nothing(application: Application, person: Person) -> None:
    """Whoever asked for deletion can no longer sign in."""
    person.cause("deletion")
    refused = decide(person, application.authorization_url(Pkce()))
    assert refused.status_code == 400
    assert "closed" in refused.json()["error"]["message"]
