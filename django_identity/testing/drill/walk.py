"""One person's way through the doors, from the first page to the erasure."""

import re
from collections.abc import Collection
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.test import Client
from django.utils import timezone

from django_identity import conf, database, policy
from django_identity.backends import BACKEND_PATH
from django_identity.event_types import EventType
from django_identity.lifecycle import audit, upkeep
from django_identity.lifecycle.standing import standing_of
from django_identity.models import ErasureReceipt, LinkedIdentity, StoredClaim, TokenGrant
from django_identity.requirements import RecentSignIn, RequiredClaim, RequiredLevel, Requirement
from django_identity.testing import browser as pages
from django_identity.testing.drill import findings
from django_identity.testing.drill.doors import CLOSED, OPEN, Door, outcome_of
from django_identity.testing.drill.report import Report, Step
from django_identity.testing.erased import known_of
from django_identity.testing.events import deliver_event
from django_identity.testing.sandbox import RunningSandbox
from django_identity.views.pages import address_of

PROOFS = (RequiredClaim, RequiredLevel)
LONG_AGO = timedelta(days=4000)
# Test numbers of the service.
VERIFIED = "22222222222"
REJECTED = "11111111111"
# Steps at which nobody is signed in.
OVER = (Step.NOBODY, Step.ENDED, Step.ERASED)
GIVES = (EventType.KYC_VERIFIED, EventType.CLAIM_ISSUED, EventType.CONSENT_GRANTED)


class SignInFailed(Exception):
    """The site refused a sign-in, or could not complete it. The message is the reason."""


