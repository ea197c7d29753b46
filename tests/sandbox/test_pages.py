"""The sandbox's own pages: a person's, the console, and that of the applications."""

import html
import re
import sqlite3
from contextlib import closing

import pytest

from tests.sandbox.driver import (
    ADA,
    KEY,
    Application,
    Person,
    Pkce,
    Sandbox,
    Visitor,
    callback_parameters,
    refusal,
    started,
)
from tests.sandbox.receiver import until

CLAIMS = {"kyc_verified", "age_over_18", "country_resident", "unique_human"}
CASES = ("Ada", "Bruno", "Chidi", "Dayo", "Emeka", "Funmi", "ليلى", "Gozie")
BUTTON = re.compile(r'name="person" value="[^"]+">(.*?)</button>', re.DOTALL)
#: A number, and what verifying it says and leaves.
NUMBERS = [
    ("11111111111", "rejected", "name_mismatch", "The name on this BVN differs"),
    ("33333333333", "rejected", "not_found", "No record has this BVN"),
    ("00000000000", "unverified", "provider_unavailable", "Nothing has changed"),
    ("123", "rejected", "not_found", "No record has this BVN"),
    ("", "rejected", "not_found", "No record has this BVN"),
]


def test_the_sign_in_page_offers_the_whole_cast(sandbox):
    """Eight cases, each with a button and a password; nobody whom a test has made."""
    Person(sandbox)
    visitor = Visitor(sandbox)
    page = visitor.open("/account/sign-in")
    for button, name in zip(BUTTON.findall(page.text), CASES, strict=True):
        assert f"Continue as <bdi>{name}</bdi>" in button
    page = visitor.submit(page, email="ada@sandbox.example", password="sandbox-person")
    assert page.url.path == "/account/"
    other = Visitor(sandbox)
    page = other.submit(other.open("/account/sign-in"), "/account/continue", person=ADA)
    assert page.url.path == "/account/"


def test_wrong_password_is_refused(person):
    """The message does not tell which half was wrong; the right pair leads to no other site."""
    page = person.open("/account/sign-in?next=/%5Cattacker.example/")
    for email in (person.account["email"], "nobody@sandbox.example"):
        refused = person.submit(page, email=email, password="wrong")
        assert "do not match an account" in refused.text
    refused = person.submit(page, "/account/continue", person=person.user_id)
    assert "That test person is gone" in refused.text
    assert person.open("/account/").url.path == "/account/sign-in"
    assert person.sign_in(page).url.path == "/account/"
    assert set(person.browser.cookies) <= {"sandbox_session", "sandbox_csrftoken"}


def test_a_number_that_verifies_issues_every_claim(sandbox, application):
    """The sandbox asks on the way from a sign-in to the consent; *Not now* skips it once."""
    person = Person(sandbox)
    page = person.sign_in(person.open(application.authorization_url(Pkce())))
    assert person.submit(page, skip="1").url.path == "/oauth2/auth"
    page = person.open(application.authorization_url(Pkce()))
    assert page.url.path == "/account/verify"
    page = person.submit(page, bvn="222 2222 2222")
    assert "Your identity is verified" in page.text
    assert person.shown()["kyc_status"] == "verified"
    assert person.active_claims() == CLAIMS
    assert page.url.path == "/oauth2/auth"
    assert "code" in callback_parameters(person.submit(page, allow="Approve"))


@pytest.mark.parametrize(("bvn", "status", "outcome", "words"), NUMBERS)
def test_a_number_that_does_not_verify_is_explained(
    sandbox,
    bvn,
    status,
    outcome,
    words,
):
    """Only a rejection changes the status, and takes the claims of an earlier one back."""
    person = Person(sandbox)
    person.sign_in()
    page = person.submit(person.open("/account/verify"), bvn=bvn)
    assert words in page.text
    assert page.status_code == (503 if bvn == "00000000000" else 200)
    assert person.shown()["kyc_status"] == status
    assert person.active_claims() == set()
    verified = Person(sandbox, verified=True)
    asked = verified.cause("verify", bvn=bvn)
    left = status if status == "rejected" else "verified"
    assert asked["outcome"] == outcome
    assert asked["kyc_status"] == left
    assert (verified.active_claims() == set()) is (left == "rejected")


