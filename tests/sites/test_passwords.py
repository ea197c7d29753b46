"""People with a password and an identity: two ways into one account."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from django_identity.testing.sandbox import RunningSandbox, SandboxPerson
from tests.sites.browser import Browser
from tests.sites.people import MEMBER
from tests.sites.running import RunningSite, running_site
from tests.sites.table import site_named

pytestmark = pytest.mark.sites


@pytest.fixture(scope="module")
def site(
    sandbox: RunningSandbox, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningSite]:
    folder = tmp_path_factory.mktemp("passwords")
    with running_site(site_named("passwords"), sandbox, folder) as started:
        yield started


def test_a_password_session_outlives_the_consent(
    site: RunningSite, browser: Browser, person: SandboxPerson
) -> None:
    """The session of the identity ends, the one of the password goes on, with closed gates."""
    browser.sign_in_locally(MEMBER)
    browser.sign_in(person)
    with Browser(site) as by_identity:
        by_identity.sign_in(person)
        assert by_identity.whoami["user"] == browser.whoami["user"] == MEMBER
        consent = f"users/{person.user_id}/consents/{site.client_id}/revoke"
        site.sandbox.control("POST", consent)
        site.settle()
        assert by_identity.whoami["user"] is None
    assert browser.whoami == {"user": MEMBER, "claims": {}}
    assert "for adults" not in browser.open("/adults/").text


def test_a_code_after_the_sites_own_sign_in(site: RunningSite, browser: Browser) -> None:
    """The page that the code was for is still known afterwards."""
    browser.open("/identity/connect/?next=/offer/")
    assert browser.path == "/accounts/login/"
    assert "%2Fidentity%2Fconnect%2F%3Fnext%3D%252Foffer%252F" in str(browser.page.url)
