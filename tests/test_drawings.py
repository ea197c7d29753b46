"""The drawings of the documentation show the steps of a run against the sandbox.

If a step has changed, see that its words still hold, then ``python -m tests.drawings``.
"""

import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.http import HttpRequest, HttpResponse
from django.test import Client
from django.urls import include, path

from django_identity.gates import claim_required
from django_identity.lifecycle.said import key_sets
from django_identity.models import (
    ErasureReceipt,
    LinkedIdentity,
    StoredClaim,
    TokenGrant,
)
from django_identity.testing.browser import path_here
from tests.drawings import BROWSER, DRAW, IMAGES, SERVICE, SITE, Step, drawn
from tests.sandbox.driver import Person, Sandbox

# A picture of the documentation: no rule of the package rests on it.
pytestmark = [
    pytest.mark.integration,
    pytest.mark.django_db(transaction=True),
    pytest.mark.urls(__name__),
]


@claim_required("age_over_18")
def adults(request: HttpRequest) -> HttpResponse:
    return HttpResponse("in")


urlpatterns = [
    path("adults/", adults),
    path("identity/", include("django_identity.urls")),
]
#: What is asked, and the status of the answer -> what it means. A step without words fails.
WORDS = {
    "GET /adults/ 302": "the gate is closed",
    "GET /adults/ 200": "the gate is open",
    "GET /identity/login/ 200": "which proof the page needs, and a button",
    "POST /identity/login/ 302": "stores state and PKCE verifier, sealed",
    "GET /identity/callback/ 302": "signed in; the page that was wanted is next",
    "GET /oauth2/auth 302": "nobody is signed in there yet",
    "GET /oauth2/auth 200": "who asks, and for what",
    "POST /oauth2/auth 302": "consent; back with a code",
    "POST /account/sign-in 302": "signed in there",
    "POST /oauth2/token 200": "code and verifier for tokens",
    "GET /api/v1/users/…/profile 200": "name, e-mail address, country",
    "GET /api/v1/users/…/kyc 200": "the verification level",
    "GET /api/v1/users/…/claims 200": "claims with the signed credential",
    "GET /.well-known/jwks.json 200": "the keys that verify it here",
    "POST /account/consents/…/revoke 302": "the person revokes the consent",
    "POST /account/delete 302": "the person asks to be erased",
    "consent.granted 200": "signed; recorded",
    "consent.revoked 200": "signed; applied before the answer",
    "data.deletion_requested 200": "signed; applied before the answer",
}
NAMELESS = re.compile(r"(?<=/users/)[^/]+|(?<=/consents/)[^/]+")


class Browser(Client):
    """The person's browser, which notes what it asks the site."""

    def __init__(self) -> None:
        super().__init__()
        self.noted: list[tuple[datetime, Step]] = []

    def request(self, **request: Any) -> Any:
        begun = datetime.now(UTC)
        answer = super().request(**request)
        asked = f"{request['REQUEST_METHOD']} {request['PATH_INFO']}"
        self.noted.append((begun, step(BROWSER, SITE, asked, answer.status_code)))
        return answer

    def go(self, address: str) -> str:
        """Where the site leads from ``address``."""
        answer = self.get(path_here(address), secure=True)
        return str(answer.get("Location", ""))


def step(sender: str, receiver: str, asked: str, status: object) -> Step:
    asked = NAMELESS.sub("…", asked)
    return Step(sender, receiver, f"{asked} → {status}", WORDS[f"{asked} {status}"])


