"""What a page tells somebody to do next helps: no dead end, and nothing is told twice."""

import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from django_identity.gates import Gate, closed_to
from django_identity.gates.closed import Closed
from django_identity.requirements import RequiredLevel, RequiredScope
from tests.factories import make_claim, make_identity, make_user
from tests.fake_service import FakeService
from tests.views.connect.pages import hand_in, refused

pytestmark = pytest.mark.django_db(transaction=True)

ADULT = {"missing": "age_over_18", "next": "/adults/"}
BUTTON = re.compile(r'class="identity-button[ "][^>]*>(.*?)</(?:a|button)>', re.DOTALL)


@pytest.fixture(autouse=True)
def _account_page(settings: Any) -> None:
    """The service has a page to which people can be sent."""
    given = settings.DJANGO_IDENTITY
    address = "https://service.example/me"
    settings.DJANGO_IDENTITY = {**given, "SERVICE_ACCOUNT_URL": address}


def asked(browser: Client, **query: str) -> str:
    return browser.get(reverse("identity:login"), query).content.decode()


def buttons(page: str) -> list[str]:
    return [re.sub(r"<[^>]+>|\s+", " ", text).strip() for text in BUTTON.findall(page)]


def test_a_verified_child_is_not_sent_to_verify(browser: Client, user: User) -> None:
    """The service verified them, so verifying again is a circle: look there, or go back."""
    make_claim(make_identity(user), "kyc_verified")
    page = asked(browser, **ADULT)
    assert "Your identity service verified you, but did not confirm this." in page
    assert "It may not apply to you. If you think it does, look there." in page
    assert buttons(page) == ["Open your identity service", "Back to this site"]
    assert "Get verified" not in page
    # Whoever had it corrected there comes back by a link.
    assert f'href="{reverse("identity:login")}?next=/adults/"' in page


def test_who_was_refused_is_told_so(browser: Client, user: User) -> None:
    make_identity(user, kyc_status="rejected", kyc_level="")
    page = asked(browser, **ADULT)
    assert "Your identity service did not accept your verification." in page
    assert "See there why, and try again." in page
    assert buttons(page)[0] == "Open your identity service"


def test_no_sentence_has_a_code(user: User) -> None:
    """Neither a level nor a scope: a person reads words."""
    make_identity(user, kyc_level="level_1")
    lower = closed_to(Gate(kyc_level="level_2"), user)
    assert lower is not None
    assert "You have: verification at level 1." in lower.detail
    for requirement in (RequiredLevel("level_2"), RequiredScope("documents:read")):
        assert not re.search("level_|documents:", Closed(requirement, None).detail)
    assert (
        "your identity documents."
        in Closed(RequiredScope("documents:read"), None).detail
    )


def test_an_open_page_that_grew_old_is_explained_once() -> None:
    """One sentence, and one button."""
    page = (
        Client(enforce_csrf_checks=True)
        .post(reverse("identity:login"))
        .content.decode()
    )
    main = page.partition("<main")[2]
    assert main.count("Start again") == 2
    assert main.count("Nothing was") == 1
    assert buttons(main) == ["Start again"]


def test_a_wrong_code_is_explained_once(service: FakeService, browser: Client) -> None:
    """One sentence, which leads to the field and describes it."""
    page = refused(hand_in(browser, "hello"), "connect_code_malformed", 400)
    assert page.count("Enter a code like CNX-XXXX-XXXX.") == 1
    assert 'aria-describedby="identity-connect-hint identity-connect-error"' in page
    assert '<p id="identity-connect-error">' in page


def test_a_code_of_another_account_says_how_to_move_it(
    service: FakeService, browser: Client
) -> None:
    """Where to disconnect it, and that the code is used up."""
    make_identity(make_user("eve"), subject=service.subject)
    page = refused(hand_in(browser), "subject_taken", 403)
    assert "If that account is yours, sign in to it and disconnect there first." in page
    assert "the one you entered is used up" in page
