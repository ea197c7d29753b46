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
from django.db.models import F
from django.test import Client
from django.utils import timezone
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
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
    NEVER,
    AuthorizationRequest,
    ConnectRedemption,
    ErasureReceipt,
    LinkedIdentity,
    WebhookEvent,
)
from tests.deliveries import SECRET, event_body, post
from tests.effort import effort
from tests.faces.conftest import sign_in
from tests.hostile import HostileService
from tests.lifecycle.story import SKEW, Heard, Story
from tests.records import make_user

SUBJECTS = ("subject-of-ada", "subject-of-bob")
ADULT = Requirement("age_over_18")
LEVELS = st.sampled_from(["level_1", "level_2"])
WHO = st.sampled_from(SUBJECTS)
PAUSES = st.sampled_from([0, 1, 1, 1, 61, 3600, 90_000])
AGES = st.sampled_from([0.0, 0.0, 0.0, 0.5, 2, 30, 4000, 86_400 * 200, -2, -200, -86_400 * 3650])
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
        if model._meta.proxy:
            continue
        for field in model._meta.concrete_fields:
            if isinstance(field, models.DateTimeField):
                rows = model._default_manager.exclude(**{field.name: NEVER})
                rows.filter(**{f"{field.name}__isnull": False}).update(
                    **{field.name: F(field.name) - by}
                )