class Play:
    """The site, the sandbox, and somebody who is verified there."""

    def __init__(self, sandbox: Sandbox, client_id: str, settle: Any) -> None:
        self.sandbox, self.client_id, self.settle = sandbox, client_id, settle
        self.browser, self.person = Browser(), Person(sandbox, verified=True)

    def sign_in(self) -> None:
        """The event about the consent may come at any time; here it comes last."""
        self.begin()
        self.sandbox.control("POST", "deliveries/hold", client_id=self.client_id)
        self.browser.go(self.browser.go("/adults/"))
        form = {"next": "/adults/"}
        leaving = self.browser.post("/identity/login/", form, secure=True)
        page = self.person.sign_in(self.person.open(leaving["Location"]))
        back = self.person.submit(page, allow="Approve").headers["Location"]
        self.browser.go(self.browser.go(back))
        self.sandbox.control("POST", "deliveries/release", client_id=self.client_id)
        self.settle()

    def at_the_service(self, action: str, page: str = "") -> None:
        """The person presses a button of their account page there, and the site hears of it."""
        self.person.submit(self.person.open(f"/account/{page}"), action)
        self.settle()

    def shows(self, means: str) -> None:
        proofs = StoredClaim.objects.filter(value__isnull=False)
        said = (
            f"identities: {LinkedIdentity.objects.count()}"
            f" · tokens: {TokenGrant.objects.count()} · proofs: {proofs.count()}"
            f" · accounts: {User.objects.filter(is_active=True).count()}"
        )
        self.browser.noted.append((datetime.now(UTC), Step(SITE, SITE, said, means)))

    def begin(self) -> None:
        """Forget what was before the story."""
        self.browser.noted.clear()
        self.sandbox.control("DELETE", "requests")
        self.sandbox.control("DELETE", "deliveries")

    def steps(self) -> list[Step]:
        noted = [*self.browser.noted, *self._received(), *self._sent()]
        return [step for _at, step in sorted(noted, key=lambda one: one[0])]

    def _received(self) -> Iterator[tuple[datetime, Step]]:
        """What the service was asked: its pages by the browser, all else by the site."""
        for each in self.sandbox.control("GET", "requests"):
            asked = f"{each['method']} {each['path']}"
            is_page = each["path"].startswith(("/account/", "/oauth2/auth"))
            # Pages of the account that the person only looks at are left out.
            if not asked.startswith("GET /account/"):
                sender = BROWSER if is_page else SITE
                at = datetime.fromisoformat(each["time"])
                yield at, step(sender, SERVICE, asked, each["status"])

    def _sent(self) -> Iterator[tuple[datetime, Step]]:
        for each in self.sandbox.control("GET", "deliveries"):
            for attempt in each["attempts"]:
                at = datetime.fromisoformat(attempt["sent_at"])
                yield at, step(SERVICE, SITE, each["event_type"], attempt["status"])


@pytest.fixture
def play(identity_sandbox, identity_application, identity_webhooks):
    key_sets.forget()
    with Sandbox(identity_sandbox) as sandbox:
        yield Play(sandbox, identity_application.client_id, identity_webhooks)


def agree(name: str, title: str, play: Play) -> None:
    """The file is what is drawn from the steps. With ``DRAW_STEPS`` it is written."""
    file = IMAGES / f"{name}.svg"
    shown = drawn(title, play.steps())
    if DRAW in os.environ:
        file.write_text(shown, "utf-8")
    assert file.read_text("utf-8") == shown


def test_a_sign_in(play):
    play.sign_in()
    agree("steps-sign-in", "A sign-in, from the closed gate to the open page", play)


def test_a_revocation(play):
    """At the next request the gate is closed, and the session is over."""
    play.sign_in()
    play.begin()
    play.browser.go("/adults/")
    play.at_the_service(f"/{play.client_id}/revoke")
    play.shows(f"consent: {LinkedIdentity.objects.get().consent}")
    play.browser.go("/adults/")
    agree("steps-revocation", "A revocation closes the gate at the next request", play)


def test_an_erasure(play):
    """What the event takes at once, and what the worker does after it, if anything is left."""
    play.sign_in()
    play.begin()
    play.at_the_service("/delete", page="delete")
    if ErasureReceipt.objects.get().erased_at is None:
        play.shows("receipt: pending, until a worker comes")
        call_command("identity_upkeep")
    assert ErasureReceipt.objects.get().erased_at is not None
    play.shows("receipt: erased")
    play.browser.go("/adults/")
    agree("steps-erasure", "An erasure that the person asks for at the service", play)
