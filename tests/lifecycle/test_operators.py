"""Links of the other environment, such as in a copy of the live database, and a timeline."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from django_identity.lifecycle.arriving import connect, sign_in
from django_identity.lifecycle.leaving import disconnecting, erasure
from django_identity.lifecycle.leaving.dossier import dossier_of
from django_identity.lifecycle.operators import interventions, timeline
from django_identity.lifecycle.operators.timeline import HappeningKind, timeline_of
from django_identity.lifecycle.said.effects import outcome_of
from django_identity.lifecycle.standing.standing import standing_of
from django_identity.models import (
    Consent,
    LinkedIdentity,
    Purpose,
    StoredClaim,
    TokenGrant,
)
from tests.deliveries import deliver
from tests.factories import (
    LONG_AGO,
    again,
    make_claim,
    make_event,
    make_grant,
    make_identity,
    make_user,
)
from tests.lifecycle.commands import said_by
from tests.sign_in import sign_in as signs_in
from tests.views.connect.pages import browser_of, hand_in

pytestmark = pytest.mark.django_db(transaction=True)

COME = {"sign-in": signs_in, "code": hand_in}


def copied(username="ada"):
    """An account whose link is live, with all that a link has. The site is of test."""
    user = make_user(username)
    identity = make_identity(user, subject=f"live-{username}", environment="live")
    make_claim(identity)
    make_grant(identity)
    return user


def test_it_counts_as_not_there():
    user = copied()
    assert not standing_of(user).is_linked
    assert connect.identity_of(user) is None
    assert disconnecting.parting(user) is None
    assert not disconnecting.disconnect_user(user)
    assert not erasure.may_erase_themselves(user)
    assert sign_in.plan_for(user).purpose == Purpose.LINK
    assert deliver("consent.revoked", subject="live-ada").status_code == 200
    assert LinkedIdentity.objects.get().consent == "granted"
    dossier = dossier_of(user)
    assert dossier.identity is None
    assert dossier.grant is None
    assert dossier.sections == ()
    page = browser_of(user).get(reverse("identity:account")).content.decode()
    assert "live-ada" not in page


def renamed():
    """One that no event finds: SQL has given its link another subject."""
    user = make_user()
    make_identity(user, subject="former", account_made=False)
    LinkedIdentity.objects.update(subject="renamed")
    return user


@pytest.mark.parametrize("former", [copied, renamed])
@pytest.mark.parametrize("way", COME)
def test_linking_deletes_it(service, heard, way, former):
    """It opened nothing. It made the account, and the new link did not."""
    user = former()

    COME[way](browser_of(user))

    identity = LinkedIdentity.objects.get()
    assert identity.user == user
    assert identity.environment == "test"
    assert identity.subject == "subject-1"
    assert identity.made_account == ""
    assert standing_of(again(user)).is_linked
    assert not StoredClaim.objects.exclude(identity=identity).exists()
    told = {name for name, _about in heard}
    assert not told & {"identity_unlinked", "sessions_ended"}


@pytest.mark.parametrize("is_inside", [False, True])
@pytest.mark.parametrize("arrival", COME)
def test_a_row_whose_environment_sql_has_changed_is_linked_by_nobody(
    service,
    arrival,
    *,
    is_inside,
):
    """Its digest is still the subject's."""
    user = make_user()
    make_identity(user, account_made=False)
    LinkedIdentity.objects.update(environment="live")
    browser = browser_of(user) if is_inside else Client()
    COME[arrival](browser)
    assert not standing_of(again(user)).is_linked


def test_the_doctor_counts_them_and_the_command_deletes_them(monkeypatch):
    """In steps. And no account, and no link of this site's environment."""
    monkeypatch.setattr(interventions, "LINKS_AT_ONCE", 2)
    for name in ("ada", "bob", "eve"):
        copied(name)
    own = make_identity(make_user("own"))
    said = said_by("identity_doctor", may_fail=True)
    assert "identities of the other environment, which no event reaches: 3" in said
    assert "identity_erase --links-of" in said
    erase = ("identity_erase", "--links-of", "live")
    monkeypatch.setattr("builtins.input", lambda prompt: "live")

    assert "Deleted 3 link(s) of live." in said_by(*erase)
    assert LinkedIdentity.objects.get() == own
    assert User.objects.filter(is_active=True).count() == 4
    assert not TokenGrant.objects.exists()
    assert "of the other environment" not in said_by("identity_doctor", may_fail=True)
    assert "Deleted 0 link(s) of live." in said_by(*erase, "--yes")


