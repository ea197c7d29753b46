"""Other people's accounts in a real Chromium: a stranger who was removed, and a phished code."""

from playwright.sync_api import Page

from example_project.demo.members import MEMBERS
from tests.browser.demo import Demo
from tests.browser.gallery import EXTREMES
from tests.browser.looking import looks_well, shoot

VICTIM, THIEF = MEMBERS


def test_a_removed_stranger_stays_out(demo: Demo) -> None:
    """Linked from an open session and disconnected by its owner: another account, never hers.

    Nor does a code help that the victim was talked into pasting.
    """
    session, stranger = demo.session_of(VICTIM), demo.window()
    demo.come_as(session, demo.people[1])
    assert demo.linked_accounts() == [VICTIM.name]
    demo.disconnect(session)
    demo.paste_code(session, demo.code_of(stranger, demo.people[1]))
    is_refused(demo, stranger, "strangers-1-code")
    assert demo.linked_accounts() == []
    demo.disconnect(session)
    stranger = demo.window()
    demo.come_as(stranger, demo.people[1])
    shoot(stranger, "strangers-2-removed")
    assert stranger.get_by_text("What Ajo Circle has confirmed").is_visible()
    assert len(demo.linked_accounts()) == 1
    assert demo.linked_accounts() != [VICTIM.name]


def test_a_phished_code_erases_nobody(demo: Demo) -> None:
    """The thief's page offers no erasure, its address leads away, and the victim still gets in."""
    session = demo.session_of(VICTIM)
    demo.come_as(session, demo.people[1])
    demo.disconnect(session)
    thief = demo.session_of(THIEF)
    demo.paste_code(thief, demo.code_of(demo.window(), demo.people[1]))
    thief.goto(f"{demo.site}/identity/account/")
    shoot(thief, "strangers-3-thief")
    assert thief.get_by_text("Erase my data").count() == 0
    thief.goto(f"{demo.site}/identity/erase/")
    assert "/erase/" not in thief.url
    again = demo.session_of(VICTIM)
    again.goto(f"{demo.site}/identity/account/")
    assert again.get_by_text("Your account is not connected").is_visible()


def test_a_strangers_code(demo: Demo) -> None:
    """Pasted, named on the page after it, of no use to the stranger, and undone by one press."""
    stranger, victim = demo.window(), demo.session_of(VICTIM)
    demo.paste_code(victim, demo.code_of(stranger, demo.people[1]))
    victim.get_by_role("heading", name="Is this you?").wait_for()
    assert "***@" in victim.locator("bdi").inner_text()
    looks_well(victim, "foreign-code-1-is-this-you", EXTREMES)
    looks_well(demo.account(victim), "foreign-code-2-account", EXTREMES)
    is_refused(demo, stranger, "foreign-code-3-refused")
    victim.get_by_role("button", name="This is not me: undo").click()
    victim.get_by_role("heading", name="Undone").wait_for()
    looks_well(victim, "foreign-code-4-undone", EXTREMES)
    demo.account(victim).get_by_text("Your account is not connected").wait_for()


def is_refused(demo: Demo, stranger: Page, name: str) -> None:
    stranger.goto(f"{demo.site}/identity/login/")
    stranger.get_by_role("button", name="Continue with your identity service").click()
    stranger.locator("button[name=allow]").click()
    stranger.get_by_role("heading", name="You were not signed in").wait_for()
    looks_well(stranger, name, EXTREMES)
    assert "/identity/login/" in demo.account(stranger).url
