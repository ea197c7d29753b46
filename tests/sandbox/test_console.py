"""The console: what happens as it happens, a credential taken apart, and what a test would do."""

import html
import re
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from tests.sandbox.driver import TLS, Application, Person, Sandbox, Visitor, bearer
from tests.sandbox.receiver import Receiver, until
from tests.sandbox.test_way_in import FORWARDED, STRANGER

ADA = "00000000-0000-4000-8000-000000000001"


@pytest.fixture
def visitor(sandbox: Sandbox) -> Visitor:
    return Visitor(sandbox)


def words(page: httpx.Response) -> str:
    """What the page says, without its markup."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page.text)).split())


@contextmanager
def listening(sandbox: Sandbox, path: str, **headers: str) -> Iterator[Iterator[str]]:
    """The lines of the stream."""
    with (
        httpx.Client(base_url=sandbox.origin, timeout=10, verify=TLS) as client,
        client.stream("GET", path, headers=headers) as answer,
    ):
        assert answer.headers["Content-Type"] == "text/event-stream"
        yield answer.iter_lines()


def following(lines: Iterator[str], *texts: str) -> str:
    """Read until a line of data has all the texts; return the id before it."""
    last = ""
    for line in lines:
        if line.startswith("id: "):
            last = line.removeprefix("id: ")
        if line.startswith("data: ") and all(text in line for text in texts):
            return last
    raise AssertionError("The stream ended.")


def test_it_lists_requests_events_and_deliveries(
    sandbox: Sandbox, hearing: Application, receiver: Receiver, visitor: Visitor
) -> None:
    """Without JavaScript: what happened before the page was loaded."""
    person = Person(sandbox, verified=True)
    tokens = person.tokens_for(hearing)
    sandbox.client.get(f"/api/v1/users/{person.user_id}/kyc", headers=bearer(tokens))
    receiver.wait_for(1)
    until(lambda: hearing.deliveries()[0]["attempts"])
    page = visitor.open("/")
    said = words(page)
    assert f"Request: GET /api/v1/users/{person.user_id}/kyc 200" in said
    assert "Event: consent.granted" in said
    assert f"about {person.user_id}, for Example shop (test)" in said
    assert f"Delivery: consent.granted → {receiver.url} 200" in said
    assert tokens["access_token"] not in page.text
    assert "<script>" not in page.text
    assert "style=" not in page.text


def test_it_lists_what_happens_from_then_on(
    sandbox: Sandbox, hearing: Application, visitor: Visitor
) -> None:
    """Each of the three kinds, once, and no more of it after a reconnection."""
    person = Person(sandbox, verified=True)
    stream = re.search(r'data-stream="([^"]+)"', visitor.open("/").text)[1]
    with listening(sandbox, stream) as lines:
        sandbox.client.get("/.well-known/jwks.json")
        following(lines, "/.well-known/jwks.json", ">200<")
        person.consent_to(hearing)
        following(lines, "consent.granted", "event")
        read = following(lines, "consent.granted", "delivery", ">200<")
    person.cause(f"consents/{hearing.client_id}/revoke")
    with listening(sandbox, stream, **{"Last-Event-ID": read}) as lines:
        assert "consent.revoked" in next(each for each in lines if each.startswith("data: "))


@pytest.mark.parametrize("place", ["", "x", "1-2", "9999999-9999999-9999999", "1-2-3-4", "-1-0-0"])
def test_a_place_that_is_none_is_no_error(sandbox: Sandbox, place: str) -> None:
    """After a restart a page asks with the numbers of another process."""
    with listening(sandbox, f"/console/stream?from={place}") as lines:
        assert next(lines) == "retry: 1000"
        sandbox.client.get("/.well-known/jwks.json")
        following(lines, "/.well-known/jwks.json")


def test_what_it_shows_is_text(sandbox: Sandbox, visitor: Visitor) -> None:
    """A path is whatever somebody requests."""
    with listening(sandbox, "/console/stream") as lines:
        sandbox.client.get("/<img src=x onerror=alert(1)>%0Adata: x")
        following(lines, "&lt;img src=x onerror=alert(1)&gt;")
    assert "<img src=x" not in visitor.open("/").text


@pytest.mark.processes
def test_it_ends_with_the_sandbox() -> None:
    """An open page does not keep the process from stopping."""
    with Sandbox() as sandbox, listening(sandbox, "/console/stream") as lines:
        assert next(lines)
        assert sandbox.stop() == 0


def test_it_does_not_log_itself(sandbox: Sandbox, visitor: Visitor) -> None:
    """And no fault hits it, also not one for every request."""
    sandbox.control("DELETE", "requests")
    sandbox.control("POST", "faults", kind="status", times=None)
    assert visitor.open("/").status_code == 200
    assert visitor.open("/static/sandbox/console.js").status_code == 200
    assert sandbox.control("GET", "requests") == []


# What the buttons do


def press(visitor: Visitor, action: str, **fields: str) -> str:
    """Press a button of the console; what the page says then."""
    return words(visitor.submit(visitor.open("/"), action, **fields))


def number_of(visitor: Visitor, person: str) -> str:
    """The value that stands for a person in the list of people."""
    return re.search(rf'<option value="(\d+)">[^<]*\({person}\)', visitor.open("/").text)[1]


@pytest.mark.parametrize(
    ("act", "said", "status", "claims"),
    [
        ("revoke_claim", "the claim “18 or older” is revoked", "verified", 3),
        ("issue_claim", "the claim “18 or older” is issued", "verified", 4),
        ("invalidate", "the verification is taken back", "unverified", 0),
        ("reject", "rejected", "rejected", 0),
        ("verify", "verified", "verified", 4),
        ("delete", "asked for deletion", "verified", 4),
    ],
)
def test_something_happens_to_a_person(
    sandbox: Sandbox, visitor: Visitor, act: str, said: str, status: str, claims: int
) -> None:
    """The same as by the control API."""
    person = Person(sandbox, verified=True)
    number = number_of(visitor, person.account["email"])
    fields = {"person": number, "claim_type": "age_over_18", "do": act}
    assert said in press(visitor, "/console/person", **fields)
    now = sandbox.control("GET", f"users/{person.user_id}")
    active = [each for each in now["claims"].values() if not each["revoked"]]
    assert (now["kyc_status"], len(active)) == (status, claims)
    assert now["deletion_requested"] == (act == "delete")


def test_access_is_revoked(sandbox: Sandbox, hearing: Application, visitor: Visitor) -> None:
    """Of every application, and each is told."""
    person = Person(sandbox, verified=True)
    person.consent_to(hearing)
    number = number_of(visitor, person.account["email"])
    fields = {"person": number, "claim_type": "age_over_18", "do": "revoke_consents"}
    assert "lost its access" in press(visitor, "/console/person", **fields)
    assert sandbox.control("GET", f"users/{person.user_id}")["consents"] == {}
    assert hearing.deliveries()[-1]["event_type"] == "consent.revoked"


def test_what_does_not_exist_changes_nothing(sandbox: Sandbox, visitor: Visitor) -> None:
    """An action or a person of which the page knows nothing."""
    fields = {"person": "999999", "claim_type": "age_over_18", "do": "delete"}
    assert "does not exist" in press(visitor, "/console/person", **fields)
    number = number_of(visitor, "ada@sandbox.example")
    fields |= {"person": number, "do": "nothing"}
    assert "does not exist" in press(visitor, "/console/person", **fields)
    assert not sandbox.control("GET", f"users/{ADA}")["deletion_requested"]


def test_keys_clock_and_faults(sandbox: Sandbox, visitor: Visitor) -> None:
    """Each button does what it says."""
    before = sandbox.control("GET", "keys")["signing"]
    assert "A new key signs" in press(visitor, "/console/keys")
    rotated = sandbox.control("GET", "keys")
    assert rotated["signing"] != before
    assert before in rotated["published"]
    assert "is withdrawn" in press(visitor, "/console/keys", withdraw="1")
    assert rotated["signing"] not in sandbox.control("GET", "keys")["published"]
    press(visitor, "/console/clock", seconds="90000")
    assert 89_999 < sandbox.control("GET", "clock")["offset_seconds"] < 90_001
    press(visitor, "/console/clock", seconds="")
    assert sandbox.control("GET", "clock")["offset_seconds"] == 0
    press(visitor, "/console/faults", endpoint="jwks", kind="rate_limit")
    assert sandbox.client.get("/.well-known/jwks.json").status_code == 429
    assert sandbox.client.get("/.well-known/jwks.json").status_code == 200
    press(visitor, "/console/faults", endpoint="jwks", kind="status")
    assert "No call fails" in press(visitor, "/console/faults", forget="1")
    assert sandbox.control("GET", "faults") == []


def test_every_switch_is_explained_and_turned(sandbox: Sandbox, visitor: Visitor) -> None:
    """A field for each, with its help."""
    page = visitor.open("/console/switches")
    before = sandbox.control("GET", "switches")
    for name in before:
        assert f'name="{name}"' in page.text
    assert "how the token answer names the subject" in page.text
    turned = {name: str(value) for name, value in before.items() if value is not False}
    del turned["users_me"]
    page = visitor.submit(page, "/switches/save", **turned | {"token_subject": "sub"})
    assert "The switches are saved" in page.text
    changed = sandbox.control("GET", "switches")
    assert changed == before | {"token_subject": "sub", "users_me": False}
    page = visitor.submit(page, "/switches/save", **turned | {"decoys": "101"})
    assert "nothing was changed" in page.text
    assert sandbox.control("GET", "switches") == changed
    page = visitor.submit(page, "/switches/save", reset="1")
    assert sandbox.control("GET", "switches") == before


# The credential


def take_apart(visitor: Visitor, credential: str) -> str:
    page = visitor.open("/console/credential")
    return words(visitor.submit(page, "/console/credential", credential=credential))


def test_a_credential_is_taken_apart(
    sandbox: Sandbox, application: Application, visitor: Visitor
) -> None:
    """One that an application got: everything holds, until a byte is changed or time passes."""
    person = Person(sandbox, verified=True)
    tokens = person.tokens_for(application)
    answer = sandbox.client.get("/api/v1/users/me/claims", headers=bearer(tokens)).json()
    credential = answer["data"]["credential"]
    said = take_apart(visitor, credential)
    for shown in ("ES256", "dc+sd-jwt", person.user_id, application.client_id, "age_over_18"):
        assert shown in said
    assert said.count(" listed in _sd") == 5
    assert "Yes The signature is right" in said
    token, *disclosures = credential.split("~")
    foreign = "~".join([token, "WyJzYWx0IiwgImFnZV9vdmVyXzIxIiwgdHJ1ZV0", *disclosures])
    assert "not listed in _sd" in take_apart(visitor, foreign)
    fewer = take_apart(visitor, "~".join([token, *disclosures[1:]]))
    assert "1 digest in _sd has no disclosure here" in fewer
    assert "No The credential ends with ~" in take_apart(visitor, credential.rstrip("~"))
    header, payload, signature = token.split(".")
    forged = ".".join([header, payload, signature[:-4] + "AAAA"]) + "~"
    assert "No The signature is wrong" in take_apart(visitor, forged)
    sandbox.control("POST", "clock", advance=90_000)
    assert "No It expired on" in take_apart(visitor, credential)
    sandbox.control("POST", "keys/withdraw", kid=sandbox.control("GET", "keys")["signing"])
    assert "No No published key" in take_apart(visitor, credential)


def test_a_credential_is_issued_to_be_taken_apart(sandbox: Sandbox, visitor: Visitor) -> None:
    """Of whom and for which application one picks."""
    application = Application(sandbox, name="Picked shop")
    page = visitor.open("/console/credential")
    client = re.search(r'<option value="(\d+)">Picked shop \(test\)', page.text)[1]
    fields = {"person": number_of(visitor, "ada@sandbox.example"), "client": client}
    said = words(visitor.submit(page, "/console/credential", **fields))
    assert "Yes The signature is right" in said
    assert application.client_id in said
    assert ADA in said


@pytest.mark.parametrize(
    "text",
    ["x", "a.b.c~", "..~", "e30.e30~", "W10.W10.x~", "eyJ9.e30.x~", "[" * 5000 + ".e30.x~", "~~~"],
)
def test_what_is_no_credential_is_said(visitor: Visitor, text: str) -> None:
    """In words, not by a traceback."""
    assert "The signed token" in take_apart(visitor, text) or "A part of" in take_apart(
        visitor, text
    )


@pytest.mark.parametrize(
    "token", ["e30.e30.x~", "e30.eyJleHAiOiAieCJ9.x~W10~bad!~", "e30.eyJfc2QiOjF9.~"]
)
def test_what_is_hardly_one_is_shown(visitor: Visitor, token: str) -> None:
    """With what is wrong."""
    assert "No published key has the header's kid" in take_apart(visitor, token)


# Who may look


@pytest.mark.parametrize(
    "path", ["/", "/console/stream", "/console/credential", "/console/switches"]
)
@pytest.mark.parametrize(
    "headers", [FORWARDED[0], {"Host": "attacker.example"}], ids=["proxy", "host"]
)
def test_others_sign_in_first(sandbox: Sandbox, path: str, headers: dict[str, str]) -> None:
    """As in the portal, and with the token alone."""
    page = sandbox.client.get(path, headers=headers)
    assert page.status_code in {302, 400}
    assert page.headers.get("Location", "/portal/sign-in").startswith("/portal/sign-in")


def test_the_token_opens_it_from_elsewhere(sandbox: Sandbox, visitor: Visitor) -> None:
    """As it opens the portal."""
    visitor.browser.headers.update(STRANGER)
    page = visitor.open("/")
    assert page.url.path == "/portal/sign-in"
    fields = {"email": "developer@sandbox.example", "password": sandbox.portal_token}
    page = visitor.submit(page, **fields)
    assert page.url.path == "/"
    assert "What happens" in page.text


@pytest.mark.parametrize("path", ["person", "keys", "clock", "faults", "switches/save"])
def test_no_foreign_form_does_anything(visitor: Visitor, path: str) -> None:
    """Each needs the token of the page."""
    assert visitor.browser.post(f"/console/{path}").status_code == 403
    assert visitor.browser.get(f"/console/{path}").status_code == 405
