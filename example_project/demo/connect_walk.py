"""The steps with Connect codes: a member verifies their account without leaving the site."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import unescape
from typing import Any

import httpx

from example_project.demo.browser import Browser
from example_project.demo.members import MEMBERS, Member
from example_project.demo.walk import StepFailed

CODE = re.compile(r'<code id="connect-code">(CNX-[A-Z0-9]{4}-[A-Z0-9]{4})</code>')
ADD_PROOF = re.compile(r'href="([^"]+)"[^>]*>Add proof of address<')
ELEVEN_MINUTES = 660


class ConnectWalk:
    """Two members of the circle at ``site``, and their accounts at the ``sandbox``."""

    def __init__(self, site: str, sandbox: str, *, say: Callable[[str], None]) -> None:
        self._site, self._sandbox, self._say = site, sandbox, say
        self._control = httpx.Client(base_url=f"{sandbox}/sandbox/", trust_env=False)
        self._at_site, self._at_service = Browser(), Browser()

    def run(self) -> None:
        """Run all steps. Raises ``StepFailed`` at the first failure."""
        kemi, tunde = MEMBERS
        try:
            self._ask_for_proof_of_address(asked=False)
            self._sign_in(kemi)
            self._person(verified=True)
            used = self._a_good_code()
            self._the_same_code_again(used)
            self._an_expired_code()
            self._sign_in(tunde)
            self._somebody_elses_code(used)
            self._person(verified=True)
            self._a_policy_failure()
        finally:
            self._ask_for_proof_of_address(asked=False)
            self._tell("clock", reset=True)
            for opened in (self._at_site, self._at_service, self._control):
                opened.close()

    def _prove(self, holds: bool, what: str) -> None:
        if not holds:
            where = f"{self._at_site.page.status_code} at {self._at_site.path}"
            raise StepFailed(f"not so: {what} ({where})")
        self._say(f"ok  {what}")

    # At the site

    def _sign_in(self, member: Member) -> None:
        self._at_site.close()
        self._at_site = Browser()
        self._at_site.open(f"{self._site}/identity/connect/")
        asked = self._at_site.path == "/accounts/login/"
        self._prove(
            asked,
            "a code verifies an account: the site asks to sign in to it first",
        )
        self._at_site.submit(
            holding="username",
            username=member.name,
            password=member.password,
        )
        came_back = self._at_site.path == "/identity/connect/"
        self._prove(
            came_back,
            f"{member.name} signed in with a password, and sees the field",
        )
        self._prove(not self._is_open("/loans/"), f"/loans/ is closed to {member.name}")

    def _is_open(self, path: str) -> bool:
        self._at_site.open(self._site + path)
        return self._at_site.path == path and self._at_site.page.status_code == 200

    def _hand_in(self, code: str) -> str:
        self._at_site.open(f"{self._site}/identity/connect/?next=/loans/")
        self._at_site.submit(holding="connect_code", connect_code=code)
        return self._at_site.page.text

    def _says_whose_code(self) -> bool:
        return self._at_site.path == "/identity/connected/"

    def _goes_on_to(self, path: str) -> bool:
        """Whether the page after the code links to ``path``, and that is open."""
        return f'href="{path}"' in self._at_site.page.text and self._is_open(path)

    # At the service

    def _person(self, *, verified: bool) -> None:
        """Create a person and sign them in at the service."""
        person = self._tell("users", verified=verified)
        self._password = person["password"]
        self._at_service.close()
        self._at_service = Browser()
        self._at_service.open(f"{self._sandbox}/account/sign-in")
        self._at_service.submit(
            holding="password",
            email=person["email"],
            password=self._password,
        )

    def _make_code(self) -> str:
        self._at_service.open(f"{self._sandbox}/account/connect-codes/new")
        self._at_service.submit(holding="password", password=self._password)
        shown = CODE.search(self._at_service.page.text)
        self._prove(
            shown is not None,
            "made a code at the service, with the password once more",
        )
        return shown[1] if shown else ""

    def _tell(self, path: str, **body: object) -> dict[str, Any]:
        answer = self._control.post(path, json=body).raise_for_status()
        told: dict[str, Any] = answer.json()
        return told

    def _ask_for_proof_of_address(self, *, asked: bool) -> None:
        for application in self._control.get("applications").raise_for_status().json():
            path = f"applications/{application['app_id']}/connect-policy"
            self._tell(path, proof_of_address=asked)

    # What becomes of a code

    def _a_good_code(self) -> str:
        code = self._make_code()
        self._hand_in(f"My code is {code.lower().replace('-', ' ')}, thanks!")
        self._prove(
            self._says_whose_code(),
            "pasted with words around it: whose code it is",
        )
        self._prove(
            self._goes_on_to("/loans/"),
            "said to be the right person: /loans/ is open",
        )
        self._prove(
            not self._is_open("/leave/"),
            "/leave/ is closed: a code is no sign-in",
        )
        return code

    def _the_same_code_again(self, code: str) -> None:
        self._hand_in(code)
        same = self._says_whose_code() and self._goes_on_to("/loans/")
        self._prove(
            same,
            "the same code again by the same person: the same answer, asked once",
        )

    def _somebody_elses_code(self, code: str) -> None:
        page = self._hand_in(code)
        self._prove(
            "connect_code_used" in page,
            "the same code by somebody else is refused",
        )
        self._prove(not self._is_open("/loans/"), "and opens nothing")

    def _an_expired_code(self) -> None:
        code = self._make_code()
        self._tell("clock", advance=ELEVEN_MINUTES)
        page = self._hand_in(code)
        self._prove(
            "invalid_connect_code" in page,
            "after eleven minutes a code has run out",
        )
        self._prove("Make a new one" in page, "and the page says to make a new one")
        self._tell("clock", reset=True)

    def _a_policy_failure(self) -> None:
        self._ask_for_proof_of_address(asked=True)
        page = self._hand_in(self._make_code())
        link = ADD_PROOF.search(page)
        self._prove(
            link is not None,
            "the site needs more: the page links to where one gets it",
        )
        self._at_service.open(unescape(link[1]) if link else "")
        self._at_service.submit(to="/verify/address", document="utility_bill")
        self._hand_in(self._make_code())
        self._prove(
            self._goes_on_to("/loans/"),
            "verified there, a new code opens /loans/",
        )