def test_person_revokes_a_consent(application, person):
    """The application's tokens end. The account page also deletes the account, asked once."""
    tokens = person.tokens_for(application)
    page = person.sign_in()
    page = person.submit(page, f"/account/consents/{application.client_id}/revoke")
    assert "Access is revoked" in page.text
    assert person.read(tokens, "profile").status_code == 401
    assert application.refresh(tokens["refresh_token"]).status_code == 400
    tokens = person.tokens_for(application)
    page = person.submit(person.open("/account/delete"), "/account/delete", delete="1")
    assert "Your account is closed" in page.text
    assert person.read(tokens, "profile").status_code == 401
    assert "do not match an account" in person.sign_in(person.open("/account/")).text


def test_person_revokes_a_claim(person):
    """The account page gives it back, unless nothing proves it any more."""
    page, human = person.sign_in(), "/account/claims/unique_human"
    page = person.submit(page, f"{human}/revoke")
    assert person.active_claims() == CLAIMS - {"unique_human"}
    assert "issued again" in person.submit(page, f"{human}/issue").text
    person.cause("invalidate")
    refused = person.submit(page, f"{human}/issue")
    assert "Verify your identity first" in refused.text
    assert person.active_claims() == set()


def test_change_without_csrf_token_is_refused(person):
    """Every page that changes something is protected, and says so."""
    person.sign_in()
    for path in (
        "sign-in",
        "sign-out",
        "continue",
        "verify",
        "verify/address",
        "delete",
        "claims/age_over_18/revoke",
        "claims/age_over_18/issue",
        "consents/x/revoke",
    ):
        page = person.browser.post(f"/account/{path}")
        assert page.status_code == 403, path
        assert "This form cannot be accepted" in page.text


def test_pages_load_nothing_foreign_and_are_not_framed(sandbox):
    """Every page sends a strict policy, holds no inline style or script, and shows text as text."""
    page = sandbox.client.get("/account/sign-in")
    unknown = sandbox.client.get("/<script>alert(1)</script>")
    assert unknown.status_code == 404
    assert "There is no such page" in unknown.text
    for each in (page, unknown):
        assert "default-src 'none'" in each.headers["Content-Security-Policy"]
        assert each.headers["X-Frame-Options"] == "DENY"
        assert "<script" not in each.text
        assert "style=" not in each.text
    assert page.headers["Cache-Control"] == "no-store"
    assert sandbox.client.get("/static/sandbox/sandbox.css").status_code == 200
    icon = sandbox.client.get("/favicon.ico")
    assert icon.status_code == 200
    assert icon.headers["Content-Type"] == "image/svg+xml"


@pytest.mark.integration
def test_an_internal_error_shows_no_traceback(tmp_path):
    """A person gets a page, a machine the envelope."""
    path = tmp_path / "broken.sqlite3"
    with started("--database", str(path)) as broken:
        with closing(sqlite3.connect(path)) as database, database:
            database.execute("DROP TABLE sandbox_user")
            database.execute("DROP TABLE sandbox_accesstoken")
        page = broken.client.get("/account/sign-in")
        assert page.status_code == 500
        assert "The sandbox has failed" in page.text
        assert "Traceback" not in page.text
        bearer = {"Authorization": "Bearer x"}
        answer = broken.client.get("/api/v1/users/x/kyc", headers=bearer)
        assert refusal(answer) == (500, "INTERNAL_ERROR")


LINE = re.compile(r'<li class="activity-.*?</li>', re.DOTALL)
REQUEST = re.compile(r'href="(/console/requests/\d+)"')


@pytest.fixture
def developer(sandbox: Sandbox) -> Visitor:
    return Visitor(sandbox)


def press(developer: Visitor, path: str, **fields: str) -> str:
    """Press a button of a page; what the page says then."""
    # The smallest page that has the token.
    developer.open("/account/sign-in")
    token = {"csrfmiddlewaretoken": developer.browser.cookies["sandbox_csrftoken"]}
    return developer.follow(developer.browser.post(path, data=token | fields)).text


def do(developer: Visitor, action: str, **fields: str) -> str:
    return press(developer, "/console/do", do=action, **fields)


def portal(developer: Visitor, action: str, **fields: str) -> str:
    return press(developer, "/portal/", do=action, **fields)


def once(page: str) -> list[str]:
    """What the page shows this once."""
    return [
        html.unescape(each) for each in re.findall(r'class="copied">([^<]+)<', page)
    ]


# What happened


