"""What an operator does in Chromium: each action asks, is done, and says how it went."""

import pytest

from tests.browser.conftest import Visitor
from tests.browser.operating import (
    EVENTS,
    IDENTITIES,
    ask,
    look,
)


@pytest.mark.parametrize(
    ("button", "name"),
    [("Revoke at this site", "ask-revoke"), ("Disconnect", "ask-disconnect"),
     ("Erase", "ask-erase")],
)  # fmt: skip
def test_an_action_asks(operator: Visitor, button: str, name: str) -> None:
    """The confirmation page of every action; leaving it does nothing."""
    ask(operator, "ada", button)
    look(operator, name)
    operator.page.get_by_role("link", name="Cancel").click()
    operator.page.get_by_role("heading", name="ada").wait_for()


def test_an_action_asks_about_several(operator: Visitor) -> None:
    """Everybody who was chosen is named; leaving leads back to the list. Or one, who is revoked."""
    page = operator.page
    for search, action in (("", "disconnect"), ("?q=gozie", "revoke")):
        operator.go(IDENTITIES + search)
        page.locator("#action-toggle").check()
        page.get_by_label("Action:").select_option(action)
        page.get_by_role("button", name="Go").click()
        if action == "disconnect":
            assert page.locator(".identity-chosen li").count() > 5
            look(operator, "ask-disconnect-many")
            page.get_by_role("link", name="Cancel").click()
            page.locator("#result_list").wait_for()
    page.get_by_role("button", name="Revoke").click()
    page.get_by_text("1 identity was revoked.").wait_for()
    look(operator, "done-revoke")


@pytest.mark.parametrize(
    ("person", "button", "says"),
    [("imani", "Re-fetch now", "Re-fetched."),
     ("femi", "Re-fetch now", "The last re-fetch failed:"),  # whom the service does not know
     ("jide", "Erase", "The person was erased.")],
)  # fmt: skip
def test_an_action_is_done(operator: Visitor, person: str, button: str, says: str) -> None:
    """The message says how it went."""
    ask(operator, person, button)
    if button == "Erase":
        operator.page.get_by_role("button", name="Erase").click()
    operator.page.get_by_text(says).first.wait_for()
    look(operator, f"done-{person}")


def test_a_replay(operator: Visitor) -> None:
    """A failed event's handlers run again."""
    operator.go(f"{EVENTS}?outcome__exact=failed")
    operator.page.locator("#result_list tbody th a").first.click()
    operator.page.get_by_role("button", name="Replay the site's handlers").click()
    operator.page.get_by_text("The handlers of 1 event run again.").wait_for()
    look(operator, "done-replay")
