"""Linking: one decision table, and a new identity in two steps."""

import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models.signals import post_save
from django.test import Client
from django.utils import timezone

from django_identity import database, signals
from django_identity.lifecycle.arrivals import Arrival
from django_identity.lifecycle.decisions import DECISIONS, Allow, Refuse, Subject
from django_identity.lifecycle.operators import interventions
from django_identity.models import (
    ConnectRedemption,
    Consent,
    ErasureReceipt,
    LinkedIdentity,
    LinkedVia,
    WebhookEvent,
)
from django_identity.models.querysets import (
    LinkedIdentityManager,
    LinkedIdentityQuerySet,
)
from django_identity.policy import IdentityPolicy
from tests.deliveries import SECRET, deliver
from tests.factories import LONG_AGO, make_identity, make_user
from tests.fake_service import FakeService
from tests.sign_in import begin, come_back, is_signed_in, sign_in
from tests.views.connect.pages import browser_of, hand_in

pytestmark = pytest.mark.django_db(transaction=True)

Work = list[Callable[[], object]]
ROOT = Path(__file__).resolve().parent.parent.parent
#: How the row is linked, of each state that has one.
STATES: dict[Subject, dict[str, Any]] = {
    Subject.NEVER_GRANTED: {"consent": Consent.REVOKED},
    Subject.CONNECT: {"linked_via": LinkedVia.CONNECT},
    Subject.OAUTH: {},
    Subject.REVOKED: {"consent": Consent.REVOKED, "revoked_at": LONG_AGO},
    Subject.CONNECT_ELSEWHERE: {"linked_via": LinkedVia.CONNECT},
    Subject.OAUTH_ELSEWHERE: {},
    Subject.BEING_ERASED: {"consent": Consent.REVOKED, "revoked_at": LONG_AGO},
}
ALL_ASKED = ("may_sign_up", "may_link", "may_sign_in")


class Asked(IdentityPolicy):
    """Remembers what it was asked, with which claims, and says yes."""

    questions: list[tuple[str, dict[str, Any]]] = []

    @classmethod
    def names(cls) -> list[str]:
        return [name for name, _ in cls.questions]

    def may_sign_up(self, *, claims: Any, **_given: Any) -> bool:
        self.questions.append(("may_sign_up", dict(claims)))
        return True

    def may_sign_in(self, user: Any, *, claims: Any) -> bool:
        self.questions.append(("may_sign_in", dict(claims)))
        return True

    def may_link(self, user: Any, profile: Any, *, claims: Any) -> bool:
        self.questions.append(("may_link", dict(claims)))
        return True

    def update_user(self, user: Any, *, claims: Any, **_given: Any) -> None:
        self.questions.append(("update_user", dict(claims)))


@pytest.fixture
def site(service: FakeService, settings: Any) -> FakeService:
    given = service.settings(WEBHOOK_SECRETS=[SECRET], POLICY=f"{__name__}.Asked")
    settings.DJANGO_IDENTITY = given
    Asked.questions.clear()
    return service


#: Each case of the table: how the person came, and how the subject is linked.
CASES = {
    (arrival, subject): decision
    for arrival, row in DECISIONS.items()
    for subject, decision in row.items()
}


def write_rows(
    ada: User, bob: User, subject: Subject, *, account_made: bool = False
) -> None:
    if subject in STATES:
        owner = bob if subject.value.endswith("another account") else ada
        make_identity(owner, account_made=account_made, **STATES[subject])
    if subject is Subject.HOLDS_ANOTHER:
        make_identity(ada, subject="subject-2", consent=Consent.REVOKED)
    if subject is Subject.BEING_ERASED:
        ErasureReceipt.objects.create(
            user=ada,
            requested_at=LONG_AGO,
            next_attempt_at=LONG_AGO,
        )


