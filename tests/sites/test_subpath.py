"""Async views below a path."""

from concurrent.futures import ThreadPoolExecutor

from django_identity.testing.sandbox import RunningSandbox, SandboxPerson
from tests.sites.browser import Browser
from tests.sites.running import RunningSite
from tests.sites.table import steps_of

PEOPLE = 8
pytestmark = steps_of("subpath")


def test_a_template_of_an_async_view_asks(browser: Browser, person: SandboxPerson) -> None:
    """By its filter and by its tag, before and after the sign-in."""
    assert (browser.open("/offer/").text, browser.open("/tagged/").text) == ("juice", "none")
    browser.sign_in(person)
    assert (browser.open("/offer/").text, browser.open("/tagged/").text) == ("wine", "loans")


def test_json_learns_why(site: RunningSite, browser: Browser, person: SandboxPerson) -> None:
    """401, then 403 with the value that was asked for."""
    browser.sign_in(person)
    ask = {"Accept": "application/json"}
    with site.new_client() as nobody:
        assert nobody.get(f"{site.address}/britons/", headers=ask).status_code == 401
    closed = browser.fetch("/britons/")
    assert closed.status_code == 403
    assert closed.json()["missing"] == "country_resident=GB"


def test_many_at_once_are_not_mixed_up(site: RunningSite, sandbox: RunningSandbox) -> None:
    """Each person sees their own claims, while others are answered in the same loop."""
    with Browser(site) as adult, Browser(site) as stranger, ThreadPoolExecutor(PEOPLE) as threads:
        adult.sign_in(sandbox.create_person())
        stranger.sign_in(sandbox.create_person(verified=False))
        asked = [(adult, "wine"), (stranger, "juice")] * PEOPLE * 2
        answers = threads.map(lambda each: each[0].fetch("/offer/").text, asked)
        assert list(answers) == [expected for _, expected in asked]