@pytest.mark.parametrize(
    "arguments",
    [
        ("--links-of", "test", "--yes"),
        ("--links-of", "staging", "--yes"),
        ("subject-1", "--links-of", "live", "--yes"),
        ("--yes",),
        ("--links-of", "live"),
    ],
)
def test_nothing_is_deleted_by_mistake(monkeypatch, arguments):
    """This site's own links, an environment that is none, two things at once, or nothing.

    By hand it takes the environment twice.
    """
    monkeypatch.setattr("builtins.input", lambda prompt: "test")
    make_identity(make_user("own"))
    copied()
    with pytest.raises(CommandError):
        said_by("identity_erase", *arguments)
    assert LinkedIdentity.objects.count() == 2


# What happened to an identity, newest first and bounded


def test_everything_stands_in_one_line_of_time():
    """Linked, re-fetched, told by events, by codes, signed in, revoked: newest first."""
    now = timezone.now()
    identity = make_identity(
        make_user(),
        consent=Consent.REVOKED,
        revoked_at=now,
        connect_issued_at=now - timedelta(hours=1),
        signed_in_at=now - timedelta(hours=2),
        credential_issued_at=now - timedelta(hours=6),
    )
    LinkedIdentity.objects.filter(pk=identity.pk).update(
        created_at=now - timedelta(days=9),
    )
    identity.refresh_from_db()
    event = make_event(identity, "claim.issued", occurred_at=now - timedelta(hours=5))
    claim = make_claim(identity, issued_at=now - timedelta(days=2))
    seen = timeline_of(identity)
    assert [happening.kind for happening in seen] == [
        HappeningKind.CONSENT_REVOKED,
        HappeningKind.CODE_REDEEMED,
        HappeningKind.SIGNED_IN,
        HappeningKind.EVENT,
        HappeningKind.REFETCHED,
        HappeningKind.CLAIM,
        HappeningKind.LINKED,
    ]
    assert seen[3].event == event
    assert seen[5].claim == claim
    claim.revoked_at = now
    claim.save()
    assert HappeningKind.CLAIM in {each.kind for each in timeline_of(identity)[:2]}
    # The code that linked is the linking.
    identity.connect_issued_at = identity.created_at - timedelta(seconds=5)
    kinds = {each.kind for each in timeline_of(identity)}

    assert HappeningKind.CODE_REDEEMED not in kinds


def test_a_timeline_has_the_newest_events_of_one_person(
    django_assert_num_queries,
    monkeypatch,
):
    """All that is stored and the newest hundred events, in two queries; nothing of others."""
    identity, other = (
        make_identity(make_user()),
        make_identity(make_user("b"), subject="another"),
    )
    make_event(other, "kyc.rejected")
    make_claim(identity, issued_at=LONG_AGO)
    assert timeline.MOST == 100
    monkeypatch.setattr(timeline, "MOST", 5)
    for _ in range(7):
        make_event(identity, "claim.issued")
    with django_assert_num_queries(2):
        seen = timeline_of(identity)
    events = [each.event.event_type for each in seen if each.event is not None]

    assert events == ["claim.issued"] * 5
    assert [each.kind for each in seen if each.event is None] == [
        HappeningKind.LINKED,
        HappeningKind.CLAIM,
    ]


@pytest.mark.parametrize(
    ("event_type", "scopes", "said"),
    [
        ("something.new", ["kyc:read"], "ignored: its type is not known"),
        (
            "kyc.verified",
            ["claims:read"],
            "ignored: the consent does not cover the level",
        ),
        ("claim.issued", ["claims:read"], "applied"),
    ],
)
def test_an_ignored_event_says_why(event_type, scopes, said):
    """In the timeline, and on its own page."""
    identity = make_identity(make_user(), scopes=scopes)
    row = make_event(identity, event_type, outcome="")
    row.outcome = outcome_of(identity, row)
    row.save()
    [event] = [each.event for each in timeline_of(identity) if each.event is not None]
    assert event.outcome_in_words == said