@pytest.mark.parametrize("case", CASES, ids=" / ".join)
def test_each_row_of_the_table_decides_who_may_link(
    site: FakeService, case: tuple[Arrival, Subject]
) -> None:
    """Each row of the table, through the pages."""
    arrival, subject = case
    ada, bob = make_user("ada"), make_user("bob")
    browser = Client() if arrival is Arrival.SIGN_IN else browser_of(ada)
    if arrival is Arrival.CODE:
        write_rows(ada, bob, subject)
        response = hand_in(browser)
    else:
        if arrival is Arrival.RENEW:
            make_identity(ada, subject="subject-3")
        state = begin(browser)
        LinkedIdentity.objects.all().delete()
        write_rows(ada, bob, subject)
        response = come_back(browser, state)
    asked = [name for name in Asked.names() if name in ALL_ASKED]
    decision = CASES[case]
    if isinstance(decision, Refuse):
        assert f"<code>{decision.code}</code>" in response.content.decode()
        assert asked == []
        return

    identity = LinkedIdentity.objects.get(subject="subject-1")
    assert (identity.consent, identity.linked_via) == (Consent.GRANTED, decision.via)
    assert identity.revoked_at is None
    # Of the first step, and again in the second.
    first = [decision.asks[0]] if subject is Subject.NONE else []
    expected = [*first, *decision.asks]
    first_question = "may_link"
    assert asked == [first_question if each == "the first question again" else each
                     for each in expected]  # fmt: skip


@pytest.mark.parametrize("arrival", Arrival)
def test_a_sign_up_that_a_crash_left_is_asked_as_one(
    site: FakeService, arrival: Arrival
) -> None:
    """Its first question again. A code only verifies the account, and never signs up."""
    ada = make_user("ada")
    make_identity(ada, account_made=True, consent=Consent.REVOKED)
    browser = Client() if arrival is Arrival.SIGN_IN else browser_of(ada)
    response = hand_in(browser) if arrival is Arrival.CODE else sign_in(browser)
    assert response.status_code == 302
    identity = LinkedIdentity.objects.get()
    is_code = arrival is Arrival.CODE
    assert Asked.names()[0] == ("may_link" if is_code else "may_sign_up")
    assert identity.made_its_account is not is_code
    assert (identity.linked_via == LinkedVia.CONNECT) is is_code


def test_every_case_is_in_the_table() -> None:
    """A sign-in is in no account, so nothing is of another one."""
    of_accounts = {
        Subject.HOLDS_ANOTHER,
        Subject.CONNECT_ELSEWHERE,
        Subject.OAUTH_ELSEWHERE,
    }
    cases = {(Arrival.SIGN_IN, each) for each in {*Subject} - of_accounts}
    others = (Arrival.LINK, Arrival.RENEW, Arrival.CODE)
    assert CASES.keys() == cases | {
        (arrival, each) for arrival in others for each in Subject
    }


def test_a_code_never_makes_and_never_restores_a_way_in() -> None:
    """No row of the table lets a code link by sign-in what was not granted by one."""
    for (arrival, subject), decision in CASES.items():
        if arrival is Arrival.CODE and isinstance(decision, Allow):
            assert (decision.via == LinkedVia.OAUTH) is (subject is Subject.OAUTH)


def test_the_documentation_has_the_same_table() -> None:
    text = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (.+?) \| (.+?) \| (.+?) \| (.*?) ?\|$", text, re.MULTILINE)
    told = {row[:2]: row[2:] for row in rows if row[0] in [*Arrival]}
    expected = {}
    for case, decision in CASES.items():
        if isinstance(decision, Refuse):
            expected[tuple(case)] = (f"`{decision.code}`", "")
        else:
            asked = [each if " " in each else f"`{each}`" for each in decision.asks]
            via = "by sign-in" if decision.via == LinkedVia.OAUTH else "by code"
            expected[tuple(case)] = (via, ", ".join(asked))
    assert told == expected


