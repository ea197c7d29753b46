"""The console and the page of applications: what happened, and buttons for what a test would do."""

import base64
import html
import json
import re
from typing import Any

import pytest

from tests.sandbox.driver import (
    KEY,
    Application,
    Person,
    Pkce,
    Sandbox,
    Visitor,
    callback_parameters,
)
from tests.sandbox.receiver import until


@pytest.fixture
def developer(sandbox: Sandbox) -> Visitor:
    return Visitor(sandbox)


def press(developer: Visitor, path: str, **fields: str) -> str:
    """Press a button of a page; what the page says then."""
    developer.open("/portal/")
    token = {"csrfmiddlewaretoken": developer.browser.cookies["sandbox_csrftoken"]}
    return developer.follow(developer.browser.post(path, data=token | fields)).text


def do(developer: Visitor, action: str, **fields: str) -> str:
    """Press a button of the console."""
    return press(developer, "/console/do", do=action, **fields)


def test_what_happens_is_listed_with_person_and_site(
    hearing, person, receiver, developer
):
    """The newest first: requests, events and their deliveries, as text.

    The list that the page asks for every second has the last fifty; what went well can be hidden.
    """
    for _ in range(2):
        person.read(person.walk(hearing), "kyc")
    receiver.wait_for(2)
    # A delivery is in the list once it was answered, which is after the receiver has it.
    until(lambda: developer.open("/").text.count("consent.granted →") == 2)
    page = developer.open("/").text
    lines = re.findall(r'<li class="activity-.*?</li>', page, re.DOTALL)
    about = [each for each in lines if "Ada Okafor" in each and "Example shop" in each]
    for words in ("/oauth2/token", "/users/me/kyc", "consent.granted →"):
        assert sum(words in each for each in about) == 2
    moments = [re.search('datetime="(.*?)"', each)[1] for each in lines]
    assert moments == sorted(moments, reverse=True)
    assert "/console/" not in re.sub(r'href="[^"]*"', "", "".join(lines))
    for _ in range(60):
        hearing.connect("CNX-AAAA-AAAA")
    hearing.connect(person.make_code())
    hearing.sandbox.client.get("/api/v1/<script>alert(1)</script>")
    shown = developer.open("/console/activity").text
    assert shown.count('<li class="activity-') == 50
    assert "&lt;script&gt;alert" in shown
    assert ">200<" in shown
    quiet = developer.open("/console/activity?quiet=1").text
    assert ">400 INVALID_CONNECT_CODE<" in quiet
    assert ">200<" not in quiet


def test_a_list_of_failures_without_one_does_not_say_that_nothing_happened(
    application, developer
):
    text = developer.open("/console/activity?quiet=1").text
    assert "all went well" in text
    assert "Nothing yet" not in text


def test_buttons_do_to_a_person_what_the_control_api_does(application, developer):
    """Each button says what happened, and the account shows it."""
    person = Person(application.sandbox, verified=True)
    person.consent_to(application)
    options = re.findall(
        r'<option value="(\d+)"[^>]*>([^<]+)<', developer.open("/").text
    )
    (number,) = [value for value, name in options if person.account["email"] in name]
    for action, words, status, active in (
        ("revoke_claim", "the claim is revoked", "verified", 3),
        ("revoke_claim", "No such claim is active", "verified", 3),
        ("issue_claim", "the claim is issued", "verified", 4),
        ("invalidate", "the verification is taken back", "unverified", 0),
        ("verify", "verified", "verified", 4),
        ("reject", "rejected", "rejected", 0),
        ("revoke_consents", "every application has lost its access", "rejected", 0),
        ("delete", "asked for deletion", "rejected", 0),
    ):
        assert words in do(developer, action, person=number, claim_type="age_over_18")
        account = person.shown()
        assert (account["kyc_status"], len(person.active_claims())) == (status, active)
        assert account["deletion_requested"] is (action == "delete")
        assert (account["consents"] == {}) is (action in {"revoke_consents", "delete"})


