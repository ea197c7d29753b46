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
    """Everybody who was chosen is named; leaving leads back to the list."""
    operator.go(IDENTITIES)
    operator.page.locator("#action-toggle").check()
    operator.page.get_by_label("Action:").select_option("disconnect")
    operator.page.get_by_role("button", name="Go").click()
    assert operator.page.locator(".identity-chosen li").count() > 5
    look(operator, "ask-disconnect-many")
    operator.page.get_by_role("link", name="Cancel").click()
    operator.page.locator("#result_list").wait_for()


def test_a_refetch(operator: Visitor) -> None:
    """Re-fetch, and read the message."""
    ask(operator, "imani", "Re-fetch now")
    operator.page.get_by_text("Re-fetched.").wait_for()
    look(operator, "done-refetch")


def test_a_refetch_that_fails(operator: Visitor) -> None:
    """A person whom the service does not know: the message says what went wrong."""
    ask(operator, "femi", "Re-fetch now")
    operator.page.get_by_text("The last re-fetch failed:").first.wait_for()
    look(operator, "failed-refetch")


def test_a_revocation(operator: Visitor) -> None:
    """From the list this time: choose two, confirm, read the message."""
    operator.go(f"{IDENTITIES}?q=gozie")
    operator.page.locator("#result_list tbody input[type=checkbox]").first.check()
    operator.page.get_by_label("Action:").select_option("revoke")
    operator.page.get_by_role("button", name="Go").click()
    operator.page.get_by_role("button", name="Revoke").click()
    operator.page.get_by_text("1 identity was revoked.").wait_for()
    look(operator, "done-revoke")


def test_an_erasure(operator: Visitor) -> None:
    """Asked once, then done."""
    ask(operator, "jide", "Erase")
    operator.page.get_by_role("button", name="Erase").click()
    operator.page.get_by_text("The person was erased.").wait_for()
    look(operator, "done-erase")


def test_a_replay(operator: Visitor) -> None:
    """A failed event's handlers run again."""
    operator.go(f"{EVENTS}?outcome__exact=failed")
    operator.page.locator("#result_list tbody th a").first.click()
    operator.page.get_by_role("button", name="Replay the site's handlers").click()
    operator.page.get_by_text("The handlers of 1 event run again.").wait_for()
    look(operator, "done-replay")
