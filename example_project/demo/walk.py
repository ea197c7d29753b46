"""The steps of the self-check. Each step proves something and prints what."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from example_project.demo.browser import Browser
from example_project.demo.processes import finished

BVN = "22222222222"


class StepFailed(Exception):
    """A step failed."""


class Walk:
    """One person's steps at ``site`` and at the sandbox."""

    def __init__(
        self,
        site: str,
        *,
        email: str,
        password: str,
        env: Mapping[str, str],
        say: Callable[[str], None],
    ) -> None:
        self._site, self._email, self._password, self._say = site, email, password, say
        self._env = env
        self._browser = Browser()

    def run(self) -> None:
        """Run all steps. Raises ``StepFailed`` at the first failure."""
        try:
            self._gates_are_closed("nobody is signed in")
            self._sign_in(first_time=True)
            self._gates_are_open()
            self._passport_is_shown()
            self._account_shows_what_is_held()
            self._worker_keeps_claims_fresh()
            self._gates_are_open()
            self._sign_out()
            self._sign_in(first_time=False)
            self._gates_are_open()
            self._erase()
            self._gates_are_closed("the account is erased")
        finally:
            self._browser.close()

    def _prove(self, holds: bool, what: str) -> None:
        if not holds:
            where = f"{self._browser.page.status_code} at {self._browser.path}"
            raise StepFailed(f"not so: {what} ({where})")
        self._say(f"ok  {what}")

    def _gates_are_closed(self, why: str) -> None:
        for path in ("/adults/", "/loans/"):
            self._browser.open(self._site + path)
            closed = self._browser.path == "/identity/login/"
            self._prove(closed, f"{path} is closed: {why}")

    def _gates_are_open(self) -> None:
        for path in ("/adults/", "/loans/"):
            self._browser.open(self._site + path)
            opened = (
                self._browser.path == path and self._browser.page.status_code == 200
            )
            self._prove(
                opened,
                f"{path} is open, by a claim or level that the site verified",
            )

    def _sign_in(self, *, first_time: bool) -> None:
        browser = self._browser
        browser.open(f"{self._site}/identity/login/?next=/adults/")
        browser.submit(holding="csrfmiddlewaretoken")
        at_sandbox = not browser.address.startswith(self._site)
        self._prove(at_sandbox, "the button leads to the identity service")
        if first_time:
            browser.submit(
                holding="password",
                email=self._email,
                password=self._password,
            )
            self._prove(
                "bvn" in browser.page.text,
                "signed in there; it asks to be verified",
            )
            browser.submit(holding="bvn", bvn=BVN)
        self._prove(
            "allow" in browser.page.text,
            "the consent screen says what is asked for",
        )
        browser.submit(holding="allow", allow="Approve")
        came_back = browser.address == f"{self._site}/adults/"
        self._prove(
            came_back,
            "consent brought the person back, signed in, to where they wanted",
        )

    def _account_shows_what_is_held(self) -> None:
        self._browser.open(f"{self._site}/identity/account/")
        held = self._browser.page.text
        shown = "Connected since" in held and "level 2" in held
        self._prove(shown, "the account page shows what the site holds")

    def _passport_is_shown(self) -> None:
        """The first sign-in did not ask for documents. Their page does."""
        self._browser.open(f"{self._site}/documents/")
        closed = self._browser.path == "/identity/login/"
        self._prove(closed, "/documents/ is closed, and asks for one thing more")
        self._browser.submit(holding="scope")
        self._prove(
            "documents:read" in self._browser.page.text,
            "the consent screen asks for it",
        )
        self._browser.submit(holding="allow", allow="Approve")
        self._prove(
            self._browser.path == "/documents/",
            "allowed, and back at /documents/",
        )
        listed = "/documents/passport/" in self._browser.page.text
        self._browser.open(f"{self._site}/documents/passport/")
        is_picture = self._browser.page.content.startswith(b"\x89PNG")
        self._prove(
            listed and is_picture,
            "the passport's picture is shown to its owner",
        )

    def _worker_keeps_claims_fresh(self) -> None:
        fetched = finished("-m", "example_project.demo.refetch", env=self._env)
        self._prove(fetched, "the worker re-fetched the claims when they were due")

    def _sign_out(self) -> None:
        self._browser.open(f"{self._site}/")
        self._browser.submit(to="/sign-out/")
        self._browser.open(f"{self._site}/identity/account/")
        self._prove(self._browser.path == "/identity/login/", "signed out")

    def _erase(self) -> None:
        self._browser.open(f"{self._site}/identity/erase/")
        self._browser.submit(holding="csrfmiddlewaretoken")
        self._browser.open(f"{self._site}/identity/account/")
        gone = self._browser.path == "/identity/login/"
        self._prove(gone, "erased: the session is over and nothing is held")
