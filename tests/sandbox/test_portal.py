"""What the developer does in the portal."""

import re

import httpx
import pytest

from tests.sandbox.driver import REDIRECT_URI, Application, Developer, Person, Pkce, Sandbox
from tests.sandbox.receiver import SECRET, Receiver, until


@pytest.fixture
def developer(sandbox: Sandbox) -> Developer:
    developer = Developer(sandbox)
    developer.sign_in()
    return developer


def copied(page: httpx.Response) -> list[str]:
    """Return the values that the page shows for copying."""
    return re.findall(r'<code class="copied">([^<]*)</code>', page.text)


def page_of(developer: Developer, application: Application) -> httpx.Response:
    return developer.open(f"/portal/applications/{application.registration['app_id']}")


def test_registered_application_works(developer: Developer, person: Person) -> None:
    """The secrets are shown once, and with them a person can be signed in."""
    overview = developer.open("/portal/")
    page = developer.submit(overview, name="Corner shop", redirect_uris=REDIRECT_URI)
    client_id, client_secret, *_live = copied(page)
    application = Application(developer.sandbox)
    application.client_id, application.client_secret = client_id, client_secret
    assert person.tokens_for(application)["access_token"]
    assert "Corner shop" in developer.open("/portal/").text
    link = re.search(r'href="(/portal/applications/[^"]*)"', page.text)
    assert link is not None
    again = developer.open(link[1])
    assert client_id in again.text
    assert client_secret not in again.text


def test_first_webhook_address_brings_its_secret(
    developer: Developer, application: Application, person: Person, receiver: Receiver
) -> None:
    """Events go to the saved address, signed with the secret that was shown once."""
    page = page_of(developer, application)
    action = f"/portal/clients/{application.client_id}/webhook"
    page = developer.submit(page, action, **{"test-url": receiver.url})
    (secret,) = copied(page)
    person.consent_to(application)
    receiver.wait_for(1)
    assert receiver.requests[0].is_signed_with(secret)
    assert secret not in page_of(developer, application).text
    page = developer.submit(
        page_of(developer, application), action, **{"test-url": receiver.url + "/2"}
    )
    assert "saved" in page.text


def test_rotated_secrets_replace_the_old_ones(
    developer: Developer, hearing: Application, person: Person, receiver: Receiver
) -> None:
    """Client secret and webhook secret are new from now on."""
    base = f"/portal/clients/{hearing.client_id}"
    client_id, client_secret = copied(
        developer.submit(page_of(developer, hearing), f"{base}/client-secret")
    )
    assert client_id == hearing.client_id
    assert client_secret != hearing.client_secret
    (webhook_secret,) = copied(
        developer.submit(page_of(developer, hearing), f"{base}/webhook-secret")
    )
    hearing.client_secret = client_secret
    person.tokens_for(hearing)
    receiver.wait_for(1)
    assert receiver.requests[0].is_signed_with(webhook_secret)
    assert not receiver.requests[0].is_signed_with(SECRET)


def test_redirect_addresses_are_changed(
    developer: Developer, application: Application, person: Person
) -> None:
    """Only the registered addresses are good, per mode."""
    action = f"/portal/clients/{application.client_id}/redirect-uris"
    page = developer.submit(
        page_of(developer, application),
        action,
        **{"test-redirect_uris": "https://shop.example/a\nhttps://shop.example/b"},
    )
    assert "https://shop.example/b" in page.text
    refused = person.open(application.authorization_url(Pkce()))
    assert refused.status_code == 400
    other = application.authorization_url(Pkce(), redirect_uri="https://shop.example/a")
    assert person.open(other).url.path == "/account/sign-in"


@pytest.mark.parametrize(
    ("action", "field", "value", "words"),
    [
        ("redirect-uris", "test-redirect_uris", "/callback", "not an absolute address"),
        ("redirect-uris", "test-redirect_uris", "https://a.example/#x", "without a fragment"),
        ("redirect-uris", "test-redirect_uris", " ", "required"),
        ("webhook", "test-url", "ftp://shop.example/", "address is like"),
        ("webhook", "test-url", "http://[", "address is like"),
    ],
)
def test_address_that_cannot_be_used(
    developer: Developer,
    application: Application,
    action: str,
    field: str,
    value: str,
    words: str,
) -> None:
    """The form says what is wrong, and nothing is saved."""
    target = f"/portal/clients/{application.client_id}/{action}"
    page = developer.submit(page_of(developer, application), target, **{field: value})
    assert words in page.text
    assert REDIRECT_URI in page_of(developer, application).text