def test_what_happens_is_listed_with_person_and_site(
    hearing,
    person,
    receiver,
    developer,
):
    """The newest first, as text: the last fifty. What went well, or has no such text, is hidden."""
    person.read(person.walk(hearing), "kyc")
    receiver.wait_for(1)
    # A delivery is in the list once it was answered, which is after the receiver has it.
    until(lambda: "consent.granted →" in developer.open("/").text)
    listed = LINE.findall(developer.open("/").text)
    about = [each for each in listed if "Ada Okafor" in each and "Example shop" in each]
    for words in ("/oauth2/token", "/users/me/kyc", "consent.granted →"):
        assert sum(words in each for each in about) == 1
    for _ in range(60):
        hearing.connect("CNX-AAAA-AAAA")
    hearing.connect(person.make_code())
    hearing.sandbox.client.get("/api/v1/<script>alert(1)</script>")
    shown = developer.open("/console/activity").text
    assert len(LINE.findall(shown)) == 50
    assert "&lt;script&gt;alert" in shown
    quiet = developer.open("/console/activity?quiet=1").text
    assert ">200<" in shown
    assert ">200<" not in quiet
    found = LINE.findall(developer.open("/?text=SCRIPT").text)

    assert all("script" in each for each in found)


def test_a_request_opens_without_its_secrets(application, person, developer):
    """What came, what was answered and what mends an error; of people's pages no content."""
    tokens = person.walk(application)
    credential = person.read(tokens, "claims").json()["data"]["credential"]
    application.connect(code := person.make_code())
    application.refresh("x", client_secret="x")

    addresses = REQUEST.findall(developer.open("/console/activity?pages=1").text)
    log = html.unescape("".join(developer.open(each).text for each in addresses))
    for words in (
        '"grant_type": "authorization_code"',
        '"access_token": "sha256:',
        "Bearer sha256:",
        "Basic sha256:",
        '"status": "approved"',
        person.user_id,
        "Rotate the secret",
    ):
        assert words in log
    held = (person.account["password"], "state-value", application.client_secret, code)
    told = ("Bearer", 3600, tokens["scope"])
    for secret in (*tokens.values(), *held, credential.split("~")[1]):
        assert secret in told or str(secret) not in log
    assert developer.open("/console/requests/0").status_code == 404


def test_strange_requests_are_logged_and_open(shop, developer):
    """Whatever comes: deep, large or broken bodies, forms where JSON belongs."""
    client = shop.sandbox.client
    large = b'{"connect_code": "' + b"x" * 3_000_000 + b'"}'
    deep = b'{"a":' * 900 + b"1" + b"}" * 900
    for body in (b"[" * 5000, deep, b"\xff", b"null", large):
        assert shop.ask("connect/request", body).status_code == 400
    parts = {"code": (None, "secret-code-in-a-part")}
    for files in ({"code": b"secret-code-in-a-file"}, parts):
        assert client.post("/oauth2/token", files=files).status_code in {400, 401}
    asked = client.post("/api/v1/connect/request?code=secret-code-in-a-query")
    assert asked.status_code == 401
    for address in REQUEST.findall(developer.open("/console/activity").text):
        shown = developer.open(address)
        assert shown.status_code == 200
        assert "secret-code" not in shown.text


# What the buttons do


def number_of(person: Person, developer: Visitor) -> str:
    """By which the console's forms name the person."""
    option = rf'<option value="(\d+)"[^>]*>[^<]*{person.account["email"]}'
    return re.search(option, developer.open("/").text)[1]


def test_each_button_says_what_happened(application, developer):
    """To a person, as the control API does it; an unknown action changes nothing."""
    person = Person(application.sandbox, verified=True)
    person.consent_to(application)
    about = {"person": number_of(person, developer), "claim_type": "age_over_18"}
    for action, words, status, active in (
        ("revoke_claim", "the claim is revoked", "verified", 3),
        ("revoke_claim", "No such claim is active", "verified", 3),
        ("issue_claim", "the claim is issued", "verified", 4),
        ("invalidate", "the verification is taken back", "unverified", 0),
        ("verify", "verified", "verified", 4),
        ("reject", "rejected", "rejected", 0),
        ("explode", "There is no such", "rejected", 0),
        ("revoke_consents", "every application has lost its access", "rejected", 0),
        ("delete", "asked for deletion", "rejected", 0),
    ):
        assert words in do(developer, action, **about)
        account = person.shown()
        assert account["kyc_status"] == status
        assert len(person.active_claims()) == active

    assert account["consents"] == {}
    assert account["deletion_requested"] is True


