"""One person's way through the doors, from the first page to the erasure."""

import re
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import unquote

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.utils import timezone

from django_identity import conf, database, signals
from django_identity.backends import BACKEND_PATH
from django_identity.event_types import EventType
from django_identity.gates.gate import missing_to
from django_identity.lifecycle import audit, upkeep
from django_identity.lifecycle.standing import standing_of
from django_identity.models import (
    ErasureReceipt,
    LinkedIdentity,
    StoredClaim,
    TokenGrant,
)
from django_identity.requirements import RequiredClaim, RequiredLevel, Requirement
from django_identity.testing import browser as pages
from django_identity.testing.drill import doors, findings
from django_identity.testing.drill.report import (
    NOBODY_CAN_TELL,
    RIGHT,
    WRONG,
    Report,
    Step,
)
from django_identity.testing.erased import known_of
from django_identity.testing.events import deliver_event
from django_identity.testing.sandbox import RunningSandbox, SandboxError
from django_identity.views.pages import address_of

LONG_AGO = timedelta(days=4000)
# Test numbers of the service.
VERIFIED = "22222222222"
REJECTED = "11111111111"
GIVES = (EventType.KYC_VERIFIED, EventType.CLAIM_ISSUED, EventType.CONSENT_GRANTED)
#: Steps at which nobody is signed in.
SIGNED_OUT = (Step.NOBODY, Step.ENDED, Step.ERASED)


class StepFailed(Exception):
    """The site refused a sign-in, or could not complete it. The message says why."""


@dataclass(frozen=True, slots=True)
class Scene:
    """What all people share. ``open_pages``: paths of pages without a gate."""

    sandbox: RunningSandbox
    doors: Sequence[doors.Door]
    open_pages: Sequence[str]
    report: Report

    def asked(self, *kinds: type) -> list[Requirement]:
        """What the doors ask for of these kinds."""
        asked = [each for door in self.doors for each in door.asked]
        return [each for each in asked if isinstance(each, kinds)]


