"""The pages speak the languages of the package; the API speaks English."""

import json
import re
from html.parser import HTMLParser

import httpx
import pytest

from tests.sandbox.connect_driver import make_code, redeem
from tests.sandbox.driver import Application, Developer, Person, Pkce, Sandbox, Visitor
from tests.sandbox.receiver import until

LANGUAGES = ("ar", "es", "fr", "pt", "pt-br")
NAME, ADA = "Bazaar", "00000000-0000-4000-8000-000000000001"
#: Names, addresses and log lines, which are the same in every language.
NAMES = re.compile(
    r"Bazaar|Local site|Sandbox (Identity|KYC)|(GET|POST)( \S+)?|\S+[@/]\S+|\w+[._]\w+"
    r"|(?<=\+ )10 minutes|decoys"
)
#: Texts that are alike in English and in the language, and rightly so.
SAME = {
    "ar": set[str](),
    "es": {"No", "Nigeria"},
    "fr": {"Document", "Applications", "Application", "Console", "Pages"},
    "pt": set[str](),
    "pt-br": {"Console"},
}
#: What the portal does not take as the key of a trusted application, each for its own reason.
REFUSED_KEYS = (
    [],
    {"kty": "RSA"},
    {"kid": "a", "kty": "RSA", "alg": "RS256"},
    {"kid": "a", "kty": "RSA", "alg": "RSA-OAEP-256"},
)
TITLE_END = re.compile(r" \W Sandbox Identity$")
WORD = re.compile(r"[A-Za-z]{3,}")