def test_buttons_change_keys_clock_and_faults(sandbox, developer):
    """Each has a button that takes it back; an unknown action changes nothing."""
    first = sandbox.control("GET", "keys")["signing"]
    do(developer, "rotate_key")
    keys = sandbox.control("GET", "keys")
    assert first in keys["published"][1:]
    do(developer, "withdraw_key")
    assert keys["signing"] not in sandbox.control("GET", "keys")["published"]
    assert "The clock is set" in do(developer, "clock", seconds="3600")
    assert sandbox.control("GET", "clock")["offset_seconds"] == 3600
    page = developer.open("/").text
    for words, seconds in (
        ("4 minutes behind", -240),
        ("4 minutes ahead", 240),
        ("Real time", 0),
    ):
        assert f'name="seconds" value="{seconds}">{words}</button>' in page
        do(developer, "differ", seconds=str(seconds))
        assert sandbox.control("GET", "clock")["offset_seconds"] == seconds
    do(developer, "fail", endpoint="jwks", kind="status")
    assert sandbox.client.get("/.well-known/jwks.json").status_code == 500
    do(developer, "fail", endpoint="jwks", kind="drop")
    assert "No call fails any more" in do(developer, "forget_faults")
    assert sandbox.control("GET", "faults") == []
    for wrong in ({"action": "explode"}, {"action": "verify", "person": "0"}):
        assert "There is no such" in do(developer, **wrong)
    for path in ("console/do", "console/switches", "console/credential", "portal/"):
        assert Visitor(sandbox).browser.post(f"/{path}").status_code == 403


def test_switches_are_explained_and_changes_marked(sandbox, developer):
    """A changed switch has a mark, and one button resets them all."""
    page = developer.open("/console/switches")
    names = sandbox.control("GET", "switches")
    assert page.text.count("data-switch") == len(names)
    assert "data-search" in page.text
    assert "changed" not in page.text
    chosen = {name: value for name, value in names.items() if isinstance(value, str)}
    sent = chosen | {"users_me": "on", "claim_values": "bare"}
    page = developer.submit(page, **sent, save="1")
    assert sandbox.control("GET", "switches")["claim_values"] == "bare"
    assert page.text.count('class="badge">changed') >= 1
    developer.submit(page, reset="1")
    assert sandbox.control("GET", "switches") == names


def credential_of_nobody(name: str) -> str:
    """A disclosure of which no credential lists the digest."""
    content = json.dumps(["salt", name, True]).encode()
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def test_a_credential_is_taken_apart(application, person, developer):
    """The page shows its parts and what an application finds, or that it is no credential."""
    answer = person.read(person.tokens_for(application), "claims")
    credential = answer.json()["data"]["credential"]
    page = developer.open("/console/credential")
    good = developer.submit(page, credential=credential).text
    assert good.count('status-good">Good') == 5
    for words in (
        "Valid until",
        "Every disclosed claim is still valid.",
        "dc+sd-jwt",
        person.user_id,
        "country_resident",
        "listed in _sd",
    ):
        assert words in good
    token, *disclosures = credential.split("~")
    bent = "~".join([f"{token[:-6]}AAAAAA", *disclosures])
    assert "No published key signed it" in developer.submit(page, credential=bent).text
    for text in (
        "x",
        "a.b.c~",
        "e30.e30~",
        "W10.W10.x~",
        "~~~",
        "e30.eyJleHAiOiAieCJ9.x~W10~",
    ):
        assert (
            "A credential looks like a.b.c~d~e~"
            in developer.submit(page, credential=text).text
        )


