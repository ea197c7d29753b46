"""The steps with events: the site obeys a person's actions at the service, and how soon."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import httpx

from example_project.demo.browser import Browser
from example_project.demo.walk import BVN, StepFailed

#: On a busy machine; the walk says how long each took.
AT_ONCE = 30.0
#: The worker erases. The revocation before it needs no worker.
ERASED_WITHIN = 60.0
PAUSE = 0.02
DONE = "SELECT count(*) FROM django_identity_erasurereceipt WHERE erased_at IS NOT NULL"


class EventWalk:
    """A verified person with two open pages: one at ``site``, one at the service (``pages``)."""

    def __init__(
        self,
        site: str,
        pages: str,
        *,
        person: dict[str, str],
        client_id: str,
        database: Path,
        say: Callable[[str], None],
        erased_within: float = ERASED_WITHIN,
    ) -> None:
        self._site, self._pages, self._say = site, pages, say
        self._person, self._client_id, self._database = person, client_id, database
        self._erased_within = erased_within
        self._browser = Browser()

    def run(self) -> None:
        """Run all steps. Raises ``StepFailed`` at the first failure."""
        try:
            self._sign_in("/adults/")
            self._revoke_a_claim()
            self._revoke_the_consent()
            self._sign_in("/loans/")
            self._take_the_verification_back()
            self._verify_again()
            self._ask_for_deletion()
        finally:
            self._browser.close()

    def _prove(self, holds: bool, what: str) -> None:
        if not holds:
            where = f"{self._browser.page.status_code} at {self._browser.path}"
            raise StepFailed(f"not so: {what} ({where})")
        self._say(f"ok  {what}")

    def _prove_at_once(
        self,
        press: Callable[[], None],
        holds: Callable[[], bool],
        what: str,
    ) -> None:
        """Require that ``holds`` becomes true once the service is done."""
        press()
        began = time.monotonic()
        held = _comes_true(holds, until=began + AT_ONCE)
        took = time.monotonic() - began
        self._prove(held and took <= AT_ONCE, f"{what}, {took * 1000:.0f} ms later")

    # At the service

    def _revoke_a_claim(self) -> None:
        self._browser.open(f"{self._pages}/account/")
        self._prove_at_once(
            lambda: self._browser.submit(to="/claims/age_over_18/revoke"),
            lambda: not self._is_open("/adults/"),
            "revoked a claim at the service: /adults/ is closed",
        )
        self._prove(self._is_open("/loans/"), "and nothing else: /loans/ is open still")

    def _revoke_the_consent(self) -> None:
        self._browser.open(f"{self._pages}/account/")
        self._prove_at_once(
            lambda: self._browser.submit(to=f"/consents/{self._client_id}/revoke"),
            self._asks_to_sign_in,
            "revoked the consent at the service: the session at the site is over",
        )
        self._prove(not self._is_open("/loans/"), "and /loans/ is closed")

    def _take_the_verification_back(self) -> None:
        """Not a page of the person's: the vendor behind the service says so."""
        control = f"{self._pages}/sandbox/users/{self._person['user_id']}/invalidate"
        self._prove_at_once(
            lambda: _post(control),
            lambda: not self._is_open("/loans/"),
            "the verification was taken back at the service: /loans/ is closed",
        )
        self._prove(not self._is_open("/adults/"), "and /adults/ is closed, too")

    def _verify_again(self) -> None:
        """The event opens nothing, but it wakes the worker, which asks the service."""
        control = f"{self._pages}/sandbox/users/{self._person['user_id']}/verify"
        self._prove_at_once(
            lambda: _post(control, bvn=BVN),
            lambda: self._is_open("/loans/"),
            "verified again at the service: the worker has asked, and /loans/ is open",
        )

    def _ask_for_deletion(self) -> None:
        receipts = self._receipts()
        self._browser.open(f"{self._pages}/account/delete")
        self._prove_at_once(
            lambda: self._browser.submit(holding="delete", delete="1"),
            self._asks_to_sign_in,
            "asked the service for deletion: the account page asks to sign in",
        )
        until = time.monotonic() + self._erased_within
        erased = _comes_true(lambda: self._receipts() == receipts + 1, until=until)
        self._prove(erased, "the worker erased what was held, and left a receipt")
        self._prove(
            not self._is_named(),
            "nothing in the site's database names the person",
        )

    # At the site

    def _sign_in(self, path: str) -> None:
        browser = self._browser
        browser.open(f"{self._site}/identity/login/?next={path}")
        browser.submit(holding="csrfmiddlewaretoken")
        if "allow" not in browser.page.text:
            given = {name: self._person[name] for name in ("email", "password")}
            browser.submit(holding="password", **given)
        browser.submit(holding="allow", allow="Approve")
        came_back = (
            browser.address == self._site + path and browser.page.status_code == 200
        )
        self._prove(came_back, f"a verified person signed in, and {path} is open")

    def _is_open(self, path: str) -> bool:
        self._browser.open(self._site + path)
        return self._browser.path == path and self._browser.page.status_code == 200

    def _asks_to_sign_in(self) -> bool:
        self._browser.open(f"{self._site}/identity/account/")
        return self._browser.path == "/identity/login/"

    # In its database

    def _receipts(self) -> int:
        with closing(sqlite3.connect(self._database)) as database:
            count: int = database.execute(DONE).fetchone()[0]
            return count

    def _is_named(self) -> bool:
        names = (self._person["user_id"], self._person["email"])
        with closing(sqlite3.connect(self._database)) as database:
            return any(name in line for line in database.iterdump() for name in names)


def _post(address: str, **members: str) -> None:
    httpx.post(address, json=members, trust_env=False).raise_for_status()


def _comes_true(holds: Callable[[], bool], *, until: float) -> bool:
    while not holds():
        if time.monotonic() > until:
            return False
        time.sleep(PAUSE)
    return True
