"""Lives in any order: sign-ins, codes, re-fetches, events and time, held to a model of them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any, ClassVar

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.core.cache import cache
from django.db import connection, models
from django.db.models import Case, F, When
from django.test import Client
from django.utils import timezone
from hypothesis import Phase
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    rule,
    run_state_machine_as_test,
)

from django_identity import conf
from django_identity.exceptions import IdentityError
from django_identity.handlers import EventType
from django_identity.lifecycle.arrival import connect
from django_identity.lifecycle.standing import Requirement, standing_of
from django_identity.lifecycle.upkeep import follow_up, jobs
from django_identity.lifecycle.upkeep.claims import Refetched
from django_identity.models import (
    AuthorizationRequest,
    ConnectRedemption,
    ErasureReceipt,
    LinkedIdentity,
    WebhookEvent,
    digest,
)
from tests.deliveries import SECRET, event_body, post
from tests.effort import effort
from tests.faces.conftest import sign_in
from tests.hostile import HostileService
from tests.lifecycle.story import ALL_SCOPES, CODE_SCOPES, NEVER, SKEW, Heard, Story
from tests.records import make_user

SUBJECTS = ("subject-of-ada", "subject-of-bob")
ADULT = Requirement("age_over_18")
LEVELS = st.sampled_from(["level_1", "level_2"])
WHO = st.sampled_from(SUBJECTS)
PAUSES = st.sampled_from([0, 1, 1, 1, 61, 3600, 90_000])
# Also of a service whose clock is 90 seconds off, and the limits of what clocks may differ.
AGES = st.sampled_from(
    [0.0, 0.0, 0.0, 0.5, 2, 30, 90, 290, 310, 4000, 86_400 * 200, -2, -90, -200, -86_400 * 3650]
)
# Seconds: a credential may come from a cache, or from a clock that is behind.
CLOCKS = st.sampled_from([0, 0, 0, -90])
SCOPES = st.sampled_from(
    [ALL_SCOPES, ALL_SCOPES, ALL_SCOPES - {"kyc:read"}, ALL_SCOPES - {"claims:read"},
     frozenset({"profile:read"})]
)  # fmt: skip
KINDS = st.sampled_from([*EventType])
CLAIMS = st.sampled_from(["", "age_over_18", "kyc_verified"])
_numbers = itertools.count(1)


def whole_database() -> str:
    """Every value of every table, as text."""
    with connection.cursor() as cursor:
        found = []
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f"SELECT * FROM {connection.ops.quote_name(table)}")
            found += [f"{table}: {row!r}" for row in cursor.fetchall()]
    return "\n".join(found)


def move_rows(by: timedelta) -> None:
    """What passes for time: every moment of ours that is stored moves into the past."""
    for model in apps.get_app_config("django_identity").get_models():
        moments = [
            field.name
            for field in model._meta.concrete_fields
            if isinstance(field, models.DateTimeField)
        ]
        if moments and not model._meta.proxy:
            moved = {name: Case(When(**{name: NEVER}, then=NEVER), default=F(name) - by)
                     for name in moments}  # fmt: skip
            model._default_manager.update(**moved)


class Lives(RuleBasedStateMachine):
    """Two people, one service that plays the spec, and whatever it tells of them."""

    service: ClassVar[HostileService]

    def __init__(self) -> None:
        super().__init__()
        for model in (*apps.get_app_config("django_identity").get_models(), User, Session):
            if not model._meta.proxy:
                model._default_manager.all().delete()
        # Else the limits of starts would count those of the lives before.
        cache.clear()
        self.service.requests.clear()
        self.stories = {subject: Story() for subject in SUBJECTS}
        self.browsers: list[tuple[Client, str, int]] = []
        self.sent: list[bytes] = []
        self.issued_at = NEVER

    # What people do

    @rule(subject=WHO, level=LEVELS, adult=st.booleans(), scopes=SCOPES, clock=CLOCKS, pause=PAUSES)
    def signs_in(
        self,
        subject: str,
        level: str,
        adult: bool,
        scopes: frozenset[str],
        clock: int,
        pause: int,
    ) -> None:
        """With the button, and back from the service, which they may allow less than before."""
        self.passes(pause)
        with self._speaking_of(subject, level=level, adult=adult, scopes=scopes, clock=clock):
            browser, is_in = self._button()
        at = AuthorizationRequest.objects.latest("pk").created_at
        assert is_in or not self.stories[subject].is_let_in(at)
        if is_in:
            is_new = self._arrived(subject, browser, level=level, adult=adult, scopes=scopes)
            user = LinkedIdentity.objects.get(subject=subject).user
            assert not is_new or standing_of(user).has_claim(ADULT) == adult

    @rule(subject=WHO, level=LEVELS, kind=KINDS, age=AGES, scopes=SCOPES, pause=PAUSES)
    def signs_in_while_told(
        self,
        subject: str,
        level: str,
        kind: str,
        age: float,
        scopes: frozenset[str],
        pause: int,
    ) -> None:
        """An event of theirs is delivered after the service answered and before they are back."""
        self.passes(pause)
        heard: list[Heard] = []
        with self._speaking_of(subject, level=level, adult=True, scopes=scopes):
            self.service.meanwhile["profile"] = lambda: heard.append(
                self._deliver(subject, kind, age, level="level_1", claim_type="")
            )
            browser, is_in = self._button()
        if is_in:
            self._arrived(subject, browser, level=level, adult=True, scopes=scopes)
        for event in heard:
            self.stories[subject].hear(event)

    @rule(subject=WHO, level=LEVELS, scopes=SCOPES, pause=PAUSES)
    def renews(self, subject: str, level: str, scopes: frozenset[str], pause: int) -> None:
        """With the button, signed in as the member with a password: a code's link is confirmed."""
        self.passes(pause)
        identity = LinkedIdentity.objects.filter(subject=subject).first()
        if identity is None:
            return
        browser = Client()
        browser.force_login(identity.user, backend="django.contrib.auth.backends.ModelBackend")
        with self._speaking_of(subject, level=level, adult=True, scopes=scopes):
            is_renewed = sign_in(browser).status_code == 302
        story = self.stories[subject]
        at = AuthorizationRequest.objects.latest("pk").created_at
        assert is_renewed or story.is_erasure_pending or story.revoked_at >= at
        if is_renewed:
            story.arrive(at, level=level, scopes=scopes, signs_in=True)
            self._prove(subject, adult=True, scopes=scopes)
            story.is_by_code = False

    @rule(subject=WHO, level=LEVELS, pause=PAUSES)
    def hands_in_a_code(self, subject: str, level: str, pause: int) -> None:
        """As the member they are, or as one with a password."""
        self.passes(pause)
        cache.clear()
        identity = LinkedIdentity.objects.filter(subject=subject).first()
        user = identity.user if identity else make_user(f"member-{next(_numbers)}")
        code = f"CNX-AB12-{next(_numbers) % 10_000:04}"
        with self._speaking_of(subject, level=level, adult=True):
            try:
                connect.redeem(conf.application(), code, user=user, address="192.0.2.1")
            except IdentityError:
                return
        began_at = ConnectRedemption.objects.latest("pk").created_at
        story = self.stories[subject]
        story.arrive(began_at, level=level, scopes=CODE_SCOPES, signs_in=False)

    @rule(seconds=PAUSES)
    def passes(self, seconds: int) -> None:
        """Time."""
        by = timedelta(seconds=seconds)
        if by:
            move_rows(by)
            for story in self.stories.values():
                story.pass_time(by)

    # What the service and the workers do

    @rule(subject=WHO, kind=KINDS, age=AGES, level=LEVELS, claim_type=CLAIMS)
    def is_told(self, subject: str, kind: str, age: float, level: str, claim_type: str) -> None:
        """One event, of now, of long ago or of the future."""
        event = self._deliver(subject, kind, age, level=level, claim_type=claim_type)
        self.stories[subject].hear(event)

    @rule(number=st.integers(0, 50))
    def is_told_again(self, number: int) -> None:
        """What was told before.

        Not a precondition: whether a sign-in gets as far as an event that comes meanwhile depends
        on the second in which it begins, and Hypothesis must draw the same whatever happened.
        """
        if self.sent:
            assert post(self.sent[number % len(self.sent)]).status_code == 200

    @rule(subject=WHO, adult=st.booleans(), clock=CLOCKS)
    def is_fetched_again(self, subject: str, adult: bool, clock: int) -> None:
        """A worker reads claims and level anew, if there is something to read them with."""
        ids = list(LinkedIdentity.objects.filter(subject=subject).values_list("pk", flat=True))
        kyc, claims = self.service.calls("kyc"), self.service.calls("claims")
        with self._speaking_of(subject, level="level_2", adult=adult, clock=clock):
            outcomes = list(jobs.refetch_these(ids))
        story = self.stories[subject]
        if self.service.calls("kyc") > kyc:
            assert "kyc:read" in story.scopes, "the level was asked for without its scope"
            asked_at = LinkedIdentity.objects.get(subject=subject).kyc_checked_at
            story.learn(asked_at, level="level_2", at=asked_at)
        if self.service.calls("claims") > claims:
            assert "claims:read" in story.scopes, "claims were asked for without their scope"
            if outcomes == [Refetched.STORED]:
                assert self._prove(subject, adult=adult, scopes=ALL_SCOPES)

    @rule()
    def work_is_done(self) -> None:
        """The tasks after events: erasures."""
        pending = [subject for subject, story in self.stories.items() if story.is_erasure_pending]
        began_at = timezone.now()
        for key in WebhookEvent.objects.filter(next_attempt_at__isnull=False).values_list("pk"):
            follow_up.run_handlers(*key)
        assert not ErasureReceipt.objects.filter(erased_at=None).exists()
        for subject in pending:
            self.stories[subject].erase(began_at)

    # What must hold

    @invariant()
    def gates_are_open_only_if(self) -> None:
        """Consent, level and claim: nothing more than the model says."""
        now = timezone.now()
        identities = {one.subject: one for one in LinkedIdentity.objects.select_related("user")}
        for subject, story in self.stories.items():
            identity = identities.get(subject)
            standing = standing_of(identity.user) if identity else None
            assert (identity is not None) == story.is_linked
            if standing is not None:
                assert not standing.is_linked or story.has_consent
                assert not standing.has_kyc_level("level_2") or story.has_level_2(now)
                assert not standing.has_claim(ADULT) or story.has_claim(now)

    @invariant()
    def ended_sessions_stay_so(self) -> None:
        """No browser is signed in that a withdrawal has signed out, though consent came anew."""
        for browser, subject, generation in self.browsers:
            story = self.stories[subject]
            may_be_in = story.has_consent and story.sessions == generation
            assert may_be_in or browser.get("/").content == b""

    @invariant()
    def nothing_is_left_of_the_erased(self) -> None:
        """The whole database names nobody who was erased and of whom nothing was heard since."""
        gone = {
            subject: story
            for subject, story in self.stories.items()
            if story.erased_at is not None and not story.is_named
        }
        held = whole_database() if gone else ""
        for subject, story in gone.items():
            assert [value for value in (subject, *story.personal) if value in held] == []

    # How it is done

    @contextmanager
    def _speaking_of(
        self,
        subject: str,
        *,
        level: str,
        adult: bool,
        scopes: frozenset[str] = ALL_SCOPES,
        clock: int = 0,
    ) -> Iterator[None]:
        name = f"name-{next(_numbers)}-of-{subject[-3:]}"
        profile = {"email": f"{subject[-3:]}@example.org", "first_name": name, "last_name": name}
        kyc = {"kyc_level": level, "status": "verified", "provider": name}
        self.stories[subject].personal |= {name, profile["email"]}
        service = self.service
        service.subject, service.profile, service.kyc = subject, profile, kyc
        service.connect = {"data": {"profile": {**profile, "country": "NG"}, "kyc": kyc}}
        service.disclosed = {"age_over_18": True} if adult else {"kyc_verified": True}
        service.token = {"scope": " ".join(sorted(scopes))}
        self.issued_at = timezone.now().replace(microsecond=0) + timedelta(seconds=clock)
        service.payload = {"iat": int(self.issued_at.timestamp())}
        service.refresh_tokens.clear()
        try:
            yield
        finally:
            service.meanwhile.clear()

    def _button(self) -> tuple[Client, bool]:
        """Sign in with a browser of its own. Says whether the person is signed in."""
        browser = Client()
        sign_in(browser)
        return browser, browser.get("/").content != b""

    def _arrived(
        self, subject: str, browser: Client, *, level: str, adult: bool, scopes: frozenset[str]
    ) -> bool:
        """Signed in. Whether a credential came that counts."""
        at = AuthorizationRequest.objects.latest("pk").created_at
        story = self.stories[subject]
        story.get_free()
        story.arrive(at, level=level, scopes=scopes, signs_in=True)
        self.browsers.append((browser, subject, story.sessions))
        return self._prove(subject, adult=adult, scopes=scopes)

    def _prove(self, subject: str, *, adult: bool, scopes: frozenset[str]) -> bool:
        if "claims:read" not in scopes:
            return False
        story = self.stories[subject]
        return story.prove(timezone.now(), issued_at=self.issued_at, adult=adult)

    def _deliver(
        self, subject: str, kind: str, age: float, *, level: str, claim_type: str
    ) -> Heard:
        at: datetime = timezone.now() - timedelta(seconds=age)
        event_id = f"evt-{next(_numbers)}-{subject}"
        named = {"claim_type": claim_type} if kind.startswith("claim") else {}
        about = {"kyc_level": level, "provider": f"note-on-{subject}", **named}
        body = event_body(kind, subject=subject, at=at, event_id=event_id, **about)
        assert post(body).status_code == 200
        self.sent.append(body)
        # Exactly when: a sign-in counts from a whole second, which may fall in between.
        row = WebhookEvent.objects.get(event_digest=digest("default", event_id))
        believed = min(at, row.received_at + SKEW)
        return Heard(kind, believed, row.received_at, level=level, claim_type=claim_type)


@pytest.mark.django_db(transaction=True)
def test_every_life_keeps_to_the_model(service: HostileService, settings: Any) -> None:
    """Gates, sessions and traces, after any interleaving of what can happen."""
    settings.DJANGO_IDENTITY = {
        "default": service.settings(WEBHOOK_SECRETS=[SECRET], RATE_LIMIT=None)
    }
    bound: Callable[[], Lives] = type("Bound", (Lives,), {"service": service})
    # Shrinking a failure that depends on the clock takes minutes and finds nothing.
    phases = [phase for phase in Phase if phase is not Phase.shrink]
    run_state_machine_as_test(
        bound, settings=hypothesis_settings(effort(few=5, many=200, steps=15), phases=phases)
    )