def test_a_fault_of_a_credential_is_stated(application, person, developer):
    """Each as one sentence without a "No" before it: which disclosure, which claim, since when."""
    answer = person.read(person.tokens_for(application), "claims")
    credential = answer.json()["data"]["credential"]
    page = developer.open("/console/credential")
    added = credential_of_nobody("smuggled")
    shown = developer.submit(page, credential=f"{credential}{added}~").text
    assert (
        "The digest of a disclosure is not listed in <code>_sd</code>: smuggled."
        in shown
    )
    assert "The digest of this disclosure is not listed in _sd" in shown
    person.cause("claims/age_over_18/revoke")
    assert (
        "Revoked since: age_over_18."
        in developer.submit(page, credential=credential).text
    )
    application.sandbox.advance(90_000)
    assert "Expired on " in developer.submit(page, credential=credential).text


def test_a_person_s_last_credential_is_handed_over(application, person, developer):
    """The button takes apart what an application has read; before that there is none."""
    page = developer.open("/").text
    number = re.search(
        rf'<option value="(\d+)"[^>]*>[^<]*{person.account["email"]}', page
    )[1]
    shown = press(developer, "/console/credential", person=number)
    assert "this person has read no claims yet" in shown
    answers = [
        person.read(person.tokens_for(application), "claims").json()["data"]
        for _ in range(2)
    ]
    shown = press(developer, "/console/credential", person=number)
    assert answers[1]["credential"] in shown
    assert answers[0]["credential"] not in shown
    assert shown.count('status-good">Good') == 5


ERRORS = {
    "INVALID_CONNECT_CODE": "let the person make a new one",
    "CONNECT_CODE_REQUIRED": "Ask the person for a code",
    "INVALID_SCOPE": "Ask for scopes",
    "INVALID_REQUEST": "A member is missing",
    "UNAUTHORIZED": "Send a valid access token",
    "NOT_FOUND": "Compare the address with BASE_URL",
    "METHOD_NOT_ALLOWED": "the header Allow names",
    "RATE_LIMITED": "Retry-After",
    "invalid_client": "Rotate the secret",
    "invalid_grant": "let the person sign in again",
    "unsupported_grant_type": "authorization_code or refresh_token",
    "access_denied": "The person did not allow it",
    "KYC_LEVEL_REQUIRED": "Send the person to kyc_url",
    "POA_REQUIRED": "With proof of address",
    "INSUFFICIENT_SCOPE": "LATER_SCOPES",
    "USER_MISMATCH": "to whom the access token belongs",
    "TRUSTED_TIER_REQUIRED": "Register a public key",
}


def meet_every_error(application: Application, person: Person) -> None:
    code = person.make_code()
    application.connect("CNX-AAAA-AAAA")
    application.ask("connect/request", {"infra_user_id": "x"})
    application.connect(code, ["x"])
    application.connect(code, "x")
    application.sandbox.client.get("/api/v1/users/me/kyc")
    application.sandbox.client.get("/api/v1/nothing")
    application.sandbox.client.put("/api/v1/connect/request")
    application.sandbox.control("POST", "faults", kind="rate_limit", endpoint="jwks")
    application.sandbox.client.get("/.well-known/jwks.json")
    application.refresh("x")
    application.token_request(grant_type="password")
    application.token_request(
        grant_type="refresh_token", refresh_token="x", client_secret="x"
    )
    person.submit(person.consent_screen(application), deny="Deny")
    application.require(kyc_level="level_2", proof_of_address=True)
    application.connect(Person(application.sandbox).make_code())
    application.connect(person.make_code())
    tokens = person.tokens_for(application, scope="profile:read")
    person.read(tokens, "kyc")
    person.read(tokens, "profile", "somebody-else")
    person.consent_to(application, "documents:metadata")
    application.trust(KEY)
    tokens = person.tokens_for(application, scope="documents:read")
    application.sandbox.control("DELETE", f"{application.path}/trusted-tier")
    person.read(tokens, "documents")