@pytest.mark.parametrize("way", [sign_in, hand_in])
def test_an_account_that_is_being_erased_gets_no_new_link(
    site: FakeService, between: Work, way: Callable[[Client], Any]
) -> None:
    """Whether its erasure was requested before, or between the two steps."""
    ada = make_user("ada")
    request = {"user": ada, "requested_at": LONG_AGO, "next_attempt_at": LONG_AGO}
    between.append(partial(ErasureReceipt.objects.create, **request))
    for _ in range(2):
        ConnectRedemption.objects.all().delete()
        response = way(browser_of(ada))
        assert "erasure_pending" in response.content.decode()
        assert not LinkedIdentity.objects.exists()
    assert ErasureReceipt.objects.count() == 1


class Refuses(IdentityPolicy):
    """No identity signs in, and none is linked."""

    def may_sign_in(self, user: Any, **_proven: Any) -> bool:
        return False

    def may_link(self, user: Any, profile: Any, **_proven: Any) -> bool:
        return False


@pytest.fixture
def refusing(site: FakeService, settings: Any) -> None:
    given = site.settings(POLICY=f"{__name__}.Refuses", WEBHOOK_SECRETS=[SECRET])
    settings.DJANGO_IDENTITY = given


@pytest.fixture
def between() -> Iterator[Work]:
    """What is done once after the first step has committed."""
    work: Work = []

    def written(created: bool, **_kwargs: Any) -> None:
        while created and work:
            transaction.on_commit(work.pop(0))

    post_save.connect(written, sender=LinkedIdentity)
    yield work
    post_save.disconnect(written, sender=LinkedIdentity)


@pytest.mark.parametrize("events", [[], ["claim.issued", "consent.revoked"]])
def test_a_refused_sign_up_leaves_nothing(
    refusing: None, between: Work, events: list[str]
) -> None:
    """The account and the identity of the first step go, even if events changed it meanwhile."""
    between += [partial(deliver, each) for each in events]
    browser = Client()
    page = sign_in(browser).content.decode()
    assert ("consent_withdrawn" if events else "sign_in_not_allowed") in page
    assert WebhookEvent.objects.count() == len(events)
    assert not is_signed_in(browser)
    assert not User.objects.exists()
    assert not LinkedIdentity.objects.exists()


def test_a_new_link_that_another_sign_in_fills_meanwhile_stays(
    site: FakeService, between: Work
) -> None:
    """The person pressed twice: the first step is not taken back."""
    first, second = Client(), Client()
    states, filled = (begin(first), begin(second)), list[int]()

    def fill() -> None:
        come_back(second, states[1])
        filled.append(LinkedIdentity.objects.get().pk)

    between.append(fill)
    come_back(first, states[0])
    assert [LinkedIdentity.objects.get().pk] == filled
    assert is_signed_in(first)
    assert is_signed_in(second)


@pytest.mark.parametrize("way", [sign_in, hand_in])
def test_a_refused_link_is_never_written(
    refusing: None, between: Work, way: Callable[[Client], Any]
) -> None:
    """Not even empty: if the process died then, the row would let a stranger in."""
    written: list[int] = []
    between.append(partial(written.append, 1))
    assert "link_not_allowed" in way(browser_of(make_user("victim"))).content.decode()
    assert written == []


def revoke_here() -> None:
    """As an operator does."""
    interventions.revoke(LinkedIdentity.objects.all())


REVOKED, DELETED = (
    partial(deliver, "consent.revoked"),
    partial(deliver, "data.deletion_requested"),
)


@pytest.mark.parametrize(
    ("withdraw", "is_known"),
    [
        (REVOKED, False),
        (REVOKED, True),
        (DELETED, False),
        (DELETED, True),
        (revoke_here, True),
    ],
    ids=[
        "a stranger revokes",
        "a known person revokes",
        "a stranger asks to be deleted",
        "a known person asks to be deleted",
        "an operator revokes",
    ],
)
def test_a_withdrawal_on_the_way_is_heard(
    site: FakeService, withdraw: Callable[[], Any], *, is_known: bool
) -> None:
    """It came after the button and before the end: the sign-in is refused."""
    if is_known:
        sign_in(Client())
    browser = Client()
    state = begin(browser)
    site.meanwhile["token"] = withdraw
    page = come_back(browser, state).content.decode()
    assert "consent_withdrawn" in page or "erasure_pending" in page
    # An operator may have ended it, so the page does not say who did.
    assert "You took back" not in page
    assert not is_signed_in(browser)
    assert not LinkedIdentity.objects.filter(consent=Consent.GRANTED).exists()
    assert User.objects.exists() is is_known