def test_buttons_change_keys_clock_faults_and_switches(sandbox, developer):
    first = sandbox.control("GET", "keys")["signing"]
    do(developer, "rotate_key")
    keys = sandbox.control("GET", "keys")
    assert first in keys["published"][1:]
    do(developer, "withdraw_key")
    assert keys["signing"] not in sandbox.control("GET", "keys")["published"]
    assert "The clock is set" in do(developer, "clock", seconds="3600")
    do(developer, "differ", seconds="-240")
    assert sandbox.control("GET", "clock")["offset_seconds"] == -240
    do(developer, "fail", endpoint="jwks", kind="status")
    assert sandbox.client.get("/.well-known/jwks.json").status_code == 500
    assert "No call fails any more" in do(developer, "forget_faults")
    for path in ("console/do", "console/switches", "console/credential", "portal/"):
        assert developer.browser.post(f"/{path}").status_code == 403

    names = sandbox.control("GET", "switches")
    chosen = {name: value for name, value in names.items() if isinstance(value, str)}
    page = developer.open("/console/switches")
    page = developer.submit(page, **chosen | {"claim_values": "bare"}, save="1")
    assert sandbox.control("GET", "switches")["claim_values"] == "bare"
    assert 'class="badge">changed' in page.text
    developer.submit(page, reset="1")
    assert sandbox.control("GET", "switches") == names


def test_a_credential_is_taken_apart(application, person, developer):
    """The last one that the person gave, or any text: each fault is a sentence."""
    tokens = person.tokens_for(application)
    credential = person.read(tokens, "claims").json()["data"]["credential"]
    number = number_of(person, developer)
    good = press(developer, "/console/credential", person=number)
    assert good.count('status-good">Good') == 5
    assert credential in good

    page = developer.open("/console/credential")
    unlisted = developer.submit(page, credential=f"{credential}WyJzIiwieCIsMV0~")
    assert "listed in <code>_sd</code>: x." in unlisted.text
    malformed = developer.submit(page, credential="W10.W10.x~")
    assert "A credential looks like a.b.c~d~e~" in malformed.text


# Applications


def test_a_registered_application_works(sandbox, developer):
    form = {"name": "New shop", "redirect_uris": "http://127.0.0.1:8000/callback"}
    application = Application(sandbox)
    shown = once(portal(developer, "register", **form))
    application.client_id, application.client_secret = shown[:2]
    assert Person(sandbox, verified=True).tokens_for(application)["access_token"]
    assert application.client_secret not in developer.open("/portal/").text


def test_an_error_of_a_form_changes_nothing(shop, developer):
    """It stands at its field. A private key is never taken."""
    tier = {"app_id": shop.app_id, "document_key": KEY.export()}
    # As long as a form may be, and deeper than the reader goes.
    deep = {"app_id": shop.app_id, "document_key": "[" * 100_000}
    nobodys = {"app_id": "another", "document_key": ""}
    assert "Nothing was changed" in portal(developer, "tier", **nobodys)
    for action, fields, at, error in (
        (
            "register",
            {"name": "A", "redirect_uris": "kept"},
            "redirect_uris-",
            "kept is not an",
        ),
        ("tier", tier, f"document_key-{shop.app_id}", "this is your private key"),
        ("tier", deep, f"document_key-{shop.app_id}", "The key is not JSON."),
    ):
        page = portal(developer, action, **fields)
        [found] = re.findall(r'id="([^"]+)_error" class="error"[^>]*>(.*?)</div>', page)
        assert found[0] == at
        assert error in found[1]
        assert "Nothing was changed" in page
        assert "kept" not in developer.open("/portal/").text


def test_secrets_are_shown_once(application, developer):
    """New ones replace the old ones at once; a key opens the trusted tier."""
    about = {"client_id": application.client_id}
    (_id, secret, *_rest) = once(portal(developer, "client_secret", **about))
    assert application.refresh("x").status_code == 401
    application.client_secret = secret
    assert application.refresh("x").status_code == 400
    addresses = {"redirect_uris": "app:/\nhttp://a/", "url": "http://127.0.0.1:9/"}
    first = once(portal(developer, "addresses", **about, **addresses))[0]
    assert first.startswith("whsec_")
    assert "app:/ http://a/" in developer.open("/portal/").text
    assert first not in portal(developer, "addresses", **about, **addresses)
    assert once(portal(developer, "webhook_secret", **about))[0] not in {first, ""}
    _id, email, password = once(portal(developer, "test_user"))[:3]
    person = Person(application.sandbox, {"email": email, "password": password})
    assert person.sign_in().url.path == "/account/"
    key = {"document_key": KEY.export_public(), "app_id": application.app_id}
    portal(developer, "tier", **key)

    assert application.sandbox.control("GET", application.path)["trusted"]
