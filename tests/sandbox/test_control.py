"""Who controls the sandbox, and how: faults, the request log, refusals."""

import hashlib
import json
import time
from collections.abc import Iterator
from dataclasses import replace

import httpx
import pytest

from django_identity.testing.sandbox import running_sandbox
from example_project.demo.processes import free_port
from tests.sandbox.driver import ADA, CONNECT_SCOPES, Person, Sandbox, Visitor, refusal

TOKEN = "a-token-for-control-alone"
PAGES = (
    "/",
    "/console/activity",
    "/console/credential",
    "/console/switches",
    "/portal/",
)
ON_THE_WAY = [
    "X-Forwarded-For:203.0.113.9",
    "X-Forwarded-For:",
    "X-Forwarded-Host:sandbox.example",
    "X-Forwarded-Proto:https",
    "Forwarded:for=203.0.113.9",
    "X-Real-IP:203.0.113.9",
    "Via:1.1 proxy",
    "CF-Connecting-IP:203.0.113.9",
    "True-Client-IP:203.0.113.9",
]


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
    "sent",
    ["", "Bearer", "Bearer x", f"Basic {TOKEN}", f"Bearer {TOKEN}x"],
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


JWKS = "/.well-known/jwks.json"


def order(sandbox: Sandbox, kind: str, **about: object) -> None:
    sandbox.control("POST", "faults", **{"kind": kind, "endpoint": "jwks", **about})


