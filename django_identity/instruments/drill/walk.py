"""The steps of a person: what happens before each, and what they have lost by then."""

from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from typing import Any, NamedTuple
from unittest.mock import Mock
from urllib.parse import unquote

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.utils import timezone

from django_identity import database, signals
from django_identity.backends import BACKEND_PATH
from django_identity.event_types import EventType
from django_identity.gates import closed_to
from django_identity.instruments import audit
from django_identity.instruments.drill import findings
from django_identity.instruments.drill.doors import (
    CLOSED,
    OPEN,
    Door,
    new_browser,
    outcome_of,
)
from django_identity.instruments.drill.person import (
    REJECTED,
    NotTried,
    Person,
    StepFailed,
)
from django_identity.instruments.drill.report import NOBODY_CAN_TELL, RIGHT, WRONG
from django_identity.lifecycle.minute import upkeep
from django_identity.models import (
    ErasureReceipt,
    StoredClaim,
    TokenGrant,
)
from django_identity.requirements import RequiredClaim, RequiredLevel
from django_identity.testing import browser as pages
from django_identity.testing.erased import known_of
from django_identity.testing.sandbox import SandboxError
from django_identity.web.pages import address_of

LONG_AGO = timedelta(days=4000)
#: Steps at which nobody is signed in.
SIGNED_OUT = ("nobody", "ended", "erased")
# The kinds of requirements that are not met at a step.
PROOFS = (RequiredClaim, RequiredLevel)
NOTHING = ()
EVERYTHING = object


class Step(NamedTuple):
    """A visit to all doors. ``lost``: of which kinds are the requirements that are not met now."""

    name: str
    lost: Any


