"""What a person does about Connect: make a code, see its state, be told, add what is missing."""

import re
from concurrent.futures import ThreadPoolExecutor
from itertools import islice

import httpx
import pytest

from tests.sandbox.connect_driver import codes_of, make_code, policy, redeem, refusal
from tests.sandbox.driver import Application, Person, Sandbox

NEW_CODE = "/account/connect-codes/new"


@pytest.fixture
def signed_in(person: Person) -> Person:
    person.sign_in()
    return person


def code_on(page: httpx.Response) -> str:
    found = re.search(r"CNX-[A-Z0-9]{4}-[A-Z0-9]{4}", page.text)
    assert found, page.text
    return found[0]


def make_on_page(person: Person) -> httpx.Response:
    return person.submit(person.open(NEW_CODE), password=person.account["password"])


def test_code_is_made_after_the_password(application: Application, signed_in: Person) -> None:
    """The page shows what will be shared; the password gives the code, and the code works."""
    page = signed_in.open(NEW_CODE)
    for words in ("What will be shared", "Ada Okafor", signed_in.account["email"], "level_2"):
        assert words in page.text
    assert "CNX-" not in page.text
    page = signed_in.submit(page, password=signed_in.account["password"])
    assert "Valid until" in page.text
    assert redeem(application, code_on(page)).status_code == 200


@pytest.mark.parametrize("password", ["", "wrong"])
def test_no_code_without_the_password(signed_in: Person, password: str) -> None:
    """Being signed in is not enough."""
    page = signed_in.submit(signed_in.open(NEW_CODE), password=password)
    assert page.url.path == NEW_CODE
    assert "field-invalid" in page.text
    assert codes_of(signed_in) == []


@pytest.mark.parametrize("path", [NEW_CODE, "/account/connect-codes/1"])
def test_codes_need_sign_in(sandbox: Sandbox, path: str) -> None:
    """A stranger is asked to sign in."""
    assert Person(sandbox).open(path).url.path == "/account/sign-in"


@pytest.mark.parametrize("path", ["connect-codes/new", "verify/address"])
def test_change_without_csrf_token_is_refused(signed_in: Person, path: str) -> None:
    """Neither a code nor proof of address can be had from another site."""
    assert signed_in.browser.post(f"/account/{path}").status_code == 403


def test_code_is_shown_to_its_person_only(sandbox: Sandbox, signed_in: Person) -> None:
    """Another person finds nothing at the code's address, which does not hold the code."""
    page = make_on_page(signed_in)
    assert code_on(page) not in str(page.url)
    other = Person(sandbox)
    other.sign_in()
    assert other.open(str(page.url)).status_code == 404


def test_countdown_follows_the_sandbox_clock(sandbox: Sandbox, signed_in: Person) -> None:
    """The page says when the code ends, how many seconds are left, and that it has expired."""
    page = make_on_page(signed_in)
    sandbox.control("POST", "clock", advance=60)
    later = signed_in.open(str(page.url))
    (left,) = re.findall(r'data-seconds-left="(\d+)"', later.text)
    assert 530 <= int(left) <= 540
    ends = re.findall(r'<time datetime="[^"]+">\d\d:\d\d:\d\d UTC</time>', later.text)
    assert ends == re.findall(r"<time.*?</time>", page.text)
    sandbox.control("POST", "clock", advance=600)
    expired = signed_in.open(str(page.url))
    assert "This code has expired" in expired.text
    assert code_on(page) not in expired.text


def test_script_is_served_by_the_sandbox_itself(sandbox: Sandbox, signed_in: Person) -> None:
    """The countdown is a file of its own, which the page's policy allows."""
    page = make_on_page(signed_in)
    assert "script-src 'self'" in page.headers["Content-Security-Policy"]
    assert re.findall(r"<script[^>]*>", page.text) == [
        '<script src="/static/sandbox/connect_code.js" defer>'
    ]
    script = sandbox.client.get("/static/sandbox/connect_code.js")
    assert script.headers["Content-Type"].startswith("text/javascript")


def test_account_lists_codes_and_their_states(
    sandbox: Sandbox, application: Application, signed_in: Person
) -> None:
    """Valid, used and expired codes are told apart, and none is readable in the list."""
    expired = make_code(signed_in)
    sandbox.control("POST", "clock", advance=601)
    used, valid = make_code(signed_in), make_code(signed_in)
    redeem(application, used)
    page = signed_in.open("/account/")
    for words in ("Valid", "Used", "Expired", "by Example shop"):
        assert words in page.text
    for code in (expired, used, valid):
        assert f"CNX-••••-{code[-4:]}" in page.text
        assert code not in page.text


def test_account_tells_who_received_what(application: Application, signed_in: Person) -> None:
    """A redemption leaves a notice and an access that can be revoked."""
    assert "Nothing to tell" in signed_in.open("/account/").text
    redeem(application, make_code(signed_in), scopes=["kyc:status"])
    page = signed_in.open("/account/")
    assert "Example shop received your information" in page.text
    assert "Your verification status" in page.text
    page = signed_in.submit(page, f"/account/consents/{application.client_id}/revoke")
    assert "No application can see" in page.text
    assert "Example shop received your information" in page.text


def test_policy_failure_then_verification_then_a_new_code(
    sandbox: Sandbox, application: Application
) -> None:
    """``kyc_url`` leads to what is missing; after that a new code works, and the old one never."""
    policy(application, kyc_level="level_2", proof_of_address=True)
    person = Person(sandbox)
    person.sign_in()
    first = code_on(make_on_page(person))
    answer = redeem(application, first)
    assert refusal(answer) == (403, "KYC_LEVEL_REQUIRED")
    assert "a higher verification level is required" in person.open("/account/").text
    page = person.submit(person.open(answer.json()["kyc_url"]), bvn="22222222222")
    assert "Your identity is verified" in page.text

    answer = redeem(application, code_on(make_on_page(person)))
    assert refusal(answer) == (403, "POA_REQUIRED")
    page = person.submit(person.open(answer.json()["kyc_url"]), document="utility_bill")
    assert "Your proof of address is accepted" in page.text

    assert refusal(redeem(application, first)) == (400, "INVALID_CONNECT_CODE")
    assert redeem(application, code_on(make_on_page(person))).status_code == 200


def test_unknown_document_proves_nothing(sandbox: Sandbox, signed_in: Person) -> None:
    """Only the listed documents prove an address."""
    page = signed_in.submit(signed_in.open("/account/verify"), document="a promise")
    assert "Choose one of the documents" in page.text
    assert not sandbox.control("GET", f"users/{signed_in.user_id}")["proof_of_address"]


@pytest.mark.processes
def test_e_mail_is_printed_and_a_full_pipe_holds_nothing_up() -> None:
    """The process prints each e-mail, and answers on when nobody reads them."""
    # The reader goes last: without an e-mail it would wait for the sandbox's end.
    with ThreadPoolExecutor(1) as reader, Sandbox() as sandbox:
        person = Person(sandbox, verified=True)
        redeem(Application(sandbox, name="Shop\nSubject: x"), make_code(person))
        assert sandbox.process.stdout is not None
        first_lines = islice(sandbox.process.stdout, 8)
        printed = reader.submit(list, first_lines).result(timeout=10)
        assert "Subject: Shop Subject: x received your information\n" in printed
        assert f"To: {person.account['email']}\n" in printed
        long_name = Application(sandbox, name="x" * 100_000)
        for _ in range(2):
            assert redeem(long_name, make_code(person)).status_code == 200
        assert sandbox.stop() == 0
