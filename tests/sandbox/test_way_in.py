"""The sandbox is no way in: strangers who reach it by a tunnel, a proxy or a rebound name."""

import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from tests.sandbox.driver import TLS, Application, Developer, Person, Sandbox
from tests.sandbox.receiver import Receiver, until

FORWARDED = [
    {"X-Forwarded-For": "203.0.113.9"},
    {"X-Forwarded-For": ""},
    {"X-Forwarded-Host": "sandbox.example"},
    {"X-Forwarded-Proto": "https"},
    {"Forwarded": "for=203.0.113.9"},
    {"X-Real-IP": "203.0.113.9"},
    {"Via": "1.1 proxy"},
    {"CF-Connecting-IP": "203.0.113.9"},
    {"True-Client-IP": "203.0.113.9"},
    {"X-Client-IP": "203.0.113.9"},
]
HOSTS = ["attacker.example", "sandbox.example:9400", "localhost.attacker.example", "10.0.0.1", ""]
STRANGER = {"X-Forwarded-For": "203.0.113.9"}
PRIVATE = [
    "http://127.0.0.1:{port}/",
    "http://localhost:{port}/",
    "http://LOCALHOST.:{port}/",
    "http://[::1]:{port}/",
    "http://[::ffff:127.0.0.1]:{port}/",
    "http://2130706433:{port}/",
    "http://0x7f.1:{port}/",
    "http://0:{port}/",
    "http://10.0.0.1:{port}/",
    "http://169.254.169.254/latest/meta-data/",
    "http://[fd00::1]/",
    "http://[64:ff9b::7f00:1]/",
    "http://[2002:7f00:1::]/",
]


def names(headers: dict[str, str]) -> str:
    return " ".join(f"{name}:{value}" for name, value in headers.items())


@contextmanager
def publishing(*options: str) -> Iterator[Sandbox]:
    """A sandbox that is advertised under a name of the outside; its client has the token."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    origin = ("--origin", "http://sandbox.example", f"--port={port}")
    with Sandbox(*origin, *options) as sandbox:
        sandbox.client.close()
        headers = {"Host": "sandbox.example", **bearer(sandbox)}
        address = f"http://127.0.0.1:{port}"
        sandbox.client = httpx.Client(base_url=address, headers=headers, verify=TLS)
        yield sandbox


@pytest.fixture(scope="module")
def published() -> Iterator[Sandbox]:
    with publishing() as sandbox:
        yield sandbox


def bearer(sandbox: Sandbox) -> dict[str, str]:
    return {"Authorization": f"Bearer {sandbox.portal_token}"}


@pytest.mark.parametrize("headers", FORWARDED, ids=names)
def test_a_forwarded_request_controls_nothing(sandbox: Sandbox, headers: dict[str, str]) -> None:
    """What a proxy on this machine passes on is refused unless it carries the token."""
    for method, path in [("GET", "health"), ("POST", "keys/rotate"), ("GET", "no/such/path")]:
        refused = sandbox.client.request(method, f"/sandbox/{path}", headers=headers)
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "FORBIDDEN")
    admitted = sandbox.client.get("/sandbox/health", headers=headers | bearer(sandbox))
    assert admitted.json() == {"status": "ready"}


@pytest.mark.parametrize("host", HOSTS)
def test_a_rebound_name_controls_nothing(sandbox: Sandbox, host: str) -> None:
    """A name of somebody else's that leads to this machine is refused unless the token comes."""
    refused = sandbox.client.get("/sandbox/health", headers={"Host": host})
    assert refused.status_code == 403
    admitted = sandbox.client.get("/sandbox/health", headers={"Host": host, **bearer(sandbox)})
    assert admitted.status_code == 200