def test_an_error_stands_in_its_line_and_its_page_says_what_mends_it(
    application, person, developer
):
    meet_every_error(application, person)
    page = developer.open("/console/activity?quiet=1").text
    met: dict[str, str] = {}
    for line in re.findall(r'<li class="activity-.*?</li>', page, re.DOTALL):
        code = re.search(r'class="outcome \w+">\d+ (\w+)', line)
        address = re.search(r'href="(/console/requests/\d+)"', line)
        if code and address:
            met[code[1]] = address[1]
    for code, words in ERRORS.items():
        shown = developer.open(met[code]).text
        assert code in shown
        assert words in html.unescape(shown)
    assert developer.open("/console/requests/999999").status_code == 404
    assert developer.open("/console/requests/0").status_code == 404


def test_a_request_opens_without_its_secrets(application, person, developer):
    """What came and what was answered; of people's pages no content."""
    tokens = person.walk(application)
    person.read(tokens, "profile")
    person.read(tokens, "claims")
    code = person.make_code()
    application.connect(code)
    pages = developer.open("/console/activity?pages=1").text
    addresses = re.findall(r'href="(/console/requests/\d+)"', pages)
    shown = [html.unescape(developer.open(each).text) for each in addresses]
    log = "".join(shown)
    for words in (
        '"grant_type": "authorization_code"',
        '"code_challenge_method": "S256"',
        '"access_token": "sha256:',
        "Bearer sha256:",
        "Basic sha256:",
        '"status": "approved"',
        person.user_id,
        "What came",
        "What was answered",
    ):
        assert words in log
    held = (person.account["password"], "state-value", application.client_secret, code)
    for secret in (*tokens.values(), *held):
        if secret not in ("Bearer", 3600, tokens["scope"]):
            assert str(secret) not in log
    read = person.read(tokens, "claims").json()["data"]["credential"]
    assert read.split("~")[1] not in log


def test_strange_requests_are_logged_and_open(application, developer):
    """Whatever comes: deep, large or broken bodies, forms where JSON belongs, a body's absence."""
    client = application.sandbox.client
    for body in (b"[" * 5000, b'{"a":' * 900 + b"1" + b"}" * 900, b"\xff", b"null"):
        assert application.ask("connect/request", body).status_code == 400
    large = b'{"connect_code": "' + b"x" * 3_000_000 + b'"}'
    assert application.ask("connect/request", large).status_code == 400
    files = {"code": b"secret-code-in-a-file"}
    for path in ("oauth2/token", "api/v1/connect/request"):
        assert client.post(f"/{path}", files=files).status_code in {400, 401}
    parts = {"code": (None, "secret-code-in-a-part")}
    assert client.post("/oauth2/token", files=parts).status_code == 400
    asked = client.post("/api/v1/connect/request?code=secret-code-in-a-query")
    assert asked.status_code == 401
    page = developer.open("/console/activity").text
    for address in re.findall(r'href="(/console/requests/\d+)"', page):
        shown = developer.open(address)
        assert shown.status_code == 200
        assert "secret-code" not in shown.text


def test_the_lines_of_one_sign_in_stand_together(hearing, person, receiver, developer):
    """Browser, site and service; another sign-in, and what is read later, stand for themselves."""
    for turn in (1, 2):
        page = person.consent_screen(hearing, pkce := Pkce(), state=f"state-{turn}")
        answer = callback_parameters(person.submit(page, allow="Approve"))
        person.read(hearing.redeem(answer["code"], pkce).json(), "kyc")
        receiver.wait_for(turn)
        until(
            lambda turn=turn: (
                developer.open("/").text.count("consent.granted →") == turn
            )
        )
    hearing.connect("CNX-AAAA-AAAA")
    hearing.sandbox.advance(120)
    hearing.connect(person.make_code())
    page = developer.open("/").text
    groups = re.findall(r'<li class="sign-in">.*?</ul></li>', page, re.DOTALL)
    assert len(groups) == 2
    for group in groups:
        assert "Sign-in of <bdi>Ada Okafor</bdi> at <bdi>Example shop" in group
        assert group.count("/oauth2/auth<") >= 2
        assert "connect/request" not in group
        for words in ("/oauth2/token", "/users/me/kyc", "consent.granted →"):
            assert group.count(words) == 1
        for actor in ("browser", "site", "service"):
            assert f"· {actor}" in group