class Visitor:
    """Somebody with an account at the sandbox, and a browser. ``account``: of ``create_person``."""

    def __init__(self, scene: Scene, **account: Any) -> None:
        self.scene = scene
        self.report = scene.report
        self.proofs = scene.asked(RequiredClaim, RequiredLevel)
        self.names = (account["first_name"], account["last_name"])
        self.person = scene.sandbox.create_person(**account)
        self.identities = LinkedIdentity.objects.filter(subject=self.person.user_id)
        self.browser = doors.new_browser()
        # The paths that were open, and are again once everything is proven again.
        self.opened: set[str] = set()

    @property
    def user(self) -> Any:
        """Their account, read anew."""
        return database.all_users().get(pk=self.identities.latest("pk").user_id)

    def sign_in(self) -> None:
        """Sign in under every application. Raises ``StepFailed``."""
        for application in conf.applications():
            try:
                leaving = pages.begin(self.browser, application)
            except KeyError:
                raise StepFailed(
                    "the login page does not lead to the service"
                ) from None
            returning = self.scene.sandbox.approve(leaving, self.person)
            arrived = pages.come_back(self.browser, returning)
            if arrived.status_code != 302:
                raise StepFailed(f"the sign-in fails, {findings.trouble_in(arrived)}")

    def hear(self, event_type: EventType, **said: Any) -> None:
        """Let the site get a signed event about the person."""
        for application in conf.applications():
            deliver_event(
                event_type, self.person, application=application.alias, **said
            )

    def try_number(self, number: str) -> None:
        path = f"users/{self.person.user_id}/verify"
        self.scene.sandbox.control("POST", path, bvn=number)

    # The steps

    def walk(self) -> None:
        """Everything but the parting, which is another person's."""
        files = findings.files_of_media()
        self.visit(Step.NOBODY)
        self.sign_in()
        self.visit(Step.UNPROVEN, self.proofs)
        links = self.links()
        self.prove()
        hidden = self.links() - links
        self.revoke()
        for link in hidden.difference(door.path for door in self.scene.doors):
            if doors.outcome_of(self.browser.get(link, secure=True)) == doors.OPEN:
                self.report.find(
                    f"`{link}` is hidden by a template alone: its view has no gate"
                )
        self.prove()
        self.end_consent()
        self.run_out()
        self.erase()
        for path in findings.files_of_media() - files:
            self.report.find(
                f"the file `{path}` is still there when its person is erased"
            )

    def prove(self) -> None:
        self.try_number(VERIFIED)
        self.sign_in()
        for event_type in GIVES:
            self.hear(
                event_type, status="verified", kyc_level="level_2", provider="Drill"
            )
        self.visit(Step.PROVEN, [])

    def links(self) -> set[str]:
        """The addresses to which the open pages link for this person."""
        found: set[str] = set()
        for page in self.scene.open_pages:
            # A GET of another one may do something, such as sign out.
            if doors.new_browser().get(page, secure=True).status_code == 200:
                text = self.browser.get(page, secure=True).content.decode()
                found |= {*re.findall(r'href="(/[^"#?]*)', text)}
        return found

    def revoke(self) -> None:
        """Each claim by an event of its own, then the level. What does not ask for it stays."""
        claims: Any = self.scene.asked(RequiredClaim)
        for claim_type in {claim.claim_type for claim in claims}:
            # The service may not know it.
            with suppress(SandboxError):
                self.scene.sandbox.revoke_claim(self.person, claim_type)
            self.hear(EventType.CLAIM_REVOKED, claim_type=claim_type)
            self.visit(
                Step.REVOKED,
                [claim for claim in claims if claim.claim_type == claim_type],
            )
        self.try_number(REJECTED)
        self.hear(
            EventType.KYC_REJECTED,
            status="rejected",
            kyc_level="level_1",
            provider="Drill",
        )
        self.visit(Step.REVOKED, self.proofs)
        # The site's handlers run now, before an erasure takes their events away.
        upkeep.run()
        # A claim counts again by a credential of a later second.
        self.scene.sandbox.control("POST", "clock", advance=2)

    def end_consent(self) -> None:
        """The session ends with it, and stays ended when the person signs in elsewhere."""
        ended: list[object] = []

        def note(**about: object) -> None:
            ended.append(about)

        signals.sessions_ended.connect(note)
        self.hear(EventType.CONSENT_REVOKED)
        self.visit(Step.ENDED)
        if not ended:
            self.report.find(
                "`sessions_ended` was not sent with the end of the consent"
            )
        if TokenGrant.objects.filter(identity__in=self.identities).exists():
            self.report.find("tokens are still stored after the end of the consent")

        former = self.browser
        self.browser = doors.new_browser()
        self.prove()
        present = self.browser
        self.browser = former
        self.visit(Step.ENDED)
        self.browser = present

    def run_out(self) -> None:
        """The stored ends move into the past, so that no clock has to move."""
        past = timezone.now() - LONG_AGO
        StoredClaim.objects.filter(identity__in=self.identities).update(
            valid_until=past
        )
        self.identities.update(kyc_said_at=past)
        self.visit(Step.RUN_OUT, self.proofs)

    def part(self) -> None:
        """Disconnect, sign in another way, and then with the same identity again."""
        others = [
            each for each in settings.AUTHENTICATION_BACKENDS if each != BACKEND_PATH
        ]
        if not others:
            self.report.untried[Step.DISCONNECTED] = (
                "the site has no other authentication backend"
            )
            return
        self.sign_in()
        user = self.user
        user.set_password(self.person.password)
        user.save()
        # A new password has ended the session.
        self.sign_in()
        other = doors.new_browser()
        other.force_login(user, backend=others[0])
        for application in conf.applications():
            other.post(
                pages.path_here(address_of("disconnect", application)), secure=True
            )
        if self.identities.exists():
            self.report.untried[Step.DISCONNECTED] = "the policy keeps the link"
            return
        self.visit(Step.DISCONNECTED)
        self.browser = other
        self.visit(Step.OTHER_WAY)
        self.browser = doors.new_browser()
        with suppress(StepFailed):
            self.sign_in()
        if self.browser.session.get(SESSION_KEY) == str(user.pk):
            self.report.find(
                "an identity that was disconnected signs in to the account again"
            )

    def erase(self) -> None:
        user = self.user
        users = list(database.all_users().values_list("pk", flat=True))
        self.hear(EventType.DATA_DELETION_REQUESTED)
        upkeep.run()
        self.visit(Step.ERASED)
        receipt = ErasureReceipt.objects.latest("pk")
        if receipt.erased_at is None:
            self.report.find(
                f"an erasure waits: {receipt.error}. {findings.error_of_policy(user)}"
            )
        elif receipt.account_kept:
            self.report.untried[Step.ERASED] = (
                f"the account stays: {receipt.account_kept}"
            )
        else:
            found = audit.search(known_of(user, self.person, *self.names))
            for place in found.hits:
                self.report.find(f"`{place}` still has something of an erased person")
            self.report.untried |= found.unread
        if database.all_users().exclude(pk__in=users).exists():
            self.report.find(
                "an account is made again after an erasure, by a receiver of a signal"
            )

    # A visit

    def visit(self, step: Step, gone: Collection[Requirement] | None = None) -> None:
        """Open each door. The person has lost ``gone``, or everything."""
        for door in self.scene.doors:
            response = door.open(self.browser)
            must_open = gone is not None and not any(
                each in gone for each in door.asked
            )
            # The person may never have had it: another country, a scope.
            must_open = must_open and self.has(door)
            if must_open:
                self.opened.add(door.path)
            if step is Step.PROVEN:
                must_open = door.path in self.opened
            wrong = self.wrong_with(door, step, response, must_open=must_open)
            outcome = NOBODY_CAN_TELL
            if wrong is not None:
                outcome = WRONG if wrong else RIGHT
            if wrong:
                self.report.find(wrong)
            self.report.visits.append(
                {
                    "address": door.path,
                    "step": step,
                    "person": self.names[0],
                    "status": response.status_code,
                    "outcome": outcome,
                }
            )

    def has(self, door: doors.Door) -> bool:
        """Whether the person has what the gates ask for, by what the site has stored."""
        user = self.user
        session = self.browser.session
        for gate in door.gates:
            standing = standing_of(user, application=gate.application)
            if missing_to(gate, standing, session=session) is not None:
                return False
        return True

    def wrong_with(
        self, door: doors.Door, step: Step, response: Any, *, must_open: bool
    ) -> str | None:
        """What is wrong: an empty text for nothing, None if nobody can tell."""
        if response.status_code >= 500:
            return f"`{door.path}` fails: {findings.trouble_in(response)}"
        if step in SIGNED_OUT and response.wsgi_request.user.is_authenticated:
            cause = findings.replaced_user(response) or settings.SESSION_ENGINE
            return f"somebody is signed in, step “{step}”: {cause}"
        outcome = doors.outcome_of(response)
        if must_open:
            self.report.untried.pop(door.path, None)
        if outcome not in (doors.OPEN, doors.CLOSED):
            self.report.untried[door.path] = (
                f"it answers {outcome} at the step “{step}”"
            )
            return None
        if must_open != (outcome == doors.OPEN):
            if outcome == doors.OPEN and door.has_own_page:
                return None
            return f"`{door.path}` is {outcome}: {findings.cause_of(door, response)}"
        if step is Step.UNPROVEN and outcome == doors.CLOSED:
            text = unquote(
                response.headers.get("Location", "") + response.content.decode()
            )
            if not any(str(each) in text for each in door.asked):
                return f"`{door.path}` does not say what is missing"
        return findings.cached(door.path, response)