class Spoken(HTMLParser):
    """The texts and the labels of a page, but for names, codes and what a developer reads."""

    SILENT = frozenset({"bdi", "code", "option", "pre", "script", "textarea", "time"})

    def __init__(self, page: httpx.Response) -> None:
        super().__init__()
        self.texts: set[str] = set()
        self._open: list[str] = []
        self.feed(page.text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag in self.SILENT:
            self._open.append(tag)
        self._add(given.get("aria-label") or "")

    def handle_endtag(self, tag: str) -> None:
        if tag in self._open:
            self._open.remove(tag)

    def handle_data(self, data: str) -> None:
        if not self._open:
            self._add(data)

    def _add(self, text: str) -> None:
        text = TITLE_END.sub("", " ".join(text.split())).strip("· /")
        if WORD.search(NAMES.sub("", text)):
            self.texts.add(text)


def pages_of(sandbox: Sandbox, language: str = "en") -> dict[str, httpx.Response]:
    """Every page of a person: with nothing done, with everything done, and when it fails."""
    person, application = Person(sandbox), Application(sandbox, name=NAME)
    person.browser.headers["Accept-Language"] = language
    pkce = Pkce()
    address = application.authorization_url(pkce, scope="profile:read kyc:read claims:read")
    pages = {
        "sign-in": person.open(address),
        "make-person": person.open("/account/new"),
        "not-found": person.open("/nowhere"),
        "wrong-method": person.open("/account/sign-out"),
        "wrong-address": person.open(
            application.authorization_url(pkce, redirect_uri="http://localhost:8000/callback")
        ),
        "unknown-client": person.open(application.authorization_url(pkce, client_id="nobody")),
        "no-client": person.open(application.authorization_url(pkce, client_id=None)),
        "no-address": person.open(application.authorization_url(pkce, redirect_uri="/relative")),
        "twice": person.open(f"{application.authorization_url(pkce)}&state=again"),
        "wrong-password": person.submit(
            person.open("/account/sign-in"), email="a@b.cd", password="x"
        ),
        "no-token": person.browser.post("/account/sign-in"),
    }
    pages["verify"] = person.sign_in(person.open(address))
    pages["short-number"] = person.submit(pages["verify"], bvn="1")
    pages["not-found-number"] = person.submit(pages["verify"], bvn="33333333333")
    pages["account-rejected"] = person.open("/account/")
    pages["unavailable"] = person.submit(pages["verify"], bvn="00000000000")
    pages["make-code-unverified"] = person.open("/account/connect-codes/new")
    pages["consent"] = person.submit(pages["verify"], bvn="22222222222")
    pages["verified"] = person.open("/account/verify")
    pages["empty-account"] = person.open("/account/")
    pages["delete-nobody"] = person.open("/account/delete")
    pages["make-code"] = person.open("/account/connect-codes/new")
    pages["code"] = person.submit(pages["make-code"], password=person.account["password"])
    pages["proved"] = person.submit(pages["verified"], document="tax_notice")
    pages["revoked"] = person.submit(pages["proved"], "age_over_18/revoke")
    person.consent_to(application)
    redeem(application, make_code(person))
    pages["full-account"] = person.open("/account/")
    pages["delete"] = person.open("/account/delete")
    application.use("live")
    pages["mismatch"] = person.open(application.authorization_url(pkce))
    application.use("test")
    person.cause("verify", bvn="22222222222")
    return pages


def pages_of_a_developer(sandbox: Sandbox, language: str = "en") -> dict[str, httpx.Response]:
    """The console and the portal, with something in each list."""
    application, developer = Application(sandbox, name=NAME), Developer(sandbox)
    application.receive_at("http://127.0.0.1:9/")
    Person(sandbox).consent_to(application)
    until(lambda: application.deliveries()[0]["attempts"])
    developer.browser.headers["Accept-Language"] = language
    pages = {
        "portal-sign-in": developer.open("/portal/sign-in"),
        "portal": developer.sign_in(),
        "deliveries": developer.open(f"/portal/clients/{application.client_id}/deliveries"),
        "credential": developer.open("/console/credential"),
    }
    shown = f"/portal/applications/{application.registration['app_id']}"
    pages["application"] = developer.open(shown)
    listed = pages["deliveries"].text
    pages["delivery"] = developer.open(re.search(r"/portal/deliveries/\d+", listed)[0])
    for number, refused in enumerate(REFUSED_KEYS):
        pages[f"key-{number}"] = developer.submit(
            pages["application"], document_key=json.dumps(refused)
        )
    pages["bad-webhook"] = developer.submit(pages["application"], **{"test-url": "shop.example"})
    pages["switches"] = developer.open("/console/switches")
    pages["test-user"] = developer.submit(pages["application"], "test-users")
    pages["inspection"] = developer.submit(pages["credential"], person=ADA, client="1")
    pages["no-credential"] = developer.submit(pages["credential"], credential="x")
    home = developer.open("/")
    pages["key"] = developer.submit(home, "keys")
    pages["fault"] = developer.submit(home, "faults", endpoint="kyc", kind="drop")
    return pages


@pytest.fixture(scope="module")
def in_english(running_sandbox: Sandbox) -> dict[str, httpx.Response]:
    return pages_of(running_sandbox) | pages_of_a_developer(running_sandbox)


def untranslated(
    said: dict[str, httpx.Response], told: dict[str, httpx.Response], language: str
) -> dict[str, set[str]]:
    """The texts that a page has in English too, by the name of the page."""
    direction = "rtl" if language == "ar" else "ltr"
    found = {}
    for name, page in said.items():
        assert f'<html lang="{language}" dir="{direction}">' in page.text, name
        same = Spoken(page).texts & Spoken(told[name]).texts - SAME[language]
        if same:
            found[name] = same
    return found


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_page_of_a_person_stays_english(
    sandbox: Sandbox, in_english: dict[str, httpx.Response], language: str
) -> None:
    """Sign-in, verification, consent, codes, account, notices and errors are all translated."""
    assert untranslated(pages_of(sandbox, language), in_english, language) == {}


@pytest.mark.parametrize("language", ["ar", "pt-br"])
def test_no_page_of_a_developer_stays_english(
    sandbox: Sandbox, in_english: dict[str, httpx.Response], language: str
) -> None:
    """The console with its switches, the portal, why a delivery failed and a form is refused."""
    assert untranslated(pages_of_a_developer(sandbox, language), in_english, language) == {}


def test_a_failed_delivery_is_explained(sandbox: Sandbox, application: Application) -> None:
    """The portal translates the reason, with its number; the control API has it in English."""
    sandbox.control("POST", "switches", webhook_timeout=0)
    application.receive_at("http://127.0.0.1:9/")
    Person(sandbox).consent_to(application)
    until(lambda: application.deliveries()[0]["attempts"])
    (attempt,) = application.deliveries()[0]["attempts"]
    developer = Developer(sandbox)
    developer.browser.headers["Accept-Language"] = "fr"
    developer.sign_in()
    page = developer.open(f"/portal/clients/{application.client_id}/deliveries")
    assert attempt["problem"] == "No answer within 0 seconds."
    assert "Aucune réponse en 0 secondes." in page.text


def test_the_chooser_is_stronger_than_the_browser(sandbox: Sandbox) -> None:
    """Who chooses a language keeps it, comes back to the same page, and can change it again."""
    visitor = Visitor(sandbox)
    visitor.browser.headers["Accept-Language"] = "es"
    page = visitor.open("/account/sign-in?next=/account/delete")
    assert "Elija una persona de prueba" in page.text
    page = visitor.submit(page, "/language/", language="fr")
    assert page.url.raw_path == b"/account/sign-in?next=/account/delete"
    assert "Choisissez une personne" in page.text
    assert "sandbox_language" in visitor.browser.cookies
    assert "Choose a test person" in visitor.submit(page, "/language/", language="en").text


def test_the_chooser_leads_nowhere_else(sandbox: Sandbox) -> None:
    """A foreign address to go on to is not used."""
    visitor = Visitor(sandbox)
    token = re.search(
        r'name="csrfmiddlewaretoken" value="(\w+)"', visitor.open("/account/new").text
    )
    answer = visitor.browser.post(
        "/language/",
        data={"language": "fr", "next": "https://evil.example/", "csrfmiddlewaretoken": token[1]},
    )
    assert answer.headers["Location"] == "/"


def test_machines_are_answered_in_english(sandbox: Sandbox, application: Application) -> None:
    """The API knows no languages, whatever the same thread said before."""
    asking = {"Accept-Language": "ar"}
    for path in ("/api/v1/users/me/kyc", "/api/v1/nowhere", "/.well-known/jwks.json"):
        plain = sandbox.client.get(path)
        sandbox.client.get("/account/sign-in", headers=asking)
        answer = sandbox.client.get(path, headers=asking)
        assert answer.content == plain.content
        assert "Content-Language" not in answer.headers
        assert "Accept-Language" not in answer.headers.get("Vary", "")
    page = sandbox.client.get("/account/sign-in", headers=asking)
    assert page.headers["Content-Language"] == "ar"
    assert "Accept-Language" in page.headers["Vary"]


def test_the_e_mail_is_in_the_language_of_the_code(
    sandbox: Sandbox, application: Application
) -> None:
    """The application's request has no language; the page where the code was made has."""
    sandbox.control("DELETE", "emails")
    person = Person(sandbox, verified=True)
    person.browser.headers["Accept-Language"] = "fr"
    person.sign_in()
    page = person.open("/account/connect-codes/new")
    page = person.submit(page, password=person.account["password"])
    redeem(application, re.search(r"CNX-\w{4}-\w{4}", page.text)[0])
    (email,) = sandbox.control("GET", "emails")
    assert email["subject"] == "Example shop a reçu vos informations"
    assert "Votre profil de base" in email["body"]


@pytest.mark.parametrize(
    ("language", "words"),
    [("ar", "شهادة صالحة دقيقتين"), ("en", "credential valid for 2 minutes")],
)
def test_numbers_have_their_plural(sandbox: Sandbox, language: str, words: str) -> None:
    """Two minutes are a word of their own in Arabic."""
    visitor = Visitor(sandbox)
    visitor.browser.headers["Accept-Language"] = language
    assert words in visitor.open("/account/sign-in").text