def test_test_user_is_made(developer: Developer, application: Application) -> None:
    """User id, e-mail address and password are shown once."""
    action = f"/portal/applications/{application.registration['app_id']}/test-users"
    user_id, email, password = copied(developer.submit(page_of(developer, application), action))
    person = Person(developer.sandbox)
    person.account = {"email": email, "password": password}
    assert user_id in person.sign_in().text


def test_delivery_is_shown_and_sent_again(
    developer: Developer, hearing: Application, person: Person, receiver: Receiver
) -> None:
    """Request, headers and each answer can be read; the button sends once more."""
    receiver.answers, receiver.body = [500], b"<b>no</b>"
    person.consent_to(hearing)
    until(lambda: hearing.deliveries()[0]["attempts"])
    listing = developer.open(f"/portal/clients/{hearing.client_id}/deliveries")
    assert "consent.granted" in listing.text
    assert "500" in listing.text
    assert listing.text.count(">Send again<") == 1
    delivery = hearing.deliveries()[0]
    page = developer.open(f"/portal/deliveries/{delivery['id']}")
    for shown in (delivery["event_id"], "x-webhook-signature", "&lt;b&gt;no&lt;/b&gt;", "Waiting"):
        assert shown in page.text
    page = developer.submit(page, f"/portal/deliveries/{delivery['id']}/send")
    assert "on its way" in page.text
    until(lambda: len(hearing.deliveries()[0]["attempts"]) >= 2)
    assert "Delivered" in developer.open(f"/portal/deliveries/{delivery['id']}").text
    assert receiver.requests[0].body == receiver.requests[1].body
    assert SECRET not in page.text


def test_body_of_any_event_can_be_shown(
    developer: Developer, sandbox: Sandbox, hearing: Application
) -> None:
    """An event of the hostile kind does not break the page."""
    members = {"event_type": "<script>", "event_id": "<script>", "data": {"<script>": "\x00"}}
    sent = sandbox.control("POST", "events", client_id=hearing.client_id, **members)
    page = developer.open(f"/portal/deliveries/{sent['id']}")
    assert page.status_code == 200
    assert "<script" not in page.text


def test_many_deliveries_come_in_pages(
    developer: Developer, sandbox: Sandbox, hearing: Application
) -> None:
    """Fifty to a page, the newest first."""
    sandbox.control("POST", "deliveries/hold", client_id=hearing.client_id)
    for number in range(51):
        sandbox.control(
            "POST", "events", client_id=hearing.client_id, event_type="t", event_id=f"e-{number}"
        )
    address = f"/portal/clients/{hearing.client_id}/deliveries"
    first, second = developer.open(address).text, developer.open(f"{address}?page=2").text
    assert "e-50" in first
    assert "Older" in first
    assert "e-0<" not in first
    assert "e-0<" in second


@pytest.mark.parametrize(
    "path",
    [
        "",
        "applications/00000000-0000-0000-0000-000000000000",
        "clients/x/deliveries",
        "deliveries/1",
    ],
)
def test_nobody_else_gets_in(sandbox: Sandbox, person: Person, path: str) -> None:
    """A person's session is no developer's; the way leads back after the sign-in."""
    person.sign_in()
    page = person.open(f"/portal/{path}")
    assert page.url.path == "/portal/sign-in"
    assert page.url.params["next"] == f"/portal/{path}"


def test_wrong_password_is_refused(sandbox: Sandbox) -> None:
    """The message does not tell which half was wrong."""
    developer = Developer(sandbox)
    page = developer.open("/portal/sign-in?next=https://attacker.example/")
    for email in ("developer@sandbox.example", "other@sandbox.example"):
        refused = developer.submit(page, email=email, password="wrong é")
        assert "do not match a developer account" in refused.text
    assert developer.sign_in(page).url.path == "/portal/"


def test_developer_signs_out(developer: Developer) -> None:
    """Afterwards the pages ask to sign in again."""
    page = developer.submit(developer.open("/portal/"), "/portal/sign-out")
    assert page.url.path == "/portal/sign-in"
    assert developer.open("/portal/").url.path == "/portal/sign-in"


@pytest.mark.parametrize("path", ["clients/{client}/client-secret", "sign-out", "sign-in", ""])
def test_change_without_csrf_token_is_refused(
    developer: Developer, application: Application, path: str
) -> None:
    """No other site can rotate a secret."""
    address = path.format(client=application.client_id)
    assert developer.browser.post(f"/portal/{address}").status_code == 403