class Visitor(Person):
    """Goes through the steps, and tries all doors at each of them."""

    # The steps

    def walk(self) -> Iterator[Step]:
        """From the first page to the erasure."""
        yield Step("nobody", EVERYTHING)
        self.sign_in()
        yield Step("unproven", PROOFS)
        self.prove()
        yield Step("proven", NOTHING)
        links = self.links()

        for claim_type in {claim.claim_type for claim in self.scene.claims}:
            # The service may not know it.
            with suppress(SandboxError):
                self.scene.sandbox.revoke_claim(self.person, claim_type)
            self.hear(EventType.CLAIM_REVOKED, claim_type=claim_type)
        yield Step("revoked", RequiredClaim)
        self.try_number(REJECTED)
        self.hear(
            EventType.KYC_REJECTED,
            status="rejected",
            kyc_level="level_1",
            provider="Drill",
        )
        yield Step("revoked", PROOFS)

        self.try_hidden(links - self.links())
        # The site's handlers run now, before an erasure takes their events away.
        upkeep.run()
        # A claim counts again by a credential of a later second.
        self.scene.sandbox.control("POST", "clock", advance=2)
        self.prove()
        yield Step("proven", NOTHING)
        yield from self.end_consent()
        yield from self.run_out()
        yield from self.erase()

    def try_hidden(self, links: set[str]) -> None:
        """Ask for what no page shows any more."""
        for link in links - {door.path for door in self.scene.doors}:
            if outcome_of(self.browser.get(link, secure=True)) == OPEN:
                self.report.find(
                    f"`{link}` is hidden by a template alone: its view has no gate"
                )

    def end_consent(self) -> Iterator[Step]:
        """The session ends with it, and stays ended when the person signs in elsewhere."""
        receiver = Mock()
        signals.sessions_ended.connect(receiver)
        self.hear(EventType.CONSENT_REVOKED)
        yield Step("ended", EVERYTHING)
        if not receiver.called:
            self.report.find(
                "`sessions_ended` was not sent with the end of the consent"
            )
        if TokenGrant.objects.filter(identity__in=self.identities).exists():
            self.report.find("tokens are still stored after the end of the consent")

        former = self.browser
        self.browser = new_browser()
        self.prove()
        yield Step("proven", NOTHING)
        self.browser = former
        yield Step("ended", EVERYTHING)

    def run_out(self) -> Iterator[Step]:
        """The stored ends move into the past, so that no clock has to move."""
        self.sign_in()
        past = timezone.now() - LONG_AGO
        claims = StoredClaim.objects.filter(identity__in=self.identities)
        claims.update(valid_until=past)
        self.identities.update(kyc_said_at=past)
        yield Step("run out", PROOFS)

    def erase(self) -> Iterator[Step]:
        user = self.user
        keys = list(database.all_users().values_list("pk", flat=True))
        self.hear(EventType.DATA_DELETION_REQUESTED)
        upkeep.run()
        yield Step("erased", EVERYTHING)

        receipt = ErasureReceipt.objects.latest("pk")
        if receipt.erased_at is None:
            cause = findings.error_of_policy(user)
            self.report.find(f"an erasure waits: {receipt.error}. {cause}")
        elif receipt.account_kept:
            self.report.untried["erased"] = f"the account stays: {receipt.account_kept}"
        else:
            names = (self.account["first_name"], self.account["last_name"])
            remains = audit.search(known_of(user, self.person, *names))
            self.report.untried |= remains.unread
            for place in remains.hits:
                self.report.find(f"`{place}` still has something of an erased person")
            for path in findings.files_of_media():
                self.report.find(
                    f"the file `{path}` is still there when its person is erased"
                )
        if database.all_users().exclude(pk__in=keys).exists():
            self.report.find(
                "an account is made again after an erasure, by a receiver of a signal"
            )

    def part(self) -> Iterator[Step]:
        """Disconnect in a browser that has signed in another way, and come back."""
        backends = [*settings.AUTHENTICATION_BACKENDS]
        backends.remove(BACKEND_PATH)
        if not backends:
            raise NotTried("nobody disconnects: the site has no other back end")
        self.sign_in()
        user = self.user
        user.set_password(self.person.password)
        user.save()
        # A new password has ended the session.
        self.prove()
        other = new_browser()
        other.force_login(user, backend=backends[0])
        other.post(pages.path_here(address_of("disconnect")), secure=True)
        if self.identities.exists():
            raise NotTried("nobody disconnects: the policy keeps the link")
        yield Step("disconnected", EVERYTHING)
        self.browser = other
        yield Step("other way", EVERYTHING)
        self.browser = new_browser()
        with suppress(StepFailed):
            self.sign_in()
        if self.browser.session.get(SESSION_KEY) == str(user.pk):
            self.report.find(
                "an identity that was disconnected signs in to the account again"
            )

    # At the doors

    def take(self, steps: Iterator[Step]) -> None:
        """Raises ``StepFailed``, ``NotTried``, and ``AssertionError`` for an event."""
        for step in steps:
            for door in self.scene.doors:
                self.visit(door, step)

    def visit(self, door: Door, step: Step) -> None:
        response = door.open(self.browser)
        wrong = self.wrong_with(door, step, response)
        outcome = RIGHT
        if wrong is None:
            outcome = NOBODY_CAN_TELL
        elif wrong:
            outcome = WRONG
            self.report.find(wrong)
        self.report.visits.append(
            {
                "address": door.path,
                "step": step.name,
                "person": self.account["first_name"],
                "status": response.status_code,
                "outcome": outcome,
            }
        )

    def wrong_with(self, door: Door, step: Step, response: Any) -> str | None:
        """What is wrong: an empty text for nothing, None if nobody can tell."""
        if response.status_code >= 500:
            return f"`{door.path}` fails: {findings.trouble_in(response)}"
        if step.name in SIGNED_OUT and response.wsgi_request.user.is_authenticated:
            cause = findings.replaced_user(response) or settings.SESSION_ENGINE
            return f"somebody is signed in, step “{step.name}”: {cause}"

        must_open = self.has_what_opens(door, step)
        if must_open:
            self.report.untried.pop(door.path, None)
        outcome = outcome_of(response)
        if outcome not in (OPEN, CLOSED):
            why = f"it answers {outcome} at the step “{step.name}”"
            self.report.untried[door.path] = why
            return None
        if must_open != (outcome == OPEN):
            if outcome == OPEN and door.has_own_page:
                return None
            cause = findings.replaced_user(response)
            if not cause:
                cause = f"{door.own_code or 'the site'} answers before the gate"
            return f"`{door.path}` is {outcome}: {cause}"
        if step.name == "unproven" and not must_open:
            leads_to = response.headers.get("Location", "")
            answer = unquote(leads_to + response.content.decode())
            if not any(str(asked) in answer for asked in door.requirements):
                return f"`{door.path}` does not say what is missing"
        return findings.cached(door.path, response)

    def has_what_opens(self, door: Door, step: Step) -> bool:
        """The person may never have had it: another country, a scope."""
        if any(isinstance(required, step.lost) for required in door.requirements):
            return False
        user = self.user
        session = self.browser.session
        closed = [closed_to(gate, user, session=session) for gate in door.gates]
        return not any(closed)