class Lives(RuleBasedStateMachine):
    """Two people, one service that plays the spec, and whatever it tells of them."""

    service: ClassVar[HostileService]

    def __init__(self) -> None:
        super().__init__()
        for model in (*apps.get_app_config("django_identity").get_models(), User, Session):
            if not model._meta.proxy:
                model._default_manager.all().delete()
        self.stories = {subject: Story() for subject in SUBJECTS}
        self.browsers: list[tuple[Client, str, int]] = []
        self.sent: list[bytes] = []

    # What people do

    @rule(subject=WHO, level=LEVELS, adult=st.booleans(), pause=PAUSES)
    def signs_in(self, subject: str, level: str, adult: bool, pause: int) -> None:
        """With the button, and back from the service."""
        self.passes(pause)
        with self._speaking_of(subject, level=level, adult=adult):
            browser, is_in = self._button()
        at = AuthorizationRequest.objects.latest("pk").created_at
        assert is_in or not self.stories[subject].is_let_in(at)
        if is_in:
            self._arrived(subject, browser, level=level, adult=adult)
            user = LinkedIdentity.objects.get(subject=subject).user
            assert standing_of(user).has_claim(ADULT) == adult

    @rule(subject=WHO, level=LEVELS, kind=KINDS, age=AGES, pause=PAUSES)
    def signs_in_while_told(
        self, subject: str, level: str, kind: str, age: float, pause: int
    ) -> None:
        """An event of theirs is delivered after the service answered and before they are back."""
        self.passes(pause)
        heard: list[Heard] = []
        with self._speaking_of(subject, level=level, adult=True):
            self.service.meanwhile["claims"] = lambda: heard.append(
                self._deliver(subject, kind, age, level="level_1", claim_type="")
            )
            browser, is_in = self._button()
        story = self.stories[subject]
        if is_in:
            self._arrived(subject, browser, level=level, adult=True)
        for event in heard:
            story.hear(event)

    @rule(subject=WHO, level=LEVELS, pause=PAUSES)
    def renews(self, subject: str, level: str, pause: int) -> None:
        """With the button, signed in as the member with a password: a code's link is confirmed."""
        self.passes(pause)
        identity = LinkedIdentity.objects.filter(subject=subject).first()
        if identity is None:
            return
        browser = Client()
        browser.force_login(identity.user, backend="django.contrib.auth.backends.ModelBackend")
        with self._speaking_of(subject, level=level, adult=True):
            is_renewed = sign_in(browser).status_code == 302
        story = self.stories[subject]
        at = AuthorizationRequest.objects.latest("pk").created_at
        assert is_renewed or story.is_erasure_pending or story.revoked_at >= at
        if is_renewed:
            story.arrive(at, level=level, signs_in=True, proves=True)
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
        self.stories[subject].arrive(began_at, level=level, signs_in=False, proves=False)

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

    @precondition(lambda self: self.sent)
    @rule(number=st.integers(0, 50))
    def is_told_again(self, number: int) -> None:
        """What was told before."""
        assert post(self.sent[number % len(self.sent)]).status_code == 200

    @rule(subject=WHO, adult=st.booleans())
    def is_fetched_again(self, subject: str, adult: bool) -> None:
        """A worker reads the claims anew, if there is something to read them with."""
        ids = list(LinkedIdentity.objects.filter(subject=subject).values_list("pk", flat=True))
        asked_before = self.service.calls("kyc")
        with self._speaking_of(subject, level="level_2", adult=adult):
            outcomes = list(jobs.refetch_these(ids))
        now = timezone.now()
        if self.service.calls("kyc") > asked_before:
            self.stories[subject].learn(now, level="level_2", at=now)
        if outcomes == [Refetched.STORED]:
            self.stories[subject].prove(timezone.now())
            if not adult:
                self.stories[subject].proven_at = None

    @rule()
    def work_is_done(self) -> None:
        """The tasks after events: erasures."""
        pending = [subject for subject, story in self.stories.items() if story.is_erasure_pending]
        for key in WebhookEvent.objects.filter(next_attempt_at__isnull=False).values_list("pk"):
            follow_up.run_handlers(*key)
        assert not ErasureReceipt.objects.filter(erased_at=None).exists()
        for subject in pending:
            self.stories[subject].erase(timezone.now())

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
    def _speaking_of(self, subject: str, *, level: str, adult: bool) -> Iterator[None]:
        name = f"name-{next(_numbers)}-of-{subject[-3:]}"
        profile = {"email": f"{subject[-3:]}@example.org", "first_name": name, "last_name": name}
        kyc = {"kyc_level": level, "status": "verified", "provider": name}
        self.stories[subject].personal |= {name, profile["email"]}
        service = self.service
        service.subject, service.profile, service.kyc = subject, profile, kyc
        service.connect = {"data": {"profile": {**profile, "country": "NG"}, "kyc": kyc}}
        service.disclosed = {"age_over_18": True} if adult else {"kyc_verified": True}
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

    def _arrived(self, subject: str, browser: Client, *, level: str, adult: bool) -> None:
        at = AuthorizationRequest.objects.latest("pk").created_at
        story = self.stories[subject]
        story.get_free()
        story.arrive(at, level=level, signs_in=True, proves=adult)
        self.browsers.append((browser, subject, story.sessions))

    def _deliver(
        self, subject: str, kind: str, age: float, *, level: str, claim_type: str
    ) -> Heard:
        at: datetime = timezone.now() - timedelta(seconds=age)
        named = {"claim_type": claim_type} if kind.startswith("claim") else {}
        about = {"kyc_level": level, "provider": f"note-on-{subject}", **named}
        body = event_body(
            kind, subject=subject, at=at, event_id=f"evt-{next(_numbers)}-{subject}", **about
        )
        assert post(body).status_code == 200
        self.sent.append(body)
        now = timezone.now()
        return Heard(kind, min(at, now + SKEW), now, level=level, claim_type=claim_type)


@pytest.mark.django_db(transaction=True)
def test_every_life_keeps_to_the_model(service: HostileService, settings: Any) -> None:
    """Gates, sessions and traces, after any interleaving of what can happen."""
    settings.DJANGO_IDENTITY = {
        "default": service.settings(WEBHOOK_SECRETS=[SECRET], RATE_LIMIT=None)
    }
    bound: Callable[[], Lives] = type("Bound", (Lives,), {"service": service})
    run_state_machine_as_test(bound, settings=effort(few=5, many=600, steps=15))