def test_lines_are_found_and_cleared(hearing, person, receiver, developer):
    """By the text of the line, in whatever letters; a delivery that waits is not forgotten."""
    person.read(person.walk(hearing), "kyc")
    receiver.wait_for(1)
    until(lambda: "consent.granted →" in developer.open("/").text)
    for text, found, hidden in (
        ("CONSENT.granted", "consent.granted", "/oauth2/token"),
        ("ada okafor", "/oauth2/token", "jwks"),
        ("/kyc", "/users/me/kyc", "consent.granted"),
    ):
        lines = activity_of(
            developer.browser.get("/console/activity", params={"text": text}).text
        )
        assert found in lines
        assert hidden not in lines
    page = developer.browser.get("/", params={"text": '"<b>'})
    assert 'value="&quot;&lt;b&gt;"' in page.text
    assert "No line has this text" in page.text
    hearing.sandbox.control("POST", "deliveries/hold", client_id=hearing.client_id)
    person.cause("claims/age_over_18/revoke")
    do(developer, "clear")
    lines = activity_of(developer.open("/").text)
    assert "claim.revoked" in lines
    assert "consent.granted" not in lines
    assert "/oauth2/token" not in lines


def activity_of(page: str) -> str:
    return "".join(re.findall(r'<li class="activity-.*?</li>', page, re.DOTALL))


def test_pages_are_listed_when_asked_for(application, person, developer):
    """The list begins with what a site asks for; the sandbox's own pages are no news."""
    person.read(person.tokens_for(application), "kyc")
    person.open("/account/")
    for path in ("/", "/console/activity"):
        assert "/account/" not in activity_of(developer.open(path).text)
        assert "/users/me/kyc" in activity_of(developer.open(path).text)
        assert "GET /account/" in activity_of(developer.open(f"{path}?pages=1").text)


def test_a_delivery_is_shown_and_sent_again(hearing, receiver, developer):
    """The request with its signature, each answer, and once more."""
    Person(hearing.sandbox).consent_to(hearing)
    receiver.wait_for(1)
    (delivery,) = hearing.deliveries()
    until(lambda: hearing.deliveries()[0]["attempts"])
    page = developer.open(f"/console/deliveries/{delivery['id']}")
    for words in ("consent.granted", "x-webhook-signature", delivery["event_id"]):
        assert words in page.text
    developer.submit(page)
    assert len(receiver.wait_for(2)) == 2


def portal(developer: Visitor, action: str, **fields: str) -> str:
    """Press a button of the page of applications."""
    return press(developer, "/portal/", do=action, **fields)


def once(page: str) -> list[str]:
    """What the page shows this once."""
    return [
        html.unescape(each) for each in re.findall(r'class="copied">([^<]+)<', page)
    ]


def test_a_registered_application_works(sandbox, developer):
    """People sign in with the secrets that the page shows once."""
    form = {"name": "New shop", "redirect_uris": "http://127.0.0.1:8000/callback"}
    application = Application(sandbox)
    shown = once(portal(developer, "register", **form))
    application.client_id, application.client_secret = shown[:2]
    assert Person(sandbox, verified=True).tokens_for(application)["access_token"]
    assert application.client_secret not in developer.open("/portal/").text
    for wrong, words in (
        ("x#y", "without a fragment"),
        ("", "needs a redirect address"),
    ):
        assert words in portal(developer, "register", **form | {"redirect_uris": wrong})
    assert "needs a name" in portal(developer, "register", **form | {"name": " "})


