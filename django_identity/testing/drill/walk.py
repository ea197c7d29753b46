"""The steps of a person: what happens before each, and the requirements lost by then."""

from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from typing import Any, NamedTuple

from django.conf import settings
from django.contrib.auth import SESSION_KEY, load_backend
from django.utils import timezone

from django_identity import database
from django_identity.backends import BACKEND_PATH
from django_identity.event_types import EventType
from django_identity.gates import closed_to
from django_identity.lifecycle.minute import upkeep
from django_identity.models import ErasureReceipt, StoredClaim
from django_identity.requirements import RequiredClaim, RequiredLevel
from django_identity.testing import browser as pages
from django_identity.testing.drill import findings, remains
from django_identity.testing.drill.doors import (
    CLOSED,
    OPEN,
    Door,
    new_browser,
    outcome_of,
)
from django_identity.testing.drill.person import (
    NOWHERE,
    REJECTED,
    NotTried,
    Person,
    PolicyRefuses,
    StepFailed,
)
from django_identity.testing.drill.report import CANNOT_TELL, RIGHT, WRONG
from django_identity.testing.erased import known_of
from django_identity.testing.events import deliver_event
from django_identity.testing.sandbox import SandboxError
from django_identity.web.pages import address_of

#: Of bytes. A shorter page is the same at two addresses by chance, such as an empty list in JSON.
LONG = 100
#: What a page has -> what a browser that keeps it asks with.
VALIDATORS = {"ETag": "If-None-Match", "Last-Modified": "If-Modified-Since"}
LONG_AGO = timedelta(days=4000)
#: Steps at which nobody is signed in.
SIGNED_OUT = ("nobody", "ended", "erased")
# The kinds of requirements that are not met at a step.
PROOFS = (RequiredClaim, RequiredLevel)
NOTHING = ()
EVERYTHING = object


class Step(NamedTuple):
    """A visit to all doors. ``lost``: the kinds of requirements that are not met now."""

    name: str
    lost: Any