@pytest.mark.parametrize("event_type", ["claim.revoked", "kyc.rejected"])
def test_an_event_that_looked_before_the_first_step_is_not_lost(
    site: FakeService, monkeypatch: pytest.MonkeyPatch, event_type: str
) -> None:
    """It found no identity, and the sign-in was done before it had locked its own row."""
    # One connection plays both, so the sign-in is inside the event's transaction.
    monkeypatch.setattr(database, "require_no_transaction", lambda _message: None)
    browser, locked = Client(), LinkedIdentityQuerySet.locked
    state = begin(browser)

    def slow(rows: Any, subject_digest: str) -> LinkedIdentity | None:
        found = locked(rows, subject_digest)
        monkeypatch.setattr(LinkedIdentityQuerySet, "locked", locked)
        monkeypatch.setattr(LinkedIdentityManager, "locked", fast)
        come_back(browser, state)
        return found

    fast = LinkedIdentityManager.locked
    monkeypatch.setattr(
        LinkedIdentityManager, "locked", lambda self, key: slow(self.all(), key)
    )
    deliver(event_type)
    identity = LinkedIdentity.objects.get()
    assert is_signed_in(browser)
    assert identity.kyc_status != "verified"
    assert WebhookEvent.objects.get().outcome == "applied"


@pytest.fixture
def told() -> Iterator[list[str]]:
    """The status of each ``kyc_changed``."""
    statuses: list[str] = []

    def changed(identity: LinkedIdentity, **_kwargs: Any) -> None:
        statuses.append(identity.kyc_status)

    signals.kyc_changed.connect(changed)
    yield statuses
    signals.kyc_changed.disconnect(changed)


@pytest.mark.parametrize(
    ("event_type", "is_known", "expected"),
    [
        ("kyc.rejected", False, ["rejected"]),
        ("kyc.rejected", True, ["rejected"]),
        ("claim.revoked", False, []),
        ("claim.revoked", True, [""]),
    ],
)
def test_a_level_that_an_event_changes_on_the_way_is_told_once(
    site: FakeService,
    told: list[str],
    event_type: str,
    expected: list[str],
    *,
    is_known: bool,
) -> None:
    """By the event if the person is known, and else by the sign-in, if it changed at all."""
    if is_known:
        sign_in(Client())
        told.clear()
    browser = Client()
    state = begin(browser)
    site.meanwhile["claims"] = partial(deliver, event_type)
    come_back(browser, state)
    assert is_signed_in(browser)
    assert told == expected


def test_a_revocation_that_was_known_before_the_button_keeps_nobody_out(
    site: FakeService,
) -> None:
    """Even if its time-stamp is ahead of the site's clock."""
    sign_in(Client())
    deliver("consent.revoked", at=timezone.now() + timezone.timedelta(minutes=3))
    browser = Client()
    sign_in(browser)
    assert is_signed_in(browser)


def test_an_emptied_link_is_filled_by_the_next_sign_in(site: FakeService) -> None:
    """As a process leaves it that dies between the two steps. Then the site hears of the link."""
    told: list[bool] = []

    def receive(*, created: bool, **_arguments: Any) -> None:
        told.append(created)

    signals.identity_linked.connect(receive)
    user = make_user()
    identity = make_identity(user, consent=Consent.REVOKED, kyc_status="", kyc_level="")
    browser = Client()
    sign_in(browser)
    sign_in(Client())
    identity.refresh_from_db()
    assert (identity.consent, identity.kyc_status) == (Consent.GRANTED, "verified")
    assert is_signed_in(browser)
    assert told == [True]