def test_a_wrong_token_admits_nobody(sandbox: Sandbox) -> None:
    """Nor does the token in another scheme, in the address or in a cookie."""
    token = sandbox.portal_token
    attempts: list[dict[str, str]] = [
        {"Authorization": f"Bearer {token}x"},
        {"Authorization": "Bearer"},
        {"Authorization": f"Basic {token}"},
        {"Authorization": token},
        {"Cookie": f"sandbox_portal_session={token}"},
    ]
    for attempt in attempts:
        refused = sandbox.client.get(
            "/sandbox/health", params={"token": token}, headers=STRANGER | attempt
        )
        assert refused.status_code == 403


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "LocalHost."])
def test_this_machine_needs_no_token(sandbox: Sandbox, name: str) -> None:
    """Loopback, by a loopback name, with no trace of a proxy."""
    host = f"{name}:{sandbox.port}"
    assert sandbox.client.get("/sandbox/health", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_page_of_another_site_reads_nothing(sandbox: Sandbox, site: str) -> None:
    """The browser says for whom it asks, also where it sends no origin."""
    refused = sandbox.client.get("/sandbox/requests", headers={"Sec-Fetch-Site": site})
    assert refused.status_code == 403


def test_a_published_sandbox_is_controlled_by_the_token_alone(published: Sandbox) -> None:
    """Behind a proxy that leaves no trace, every request comes from this machine."""
    for host in ("127.0.0.1", "localhost", "sandbox.example"):
        headers = {"Host": host, "Authorization": ""}
        assert published.client.get("/sandbox/health", headers=headers).status_code == 403
    assert published.client.get("/sandbox/health").status_code == 200


# The portal


def sign_in(
    sandbox: Sandbox, password: str, headers: dict[str, str]
) -> tuple[Developer, httpx.Response]:
    developer = Developer(sandbox)
    developer.browser.headers.update(headers)
    page = developer.open("/portal/sign-in")
    return developer, developer.submit(page, email="developer@sandbox.example", password=password)


@pytest.mark.parametrize("headers", FORWARDED, ids=names)
def test_the_fixed_password_is_for_this_machine(sandbox: Sandbox, headers: dict[str, str]) -> None:
    """From elsewhere it signs nobody in, and the page does not show it."""
    _developer, page = sign_in(sandbox, "sandbox-developer", headers)
    assert "do not match a developer account" in page.text
    assert "sandbox-developer" not in page.text
    assert "sandbox-developer" in Developer(sandbox).open("/portal/sign-in").text


def test_the_fixed_password_is_not_for_a_published_sandbox(published: Sandbox) -> None:
    """However the request names the host."""
    for host in ("127.0.0.1", "sandbox.example"):
        page = published.client.get("/portal/sign-in", headers={"Host": host})
        assert page.status_code == 200
        assert "sandbox-developer" not in page.text


def test_the_token_signs_in_from_elsewhere(sandbox: Sandbox) -> None:
    """The operator has it from the sandbox's first lines."""
    developer, page = sign_in(sandbox, sandbox.portal_token, STRANGER)
    assert page.url.path == "/portal/"
    assert developer.open("/portal/").url.path == "/portal/"


def test_the_session_is_not_the_token(sandbox: Sandbox) -> None:
    """The cookie opens the portal and nothing else, and the token is no cookie."""
    developer, _page = sign_in(sandbox, "sandbox-developer", {})
    session = developer.browser.cookies["sandbox_portal_session"]
    assert session != sandbox.portal_token
    used = {"Authorization": f"Bearer {session}", **STRANGER}
    assert sandbox.client.get("/sandbox/health", headers=used).status_code == 403
    made = sandbox.client.post("/api/v1/developer/test-users", json={}, headers=used)
    assert made.status_code == 401
    stranger = Developer(sandbox)
    stranger.browser.cookies.set("sandbox_portal_session", sandbox.portal_token)
    assert stranger.open("/portal/").url.path == "/portal/sign-in"


def test_a_session_by_the_fixed_password_stays_on_this_machine(sandbox: Sandbox) -> None:
    """A cookie that somebody carried off opens nothing from elsewhere."""
    developer, _page = sign_in(sandbox, "sandbox-developer", {})
    developer.browser.headers.update(STRANGER)
    assert developer.open("/portal/").url.path == "/portal/sign-in"


def test_a_session_that_was_ended_is_over(sandbox: Sandbox) -> None:
    """Signing out ends the session itself, not only the browser's cookie."""
    developer, page = sign_in(sandbox, "sandbox-developer", {})
    kept = developer.browser.cookies["sandbox_portal_session"]
    developer.submit(page, "/portal/sign-out")
    thief = Developer(sandbox)
    thief.browser.cookies.set("sandbox_portal_session", kept)
    assert thief.open("/portal/").url.path == "/portal/sign-in"


# Webhooks


def register(
    sandbox: Sandbox, application: Application, url: str, **headers: str
) -> httpx.Response:
    return sandbox.client.post(
        f"/sandbox/applications/{application.registration['app_id']}/webhook",
        json={"url": url, "secret": "whsec_of_the_tests"},
        headers=headers,
    )


def attempts_of(application: Application) -> list[dict[str, object]]:
    until(lambda: application.deliveries()[0]["attempts"])
    listed: list[dict[str, object]] = application.deliveries()[0]["attempts"]
    return listed


@pytest.mark.parametrize("url", PRIVATE)
def test_a_stranger_aims_no_webhook_at_this_network(
    sandbox: Sandbox, application: Application, receiver: Receiver, url: str
) -> None:
    """Not by the control API with the token, nor in the portal, in whatever form of address."""
    target = url.format(port=receiver.port)
    refused = register(sandbox, application, target, **STRANGER, **bearer(sandbox))
    assert refused.status_code == 400
    assert "this machine" in refused.json()["error"]["message"]
    developer, _page = sign_in(sandbox, sandbox.portal_token, STRANGER)
    page = developer.open(f"/portal/applications/{application.registration['app_id']}")
    action = f"/portal/clients/{application.client_id}/webhook"
    assert "this machine" in developer.submit(page, action, **{"test-url": target}).text
    assert receiver.requests == []


@pytest.mark.parametrize(
    "host", ["shop.example", "8.8.8.8", "[2606:4700:4700::1111]", "[::ffff:8.8.8.8]"]
)
def test_a_stranger_may_aim_a_webhook_at_the_outside(
    sandbox: Sandbox, application: Application, host: str
) -> None:
    """Public addresses, and names that this machine does not know by itself, are taken."""
    registered = register(
        sandbox, application, f"https://{host}/hook", **STRANGER, **bearer(sandbox)
    )
    assert registered.status_code == 200


def test_a_name_that_leads_to_this_network_is_not_followed(
    sandbox: Sandbox, application: Application, person: Person, receiver: Receiver
) -> None:
    """What a name stands for is looked at when the event leaves, not when it is registered."""
    name = socket.gethostname()
    assert not re.fullmatch(r"[0-9.]+", name)
    registered = register(
        sandbox, application, f"http://{name}:{receiver.port}/", **STRANGER, **bearer(sandbox)
    )
    assert registered.status_code == 200
    person.consent_to(application)
    (attempt,) = attempts_of(application)[:1]
    assert attempt["status"] is None
    assert "private" in str(attempt["problem"])
    assert receiver.requests == []


def test_this_machine_may_aim_a_webhook_at_itself(
    sandbox: Sandbox, application: Application, person: Person, receiver: Receiver
) -> None:
    """That is what it is for: the site under test runs beside it."""
    assert register(sandbox, application, receiver.url).status_code == 200
    person.consent_to(application)
    receiver.wait_for(1)


def test_a_stranger_reads_no_answer_of_this_network(
    sandbox: Sandbox, application: Application, person: Person, receiver: Receiver
) -> None:
    """What a private address answered is shown on this machine alone."""
    receiver.body = b"secret of the intranet"
    register(sandbox, application, receiver.url)
    person.consent_to(application)
    assert attempts_of(application)[0]["excerpt"] == "secret of the intranet"
    developer, _page = sign_in(sandbox, sandbox.portal_token, STRANGER)
    number = application.deliveries()[0]["id"]
    shown = developer.open(f"/portal/deliveries/{number}").text
    shown += developer.open(f"/portal/clients/{application.client_id}/deliveries").text
    for path in ("deliveries", f"deliveries/{number}"):
        headers = STRANGER | bearer(sandbox)
        shown += sandbox.client.get(f"/sandbox/{path}", headers=headers).text
    assert "intranet" not in shown
    assert "own machine" in shown
    developer, _page = sign_in(sandbox, "sandbox-developer", {})
    assert "intranet" in developer.open(f"/portal/deliveries/{number}").text


def test_a_redirect_leads_nowhere(
    sandbox: Sandbox, application: Application, person: Person, receiver: Receiver
) -> None:
    """A public receiver cannot send the sandbox on to a private one."""
    with Receiver() as inside:
        receiver.answers, receiver.location = [307], inside.url
        register(sandbox, application, receiver.url)
        person.consent_to(application)
        assert "not followed" in str(attempts_of(application)[0]["problem"])
        assert inside.requests == []


@pytest.mark.processes
def test_the_operator_may_name_a_private_host() -> None:
    """In a container nobody is local: the command line says which hosts are the site's."""
    name = socket.gethostname()
    with publishing("--webhook-host", name) as sandbox:
        application, person = Application(sandbox), Person(sandbox)
        assert register(sandbox, application, "http://127.0.0.1:1/").status_code == 400
        assert register(sandbox, application, f"http://{name.upper()}:1/").status_code == 200
        person.consent_to(application)
        assert "private" not in str(attempts_of(application)[0]["problem"])