class Visitor(Person):
    """Goes through the steps, and tries all doors at each of them."""

    # The steps

    def walk(self) -> Iterator[Step]:
        """From the first page to the erasure."""
        yield Step("nobody", EVERYTHING)
        try:
            self.sign_in()
        except PolicyRefuses as refusal:
            self.report.unseen["step unproven"] = str(refusal)
        else:
            yield Step("unproven", PROOFS)
        self.prove()
        yield Step("proven", NOTHING)
        self.look_at_open_pages()

        claims = {each.claim_type for door in self.scene.doors for each in door.claims}
        for claim_type in claims:
            # The service may not know it.
            with suppress(SandboxError):
                self.scene.sandbox.revoke_claim(self.person, claim_type)
            deliver_event(EventType.CLAIM_REVOKED, self.person, claim_type=claim_type)
        yield Step("revoked", RequiredClaim)
        self.try_number(REJECTED)
        deliver_event(
            EventType.KYC_REJECTED,
            self.person,
            status="rejected",
            kyc_level="level_1",
        )
        yield Step("revoked", PROOFS)

        # The site's handlers run now, before an erasure takes their events away.
        upkeep.run()
        # A claim counts again by a credential of a later second.
        self.scene.sandbox.control("POST", "clock", advance=2)
        self.prove()
        yield Step("proven", NOTHING)
        yield from self.revoke_consent()
        yield from self.run_out()
        yield from self.erase()

    def revoke_consent(self) -> Iterator[Step]:
        """The session ends with it, and stays ended when the person signs in elsewhere."""
        deliver_event(EventType.CONSENT_REVOKED, self.person)
        yield Step("ended", EVERYTHING)

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
        deliver_event(EventType.DATA_DELETION_REQUESTED, self.person)
        upkeep.run()
        yield Step("erased", EVERYTHING)

        receipt = ErasureReceipt.objects.latest("pk")
        if receipt.erased_at is None:
            self.report.find(f"an erasure waits: {receipt.error}")
        elif receipt.account_kept:
            self.report.untried["erased"] = f"the account stays: {receipt.account_kept}"
        else:
            names = (self.account["first_name"], self.account["last_name"])
            remains.search(known_of(user, self.person, *names), self.report)
        if database.all_users().exclude(pk__in=keys).exists():
            self.report.find("an account is made again after an erasure")

    def part(self) -> Iterator[Step]:
        """Disconnect in a browser that has signed in another way, and come back."""
        backends = [
            path
            for path in settings.AUTHENTICATION_BACKENDS
            # As Django's ``force_login`` chooses: others, as of axes, load no user.
            if path != BACKEND_PATH and hasattr(load_backend(path), "get_user")
        ]
        if not backends:
            raise NotTried("nobody disconnects: the site has no other back end")
        self.prove()
        user = self.user
        user.set_password(self.person.password)
        user.save()
        # A new password has ended the session.
        self.prove()
        yield Step("proven", NOTHING)
        other = new_browser()
        other.force_login(user, backend=backends[0])
        other.post(pages.path_here(address_of("disconnect")), secure=True)
        if self.identities.exists():
            raise NotTried("nobody disconnects: the policy keeps the link")
        yield Step("disconnected", EVERYTHING)
        self.browser = other
        yield Step("local", EVERYTHING)
        self.browser = new_browser()
        with suppress(StepFailed):
            self.sign_in()
        if self.browser.session.get(SESSION_KEY) == str(user.pk):
            self.report.find(
                "an identity that was disconnected signs in to the account again",
            )

    # At the doors

    def take(self, steps: Iterator[Step]) -> None:
        """Raises ``StepFailed``, ``NotTried``, and ``AssertionError`` for an event."""
        for step in steps:
            for door in self.scene.doors:
                self.visit(door, step)
            self.open_our_pages()

    def visit(self, door: Door, step: Step) -> None:
        must_open = self.has_what_opens(door, step)
        # As the browser asks that has kept the page.
        headers = {} if must_open else self.kept.get(door.path, {})
        response = door.open(self.browser, **headers)
        untried = self.report.untried
        outcome, why = self.judge(door, step, response, must_open=must_open)
        if outcome == WRONG:
            self.report.find(why)
        if must_open and outcome != CANNOT_TELL:
            untried.pop(door.path, None)
        elif must_open and door.path in untried:
            untried[door.path] = why
        self.report.visits.append(
            {
                "address": door.path,
                "step": step.name,
                "person": self.account["first_name"],
                "status": response.status_code,
                "outcome": outcome,
                "why": why,
            },
        )
        if must_open and response.status_code == 200:
            self.remember(door, response)

    def remember(self, door: Door, response: Any) -> None:
        """What is behind the gate, and what a browser keeps of it."""
        if response.streaming:
            self.report.unseen[door.path] = "what a stream sends after the gate"
        content = getattr(response, "content", b"")
        if len(content) > LONG:
            self.shown[content] = door.path
        for said, asks in VALIDATORS.items():
            if said in response.headers:
                self.kept[door.path] = {asks: response.headers[said]}

    def judge(
        self,
        door: Door,
        step: Step,
        response: Any,
        *,
        must_open: bool,
    ) -> tuple[str, str]:
        """What is said of a visit, and why. Nothing if it is right."""
        path = door.path
        if response.status_code == 304:
            return WRONG, f"`{path}` answers 304 before the gate"
        if response.status_code >= 500:
            return WRONG, f"`{path}` fails: {findings.trouble_in(response)}"
        if step.name in SIGNED_OUT and response.wsgi_request.user.is_authenticated:
            cause = findings.why_signed_in(response)
            return WRONG, f"somebody is signed in, step “{step.name}”: {cause}"

        outcome = outcome_of(response, path)
        if outcome not in (OPEN, CLOSED):
            return CANNOT_TELL, f"it answers {outcome}"
        if must_open == (outcome == OPEN):
            cached = must_open and findings.cached(path, response)
            return (WRONG, cached) if cached else (RIGHT, "")
        if outcome == OPEN and door.has_own_page:
            return CANNOT_TELL, "closed, it shows a page of the site's own"
        cause = ""
        if door.before.own_code:
            cause = f": {door.before.own_code} answers before the gate"
        elif step.lost == NOTHING and not must_open:
            cause = f" to somebody from {self.account['country']}"
        return WRONG, f"`{path}` is {outcome}{cause}"

    def has_what_opens(self, door: Door, step: Step) -> bool:
        """The person may never have had it: another country, a scope."""
        if any(isinstance(required, step.lost) for required in door.requirements):
            return False
        # Whatever the site's policy makes of the claim.
        if self.account["country"] == NOWHERE and door.countries:
            return False
        user = self.user
        session = self.browser.session
        closed = [closed_to(gate, user, session=session) for gate in door.before.gates]
        return not any(closed)
