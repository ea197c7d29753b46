"""The walk that every site takes. Each step has a person of its own."""

import re

from django_identity.testing.sandbox import SandboxPerson
from tests.sites.browser import Browser
from tests.sites.site_table import CONNECTING, LINKING, OPERATOR


def test_a_new_person_gets_an_account_and_the_page_they_wanted(site, browser, person):
    """A new person gets an account, proven claims, and the page that they wanted.

    The same person has the same account in another browser, and without a wanted page some page.
    """
    arrived = browser.sign_in(person, next_path="/adults/")
    assert arrived.status_code == 200
    assert arrived.text == "for adults"
    assert browser.whoami["user"]
    assert browser.whoami["claims"]["age_over_18"] is True
    with Browser(site) as second:
        arrived = second.sign_in(person)
        assert arrived.status_code == 200, arrived.text
        assert second.whoami == browser.whoami


def test_a_member_links_their_identity_and_signs_in_with_it(site, browser, person):
    browser.sign_in_locally(LINKING)
    member = browser.whoami["user"]
    assert browser.sign_in(person, next_path="/adults/").text == "for adults"
    assert browser.whoami["user"] == member
    with Browser(site) as another:
        another.sign_in(person)
        assert another.whoami["user"] == member


def test_gates_open_by_proof_alone(browser, person):
    """Gates are closed to nobody in particular, open by proof, and closed by another value."""
    assert "for adults" not in browser.open("/adults/").text
    assert "/identity/login/" in browser.address
    assert browser.fetch("/adults/").status_code == 401
    assert browser.open("/offer/").text == "juice"
    browser.open("/adults/")
    browser.submit(holding="csrfmiddlewaretoken")
    assert browser.approve(person).text == "for adults"
    assert browser.open("/loans/").text == "for the verified"
    assert browser.open("/offer/").text == "wine"
    assert browser.open("/britons/").status_code == 403


def test_a_connect_code_verifies_a_member(site, browser, person):
    browser.sign_in_locally(CONNECTING)
    member = browser.whoami["user"]
    assert "for the verified" not in browser.open("/loans/").text
    browser.open("/identity/connect/")
    code = site.sandbox.connect_code(person)
    assert browser.submit(holding="connect_code", connect_code=code).status_code == 200
    assert browser.open("/loans/").text == "for the verified"
    assert browser.whoami["user"] == member


def test_a_revoked_claim_closes_its_gate_at_once(site, browser, person):
    browser.sign_in(person, next_path="/adults/")
    site.do_upkeep()
    site.sandbox.revoke_claim(person, "age_over_18")
    site.settle()
    assert "for adults" not in browser.open("/adults/").text
    assert browser.open("/loans/").text == "for the verified"


def test_a_revoked_consent_ends_the_session(site, browser, person):
    browser.sign_in(person, next_path="/adults/")
    site.do_upkeep()
    site.sandbox.revoke_consent(person)
    site.settle()
    assert browser.whoami == {"user": None, "claims": {}}
    assert "for adults" not in browser.open("/adults/").text


def test_a_deletion_request_leaves_nothing_of_the_person(site, browser, person):
    """A deletion request ends the session at once; then nothing of the person is left."""
    browser.sign_in(person, next_path="/adults/")
    with Browser(site) as operator:
        if site.site.has_admin:
            operator.sign_in_locally(OPERATOR)
            assert _listed(operator, person)
        site.sandbox.request_deletion(person)
        site.settle()
        assert browser.whoami["user"] is None
        site.do_upkeep()
        if site.site.has_admin:
            assert not _listed(operator, person)
            receipts = operator.open("/admin/django_identity/erasurereceipt/")
            assert receipts.status_code == 200
            assert person.email not in receipts.text


def test_the_deployment_checks_report_only_what_is_shown_on_purpose(site):
    checked = site.run("check", "--deploy")
    found = re.findall(r"django_identity\.[EW]\d+", checked.stderr)
    assert tuple(found) == site.site.reported, checked.stderr
    assert checked.returncode == bool(found), checked.stderr


def _listed(operator: Browser, person: SandboxPerson) -> str:
    """The path of the person's record, found by the search; empty if there is none."""
    page = operator.open(
        f"/admin/django_identity/linkedidentity/?q={person.user_id}",
    ).text
    found = re.search(r"/admin/django_identity/linkedidentity/\d+/change/", page)
    return found[0] if found else ""


def test_our_pages_stay_below_the_sites_prefix(browser, person):
    for path in ("login/", "callback/", "account/", "disconnect/", "connect/"):
        if path == "account/":
            browser.sign_in(person)
        assert browser.open(f"/identity/{path}").status_code < 500
        assert browser.links_outside == [], browser.page.text
