"""A person of the drill: their acts at the site, and what the service tells the site of them."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from django_identity import database
from django_identity.event_types import EventType
from django_identity.lifecycle.arriving.questions import REFUSALS
from django_identity.models import LinkedIdentity
from django_identity.testing import browser as pages
from django_identity.testing.drill import findings
from django_identity.testing.drill.doors import Door, new_browser, path_of
from django_identity.testing.drill.report import Report
from django_identity.testing.events import deliver_event
from django_identity.testing.sandbox import RunningSandbox

NO_ACCOUNT = "user_fields_refused"
NO_OF_POLICY = {*REFUSALS.values(), "approval_pending"}
#: Of no country: ISO 3166 leaves the code to its users.
NOWHERE = "XX"
# Test numbers of the service.
VERIFIED = "22222222222"
REJECTED = "11111111111"
GIVES = (EventType.KYC_VERIFIED, EventType.CLAIM_ISSUED, EventType.CONSENT_GRANTED)


class StepFailed(Exception):
    """The site refused a sign-in, or could not complete it. The message says why."""


class NotTried(Exception):
    """The site has no such step for this person. The message says why."""


class PolicyRefuses(NotTried):
    """The site's policy says no."""


class Scene(NamedTuple):
    """What all people share. ``our_pages``: paths of this package's own."""

    sandbox: RunningSandbox
    doors: Sequence[Door]
    our_pages: Sequence[str]
    report: Report


class Person:
    """Somebody with an account at the sandbox, and a browser. ``account``: of ``create_person``."""

    def __init__(self, scene: Scene, **account: Any) -> None:
        self.scene = scene
        self.report = scene.report
        self.account = account
        self.person = scene.sandbox.create_person(verified=False, **account)
        self.identities = LinkedIdentity.objects.filter(subject=self.person.user_id)
        self.browser = new_browser()
        #: What the doors have shown -> the path.
        self.shown: dict[bytes, str] = {}
        #: The path of a door -> the headers of its page.
        self.kept: dict[str, Any] = {}

    @property
    def user(self) -> Any:
        """Their account, read anew."""
        return database.all_users().get(pk=self.identities.latest("pk").user_id)

    def sign_in(self) -> None:
        try:
            leaving = pages.begin(self.browser)
        except KeyError:
            raise StepFailed("the login page does not lead to the service") from None
        returning = self.scene.sandbox.approve(leaving, self.person)
        arrived = pages.come_back(self.browser, returning)
        if arrived.status_code != 302:
            trouble = findings.trouble_in(arrived)
            failure = f"the sign-in fails, {trouble}"
            if trouble in NO_OF_POLICY:
                raise PolicyRefuses(f"the policy refuses (`{trouble}`)")
            # Where addresses are the names of accounts, nobody signs up without one.
            is_rare = self.account["country"] == NOWHERE
            if trouble == NO_ACCOUNT and (is_rare or not self.account["shows_email"]):
                raise NotTried(failure)
            raise StepFailed(failure)

    def try_number(self, number: str) -> None:
        path = f"users/{self.person.user_id}/verify"
        self.scene.sandbox.control("POST", path, bvn=number)

    def prove(self) -> None:
        self.try_number(VERIFIED)
        self.sign_in()
        for event_type in GIVES:
            deliver_event(
                event_type,
                self.person,
                status="verified",
                kyc_level="level_2",
            )

    def look_at_open_pages(self) -> None:
        """Whether everybody sees there what a door has shown to this person."""
        for page in filter(None, map(path_of, self.report.unseen)):
            response = new_browser().get(page, secure=True)
            door = self.shown.get(getattr(response, "content", b""))
            if door:
                self.report.find(
                    f"`{page}` shows to everybody what `{door}` has behind its gate",
                )

    def open_our_pages(self) -> None:
        """As this site renders them."""
        for page in self.scene.our_pages:
            response = self.browser.get(page, secure=True)
            if response.status_code >= 500:
                self.report.find(f"`{page}` fails: {findings.trouble_in(response)}")
