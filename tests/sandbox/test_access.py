"""Who controls the sandbox: this machine without a token, everybody else with the control token."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from django_identity.testing.sandbox import running_sandbox
from example_project.demo.processes import free_port
from tests.sandbox.driver import ADA, Person, Sandbox, Visitor, refusal

TOKEN = "a-token-for-control-alone"
PAGES = (
    "/", "/console/activity", "/console/credential", "/console/switches", "/portal/",
)  # fmt: skip
ON_THE_WAY = [
    "X-Forwarded-For:203.0.113.9", "X-Forwarded-For:", "X-Forwarded-Host:sandbox.example",
    "X-Forwarded-Proto:https", "Forwarded:for=203.0.113.9", "X-Real-IP:203.0.113.9",
    "Via:1.1 proxy", "CF-Connecting-IP:203.0.113.9", "True-Client-IP:203.0.113.9",
]  # fmt: skip


@pytest.fixture(scope="module")
def published() -> Iterator[Sandbox]:
    """A sandbox under a name of its own, whose client sends the token."""
    here = f"http://127.0.0.1:{free_port()}"
    listening = ("--port", here.rpartition(":")[2], "--control-token", TOKEN)
    with (
        running_sandbox("--origin", "https://sandbox.example", *listening) as running,
        Sandbox(replace(running, auth_url=here)) as sandbox,
    ):
        sandbox.client.headers["Authorization"] = f"Bearer {TOKEN}"
        yield sandbox


@pytest.mark.parametrize("line", ON_THE_WAY)
def test_whoever_comes_from_elsewhere_controls_nothing(sandbox, line):
    """API and pages refuse it, and the well-known password of the cast does not sign it in."""
    browser = sandbox.open_browser()
    browser.headers.update([line.split(":")])
    assert refusal(browser.get("/sandbox/health")) == (403, "FORBIDDEN")
    for page in PAGES:
        assert browser.get(page).headers["Location"].startswith("/console/operator")
    page = browser.get("/account/sign-in")
    assert ADA not in page.text
    assert "sandbox-person" not in page.text
    form = {"csrfmiddlewaretoken": page.cookies["sandbox_csrftoken"], "person": ADA}
    pressed = browser.post("/account/continue", data=form)
    assert pressed.headers["Location"].startswith("/console/operator")
    form |= {"email": "ada@sandbox.example", "password": "sandbox-person"}
    assert "do not match an account" in browser.post("/account/sign-in", data=form).text


@pytest.mark.parametrize(
    "line",
    ["Origin:https://attacker.example", "Origin:null", "Sec-Fetch-Site:cross-site"],
)
def test_a_page_of_another_site_controls_nothing(sandbox, line):
    """The browser runs on this machine, but its requests name where they come from."""
    headers = [tuple(line.split(":", 1))]
    answer = sandbox.client.post("/sandbox/keys/rotate", headers=headers)
    assert answer.status_code == 403


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]"])
def test_this_machine_needs_no_token(sandbox, host):
    named = {"Host": f"{host}:{sandbox.port}"}
    answer = sandbox.client.get("/sandbox/health", headers=named)
    assert answer.json() == {"status": "ready"}


@pytest.mark.parametrize(
    "sent", ["", "Bearer", "Bearer x", f"Basic {TOKEN}", f"Bearer {TOKEN}x"]
)
def test_a_published_sandbox_needs_the_token(published, sent):
    """From this machine too: a proxy may run here. The portal's token opens its endpoints alone."""
    for value in (sent, f"Bearer {published.portal_token}"):
        sent = {"Authorization": value}
        refused = published.client.get("/sandbox/health", headers=sent)
        assert refusal(refused) == (403, "FORBIDDEN")
    elsewhere = {"X-Forwarded-For": "203.0.113.9", "Origin": "https://tool.example"}
    assert published.client.get("/sandbox/health", headers=elsewhere).status_code == 200
    made = published.client.post("/api/v1/developer/test-users", json={})
    assert made.status_code == 401


def test_the_token_opens_the_pages(published):
    """It is typed in once and counts until the process ends; the browser keeps no token."""
    visitor = Visitor(published)
    page = visitor.browser.get("/console/switches", follow_redirects=True)
    page = visitor.submit(page, token="wrong")
    assert "That is not the control token" in page.text
    page = visitor.submit(page, token=TOKEN)
    assert page.url.path == "/console/switches"
    assert TOKEN not in str(visitor.browser.cookies)
    assert ADA in visitor.browser.get("/account/sign-in").text
    stranger = Visitor(published).browser
    stranger.cookies.set("sandbox_operator", "1")
    assert stranger.get("/").status_code == 302
    page = stranger.get("/console/operator?next=https://attacker.example/")
    assert "attacker" not in page.text
    # With a password of their own.
    account = published.client.post("/sandbox/users", json={}).json()
    assert Person(published, account).sign_in().url.path == "/account/"