def test_status_fault_strikes_as_often_as_ordered(sandbox):
    """One for two requests strikes two; one without a number strikes until it is deleted."""
    page = {"body": "<h1>down</h1>", "headers": {"Content-Type": "text/html"}}
    order(sandbox, "status", times=2, status=503, **page)
    answers = [sandbox.client.get(JWKS) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [503, 503, 200]
    assert answers[0].text == "<h1>down</h1>"
    assert answers[0].headers["Content-Type"] == "text/html"
    order(sandbox, "status", endpoint="", path="/.well-known/", times=None)
    assert [sandbox.client.get(JWKS).status_code for _ in range(3)] == [500] * 3
    assert sandbox.client.get("/account/sign-in").status_code == 200
    assert sandbox.control("DELETE", "faults") == []
    assert sandbox.client.get(JWKS).status_code == 200


def test_every_kind_of_fault_can_be_ordered(sandbox):
    """A 429 with Retry-After, a 200 that breaks off, a late answer, and no whole answer at all."""
    order(sandbox, "rate_limit", retry_after=7)
    answer = sandbox.client.get(JWKS)
    assert refusal(answer) == (429, "RATE_LIMITED")
    assert answer.headers["Retry-After"] == "7"
    order(sandbox, "malformed")
    answer = sandbox.client.get(JWKS)
    assert answer.status_code == 200
    with pytest.raises(ValueError, match="Expecting"):
        answer.json()
    for kind in ("drop", "drop_midway"):
        order(sandbox, kind)
        with pytest.raises(httpx.RemoteProtocolError):
            sandbox.client.get(JWKS)
    order(sandbox, "delay", seconds=0.3)
    started = time.monotonic()

    assert sandbox.client.get(JWKS).json()["keys"]
    assert time.monotonic() - started >= 0.3


@pytest.mark.parametrize(("when", "status"), [("before", 200), ("after", 400)])
def test_a_lost_answer_may_have_spent_the_refresh_token(
    application,
    person,
    when,
    status,
):
    """A drop *after* rotates the refresh token, whose answer nobody gets; one *before* does not."""
    tokens = person.tokens_for(application)
    order(application.sandbox, "drop", endpoint="token", when=when)
    with pytest.raises(httpx.RemoteProtocolError):
        application.refresh(tokens["refresh_token"])
    assert application.refresh(tokens["refresh_token"]).status_code == status


def test_request_log_shows_a_secret_presented_twice(sandbox, application, person):
    """Secrets are kept as digests, so that a repeat can be counted and nothing leaks."""
    tokens, code = person.tokens_for(application), person.make_code()
    sandbox.control("DELETE", "requests")
    for _ in range(2):
        application.refresh(tokens["refresh_token"])
        application.connect(code)
    log = sandbox.control("GET", "requests")
    told = [(entry["endpoint"], entry["status"]) for entry in log]
    assert told == [("token", 200), ("connect", 200), ("token", 400), ("connect", 400)]
    sent = {"refresh_token": tokens["refresh_token"], "connect_code": code}
    for name, secret in sent.items():
        digest = "sha256:" + hashlib.sha256(secret.encode()).hexdigest()[:16]
        assert [each["form"].get(name) for each in log].count(digest) == 2
    assert log[1]["form"]["scopes"] == CONNECT_SCOPES
    for secret in (code, application.client_secret, *map(str, tokens.values())):
        assert secret in ("Bearer", "3600", tokens["scope"]) or secret not in str(log)


#: Where, what is sent, and what the refusal says.
WRONG: list[tuple[str, dict[str, object], str]] = [
    ("clock", {"set": "2031-02-03T04:05:06"}, "set must be like"),
    ("clock", {}, "one of advance, offset, set and reset"),
    ("clock", {"advance": "60"}, "advance must be a number"),
    ("clock", {"advance": float("nan")}, "not JSON"),
    ("clock", {"advance": -(10**30)}, "out of the calendar"),
    ("clock", {"offset": 1e300}, "out of the calendar"),
    ("clock", {"set": "9999-12-31T23:59:59Z"}, "out of the calendar"),
    ("faults", {"kind": "delay", "seconds": 10**400}, "seconds must be"),
    ("faults", {"kind": "drop", "endpoint": "x"}, "no endpoint of that name"),
    ("faults", {"kind": "drop", "times": True}, "times must be a whole number or null"),
    ("faults", {"kind": "drop", "headers": []}, "headers must be an object"),
    ("faults", {}, "kind is missing"),
    ("switches", {"token_subject": "email"}, "token_subject cannot be 'email'"),
    ("switches", {"decoys": 3}, "decoys is no member"),
    ("applications", {"redirect_uris": ["a b"]}, "redirect_uris needs"),
    ("applications", {"redirect_uris": [1]}, "redirect_uris must be a list of strings"),
    (
        "applications",
        {"redirect_uris": ["x:/"], "client_secrets": {"test": 1}},
        "client_sec",
    ),
    (
        "applications/{app}/webhook",
        {"url": "ftp://shop.example/"},
        "url: an address is like",
    ),
    ("users", {"environment": "staging"}, "environment is one of live, test"),
    ("users", {"email": "{email}"}, "email or subject is taken"),
    ("users", {"date_of_birth": "1.2.90"}, "date_of_birth must be like 1990-01-31"),
    ("users", {"credential_seconds": 2**63}, "credential_seconds must be"),
    ("users/{user}/invalidate", {"bvn": "1"}, "bvn is no member; it takes none"),
    (
        "applications",
        {"redirect_uris": ["https://a.example/"], "name": "\ud800"},
        "not JSON",
    ),
    ("events", {"client_id": "{client}", "event_type": "\ud800"}, "not JSON"),
    (
        "events",
        {"client_id": "{client}", "event_type": "x", "data": []},
        "data must be an obj",
    ),
    (
        "deliveries/release",
        {"client_id": "{client}", "backwards": 1},
        "backwards must be true",
    ),
]


@pytest.mark.parametrize(("path", "body", "named"), WRONG)
def test_a_wrong_member_is_named(shop, resident, path, body, named):
    """A control request that cannot be followed is a 400 that says which member is wrong."""
    ids = {"app": shop.app_id, "user": resident.user_id}
    content = json.dumps(body).replace("{client}", shop.client_id)
    content = content.replace("{email}", resident.account["email"])
    answer = shop.sandbox.client.post(f"/sandbox/{path.format(**ids)}", content=content)
    assert refusal(answer) == (400, "INVALID_REQUEST")
    assert named in answer.json()["error"]["message"]