def test_what_was_typed_stays_with_the_error_at_its_field(application, developer):
    """In the form that was sent, and in no other one; nothing is changed."""
    other = Application(application.sandbox)
    client = {"client_id": application.client_id}
    good = {"redirect_uris": "https://kept.example/callback", "url": "https://k/"}
    for action, fields, at, error in (
        ("register", {"name": " ", **good}, "name-", "needs a name"),
        ("register", {"name": "Kept shop", "redirect_uris": "kept"}, "redirect_uris-",
            "kept is not an absolute address"),
        ("addresses", client | good | {"redirect_uris": "kept"},
            f"redirect_uris-{application.client_id}", "without a fragment"),
        ("addresses", client | good | {"url": "ftp://kept/"},
            f"url-{application.client_id}", "an address is like"),
        ("addresses", client | good | {"url": "https://kept:x/"},
            f"url-{application.client_id}", "an address is like"),
        ("tier", {"app_id": application.app_id, "document_key": "{kept"},
            f"document_key-{application.app_id}", "is not JSON"),
        ("tier", {"app_id": application.app_id, "document_key": '{"kept": 1}'},
            f"document_key-{application.app_id}", "needs a kid"),
    ):  # fmt: skip
        page = portal(developer, action, **fields)
        found = re.findall(r'id="([^"]+)_error" class="error"[^>]*>(.*?)</div>', page)
        assert [each[0] for each in found] == [at]
        assert error in found[0][1]
        field = re.search(
            rf'(<input[^>]*id="{at}"[^>]*>|id="{at}".*?</textarea>)', page, re.DOTALL
        )
        assert field is not None
        assert action == "register" or "kept" in html.unescape(field[0])
        assert "Nothing was changed" in page
        ids = re.findall(r' id="([^"]+)"', page)
        assert len(ids) == len(set(ids))
        assert "kept" not in developer.open("/portal/").text
    assert "Kept shop" in portal(
        developer, "register", name="Kept shop", redirect_uris="x"
    )
    assert other.client_id in developer.open("/portal/").text
    assert "explode" not in portal(developer, "explode")


def test_secrets_are_shown_once(application, developer):
    """New ones replace the old ones at once; what is no address changes nothing."""
    about = {"client_id": application.client_id}
    (_id, secret, *_rest) = once(portal(developer, "client_secret", **about))
    assert application.refresh("x").status_code == 401
    application.client_secret = secret
    assert application.refresh("x").status_code == 400
    addresses = {
        "redirect_uris": f"app:/{application.client_id}\nhttp://a/",
        "url": "http://127.0.0.1:9/",
    }
    for wrong in ({"url": "ftp://x/"}, {"redirect_uris": ""}, {"redirect_uris": "x"}):
        assert "Nothing was changed" in portal(
            developer, "addresses", **about, **addresses | wrong
        )
        assert f"app:/{application.client_id}" not in developer.open("/portal/").text
    first = once(portal(developer, "addresses", **about, **addresses))[0]
    assert first.startswith("whsec_")
    assert f"app:/{application.client_id} http://a/" in developer.open("/portal/").text
    assert first not in portal(developer, "addresses", **about, **addresses)
    assert once(portal(developer, "webhook_secret", **about))[0] not in {first, ""}
    user_id, email, password = once(portal(developer, "test_user"))[:3]
    person = Person(application.sandbox, {"email": email, "password": password})
    assert person.sign_in().url.path == "/account/"
    assert user_id in person.open("/account/").text


def test_a_public_key_opens_the_trusted_tier_and_an_empty_one_ends_it(
    application, developer
):
    """A private key is refused."""
    given: dict[str, Any] = {"app_id": application.app_id}
    assert "is not JSON" in portal(developer, "tier", document_key="{", **given)
    private = json.dumps(KEY.export(as_dict=True))
    assert "this is your private key" in portal(
        developer, "tier", document_key=private, **given
    )
    for key, expected in ((KEY.export_public(), True), ("", False)):
        portal(developer, "tier", document_key=key, **given)
        assert (
            application.sandbox.control("GET", application.path)["trusted"] is expected
        )
