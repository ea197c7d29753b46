"""The main job in a real Chromium; ``IDENTITY_SCREENSHOTS`` names a folder for pictures."""

from example_project.demo.walk import BVN
from tests.browser.demo import Demo, give_password
from tests.browser.looking import shoot


def test_the_walk_in_a_browser(demo: Demo) -> None:
    """Press the button, sign in, verify, consent: the page for adults opens.

    With SameSite=Strict and the service on another host: the callback still knows who started it.
    """
    page, site, complaints = demo.window(), demo.site, []
    page.on("console", lambda message: complaints.append(message.text))
    page.goto(f"{site}/adults/")
    shoot(page, "1-login")
    page.get_by_role("button", name="Continue with your identity service").click()
    give_password(page, demo.people[0])
    page.fill("[name=bvn]", BVN)
    shoot(page, "2-sandbox-verify")
    page.press("[name=bvn]", "Enter")
    page.wait_for_selector("button[name=allow]")
    shoot(page, "3-sandbox-consent")
    page.locator("button[name=allow]").click()
    page.wait_for_url(f"{site}/adults/")
    assert page.get_by_role("heading", name="Circles for adults").is_visible()
    (session,) = [held for held in page.context.cookies(site) if held["name"] == "sessionid"]
    assert session["sameSite"] == "Strict"
    page.goto(f"{site}/loans/")
    assert page.get_by_role("heading", name="Loans").is_visible()
    # To the service and back, with fresh proofs.
    demo.account(page).get_by_role("button", name="Check again with your identity service").click()
    page.locator("button[name=allow]").click()
    page.wait_for_url(f"{site}/identity/account/")
    assert page.get_by_text("Your details were checked again.").first.is_visible()
    shoot(page, "4-account")
    page.goto(f"{site}/")
    page.get_by_role("button", name="Sign out").click()
    assert "/identity/login/" in demo.account(page).url
    assert [text for text in complaints if "Content Security Policy" in text] == []