class Visitor:
    """Somebody with an account at the sandbox, and a browser. ``account``: of ``create_person``."""

    def __init__(
        self,
        sandbox: RunningSandbox,
        doors: Collection[Door],
        open_pages: Collection[str],
        report: Report,
        **account: Any,
    ) -> None:
        self.sandbox = sandbox
        self.doors = doors
        self.open_pages = open_pages
        self.report = report
        self.names = (account["first_name"], account["last_name"])
        self.person = sandbox.create_person(**account)
        self.identities = LinkedIdentity.objects.filter(subject=self.person.user_id)
        self.browser = new_browser()

    def sign_in(self) -> None:
        """Sign in under every application. Raises ``SignInFailed``."""
        for application in conf.applications():
            leaving = pages.begin(self.browser, application)
            arrived = pages.come_back(self.browser, self.sandbox.approve(leaving, self.person))
            if arrived.status_code != 302:
                raise SignInFailed(findings.trouble_in(arrived))

    def hear(self, event_type: EventType, **said: Any) -> None:
        """Let the site get a signed event about the person."""
        for application in conf.applications():
            deliver_event(event_type, self.person, application=application.alias, **said)

    @property
    def user(self) -> Any:
        return database.all_users().get(pk=self.identities.latest("pk").user_id)

    def held(self, *without: type) -> list[Requirement]:
        """What the person has of that which doors ask for, by what the site has stored."""
        user = self.user
        held: list[Requirement] = []
        for each in {each for door in self.doors for each in door.asked}:
            shortfall = standing_of(user, application=each.application).shortfall(each)
            is_there = shortfall is None or isinstance(each, RecentSignIn)
            if is_there and not isinstance(each, without):
                held.append(each)
        return held

    # The steps

    def walk(self) -> None:
        """Everything but the parting, which is another person's."""
        files = _files()
        self.visit(Step.NOBODY)
        self.sign_in()
        self.visit(Step.UNPROVEN, self.held(*PROOFS))
        links = self.links()
        self.prove()
        hidden = self.links() - links
        for claim_type in {getattr(each, "claim_type", "") for each in self.held()} - {""}:
            self.sandbox.revoke_claim(self.person, claim_type)
            self.hear(EventType.CLAIM_REVOKED, claim_type=claim_type)
            left = [each for each in self.held() if getattr(each, "claim_type", "") != claim_type]
            self.visit(Step.REVOKED, left)
        self.try_number(REJECTED)
        self.hear(EventType.KYC_REJECTED, status="rejected", kyc_level="level_1", provider="Drill")
        self.visit(Step.REVOKED, self.held(*PROOFS))
        for link in hidden.difference(door.path for door in self.doors):
            if outcome_of(self.browser.get(link, secure=True)) == OPEN:
                self.report.find(f"`{link}` is hidden by a template alone: its view has no gate")
        # The handlers of the site, which erasures would overtake.
        upkeep.run()
        self.prove()
        self.end_consent()
        self.run_out()
        self.erase()
        for path in _files() - files:
            self.report.find(f"the file `{path}` is still there when its person is erased")

    def prove(self) -> None:
        self.try_number(VERIFIED)
        self.sign_in()
        for event_type in GIVES:
            self.hear(event_type, status="verified", kyc_level="level_2", provider="Drill")
        self.visit(Step.PROVEN, self.held())

    def links(self) -> set[str]:
        """The addresses to which the open pages link for this person."""
        found: set[str] = set()
        for page in self.open_pages:
            # Not a page that a GET changes, such as one that signs out.
            if new_browser().get(page, secure=True).status_code == 200:
                found |= {
                    *re.findall(
                        r'href="(/[^"#?]*)', self.browser.get(page, secure=True).content.decode()
                    )
                }
        return found

    def try_number(self, number: str) -> None:
        self.sandbox.control("POST", f"users/{self.person.user_id}/verify", bvn=number)

    def end_consent(self) -> None:
        """The session ends with it, and stays ended when the person signs in elsewhere."""
        former = self.browser
        self.hear(EventType.CONSENT_REVOKED)
        self.require_end(former, "goes on after the end of the consent")
        if TokenGrant.objects.filter(identity__in=self.identities).exists():
            self.report.find("tokens are still stored after the end of the consent")
        self.browser = new_browser()
        self.prove()
        self.require_end(former, "that ended is there again after the next sign-in")

    def run_out(self) -> None:
        """The stored ends move into the past, so that no clock has to move."""
        past = timezone.now() - LONG_AGO
        StoredClaim.objects.filter(identity__in=self.identities).update(valid_until=past)
        self.identities.update(kyc_said_at=past)
        self.visit(Step.RUN_OUT, self.held(*PROOFS))

    def part(self) -> None:
        """Disconnect, sign in another way, and then with the same identity again."""
        self.sign_in()
        user = self.user
        user.set_password(self.person.password)
        user.save()
        # A new password has ended the session.
        self.sign_in()
        for application in conf.applications():
            page = pages.path_here(address_of("disconnect", application))
            self.browser.post(page, secure=True)
        if self.identities.exists():
            self.report.untried[Step.DISCONNECTED] = "the policy keeps the link"
            return
        self.visit(Step.DISCONNECTED)
        for backend in [each for each in settings.AUTHENTICATION_BACKENDS if each != BACKEND_PATH]:
            self.browser.force_login(user, backend=backend)
            self.visit(Step.OTHER_WAY)
        self.browser = new_browser()
        with suppress(SignInFailed):
            self.sign_in()
        if self.browser.session.get(SESSION_KEY) == str(user.pk):
            self.report.find("an identity that was disconnected signs in to the account again")

    def erase(self) -> None:
        user = self.user
        users = list(database.all_users().values_list("pk", flat=True))
        self.hear(EventType.DATA_DELETION_REQUESTED)
        upkeep.run()
        self.visit(Step.ERASED)
        receipt = ErasureReceipt.objects.latest("pk")
        if receipt.erased_at is None:
            self.report.find(f"an erasure waits: {receipt.error}. {_error_of_policy(user)}")
        elif receipt.account_kept:
            self.report.untried["erasure"] = f"the account stays: {receipt.account_kept}"
        else:
            found = audit.search(known_of(user, self.person, *self.names))
            for place in found.hits:
                self.report.find(f"`{place}` still has something of an erased person")
            self.report.untried |= found.unread
        if database.all_users().exclude(pk__in=users).exists():
            self.report.find("an account is made again after an erasure, by a receiver of a signal")

    # A visit

    def visit(self, step: Step, held: Collection[Requirement] = ()) -> None:
        """Open each door, for somebody who has ``held`` of what doors ask for."""
        for door in self.doors:
            response = door.open(self.browser)
            wrong = self.wrong_with(door, step, response, held)
            self.report.note(door.path, step, self.names[0], response.status_code, wrong)

    def wrong_with(
        self, door: Door, step: Step, response: Any, held: Collection[Requirement]
    ) -> str | None:
        """What is wrong with the response: an empty text for nothing, None if nobody can tell."""
        if response.status_code >= 500:
            return f"`{door.path}` fails: {findings.trouble_in(response)}"
        outcome = outcome_of(response)
        must_open = door.asked.issubset(held)
        if must_open:
            self.report.untried.pop(door.path, None)
        if outcome not in (OPEN, CLOSED):
            self.report.untried[door.path] = f"it answers {outcome} at the step “{step}”"
            return None
        if outcome == OPEN and not must_open and door.has_own_page:
            return None
        if must_open != (outcome == OPEN):
            cause = findings.cause_of(door, response, is_over=step in OVER)
            return f"`{door.path}` is {outcome}: {cause}"
        stays = findings.cached(door.path, response)
        if stays:
            return stays
        if step is Step.UNPROVEN and outcome == CLOSED:
            text = unquote(response.headers.get("Location", "") + response.content.decode())
            names = [str(each) for each in door.asked.difference(held)]
            if not any(name in text for name in names):
                return f"`{door.path}` does not say what is missing"
        return ""

    def require_end(self, former: Client, what: str) -> None:
        present, self.browser = self.browser, former
        self.visit(Step.ENDED)
        page = pages.path_here(address_of("account", conf.applications()[0]))
        response: Any = former.get(page, secure=True)
        if response.wsgi_request.user.is_authenticated:
            self.report.find(f"a session {what}: {findings.cause_of(None, response, is_over=True)}")
        self.browser = present


def new_browser() -> Client:
    """One that gets the site's page for an error, and not the error."""
    return Client(raise_request_exception=False)


def _files() -> set[Path]:
    """All files under MEDIA, by their names there."""
    media = Path(settings.MEDIA_ROOT)
    return {path.relative_to(media) for path in media.rglob("*") if path.is_file()}


def _error_of_policy(user: Any) -> str:
    """What the site's own code raises in an erasure. The receipt has only the error's class."""
    try:
        policy.load(conf.applications()[0].policy).erase_user(user)
    except Exception as error:  # noqa: BLE001  it is the site's own code
        return findings.described(error)
    return ""
