"""Events: stored once, applied once, alike in every order."""

from datetime import timedelta

import pytest
from django.utils import timezone

from django_identity.lifecycle.minute import upkeep
from django_identity.lifecycle.standing.standing import standing_of
from django_identity.models import (
    Consent,
    ErasureReceipt,
    LinkedIdentity,
    LinkedVia,
    StoredClaim,
    TokenGrant,
    WebhookEvent,
)
from django_identity.requirements import RequiredClaim
from django_identity.service.webhooks import parse_event
from tests.deliveries import deliver, event_body, post
from tests.factories import (
    make_claim,
    make_grant,
    make_identity,
    make_identity_by_code,
    make_user,
)
from tests.lifecycle.broken_statements import refused

pytestmark = pytest.mark.django_db(transaction=True)

NOW = timezone.now()
HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
SCOPES = ["profile:read", "kyc:read", "claims:read"]


def linked(**fields):
    """A person who signed in an hour ago, with tokens and a proven claim."""
    since = NOW - HOUR
    held = {"signed_in_at": since, "kyc_said_at": since, "scopes": SCOPES, **fields}
    identity = make_identity(make_user(), **held)
    make_claim(identity)
    make_grant(identity)
    return identity


def outcomes():
    return list(WebhookEvent.objects.order_by("pk").values_list("outcome", flat=True))


def test_an_event_is_stored_and_applied(handled):
    """A verification opens nothing: the level is read from the service.

    What one of an unknown type says is kept for its handlers alone.
    """
    linked(kyc_status="unverified", kyc_level="")
    deliver("kyc.verified", kyc_level="level_1", status="verified", provider="Vendor")
    identity = LinkedIdentity.objects.get()
    assert identity.kyc_status == "unverified"
    assert identity.kyc_level == ""
    assert identity.is_due
    event = WebhookEvent.objects.get()
    assert event.outcome == "applied"
    assert event.subject == "subject-1"
    assert event.payload["kyc_level"] == "level_1"
    assert event.next_attempt_at is None

    deliver("wallet.opened", colour="blue")
    handled("wallet.opened")
    deliver("wallet.opened", colour="blue")
    without, kept = WebhookEvent.objects.filter(outcome="ignored").order_by("pk")
    assert without.payload is None
    assert kept.payload["colour"] == "blue"


def test_a_repeat_does_nothing_whatever_its_body():
    """The same event again is acknowledged."""
    linked()
    deliver("kyc.verified", event_id="evt_same", kyc_level="level_1")
    before = LinkedIdentity.objects.get()
    deliver("kyc.verified", event_id="evt_same", kyc_level="level_3")
    assert LinkedIdentity.objects.get().version == before.version
    assert outcomes() == ["applied"]


@pytest.mark.parametrize(
    "other",
    ["evt_A ", "Evt_A", "evt_Á", "evt_\u0041\u0301", " evt_A"],
)
def test_ids_are_compared_exactly(other):
    """Case, accents and blanks tell events apart, whatever the collation."""
    for event_id in ("evt_A", other):
        deliver("kyc.verified", event_id=event_id)
    assert WebhookEvent.objects.count() == 2


@pytest.mark.parametrize(
    "other",
    ["SUBJECT-1", "subject-1 ", " subject-1", "sübject-1"],
)
def test_subjects_are_compared_exactly(other):
    linked()
    deliver("consent.revoked", subject=other)
    assert LinkedIdentity.objects.get().consent == Consent.GRANTED
    assert outcomes() == ["ignored"]


@pytest.mark.parametrize("name", ["consent.revoked", "consent_revoked"])
def test_a_revocation_takes_everything_at_once(name):
    """Consent, tokens, values and level are gone when the response leaves, under both names."""
    identity = linked(credential_expires_at=NOW + HOUR, kyc_provider="Vendor")
    deliver(name)
    held = LinkedIdentity.objects.get()
    assert held.consent == Consent.REVOKED
    assert held.kyc_level == ""
    assert held.kyc_status == ""
    assert held.kyc_provider == ""
    assert held.credential_expires_at is None
    assert held.refetch_due_at is None
    assert held.scopes == []
    assert not TokenGrant.objects.exists()
    assert list(StoredClaim.objects.values_list("value", "valid_until")) == [
        (None, None),
    ]
    assert not standing_of(identity.user).is_linked


def test_a_revoked_link_by_code_is_deleted(handled):
    """And its event keeps nobody, and has no handler to run."""
    handled("consent.revoked")
    make_identity_by_code(make_user())
    deliver("consent.revoked")
    upkeep.run()
    assert not LinkedIdentity.objects.exists()
    row = WebhookEvent.objects.get()
    assert row.outcome == "applied"
    assert row.subject == ""
    assert row.payload is None
    assert row.handled_by == []


@pytest.mark.parametrize(
    ("event_type", "is_published"),
    [
        ("kyc.verified", True),
        ("kyc.rejected", True),
        ("claim.issued", True),
        ("claim.revoked", False),
        ("consent.revoked", False),
    ],
)
def test_no_broker_delays_a_revocation(published, handled, event_type, is_published):
    """Its re-fetch and its handlers wait for upkeep.

    What else comes is read before all that is due, and before its handlers, which may take long.
    """
    identity = linked()
    handled(event_type)
    deliver(event_type)
    event = WebhookEvent.objects.get()
    assert published() == ([[1, identity.pk], [event.pk]] if is_published else [])


@pytest.mark.parametrize("event_type", ["kyc.verified", "kyc.rejected"])
def test_kyc_without_its_scope_is_not_even_stored(event_type):
    linked(scopes=["claims:read"])
    deliver(event_type, kyc_level="level_9")
    assert LinkedIdentity.objects.get().kyc_level == "level_2"
    row = WebhookEvent.objects.get()
    assert row.outcome == "ignored"
    assert row.payload is None


# What an event changes


NAMED = {"claim_type": "age_over_18"}
OTHER = {"provider": "other"}
KYC = {"claim_type": "kyc_verified"}
FRESH = {"signed_in_at": 0, "kyc_said_at": 0}
CODE = {"connect_issued_at": 0}
OF_NEXT_YEAR = {"connect_issued_at": -365 * 24 * 60, "kyc_said_at": 0}
ENDED = {"consent": Consent.REVOKED}
CACHED = {"signed_in_at": 0, "credential_issued_at": 60}
AHEAD = {"signed_in_at": -60, "kyc_said_at": -60}
#: Minutes ago: what was last known of the person | the event, what it says, how long ago it was |
#: its outcome, and what is open then: the gates of A, an age, U, a human, and L, a level.
CHANGES = {
    "a verification": (
        {},
        "kyc.verified",
        {"kyc_level": "level_9"},
        0,
        "applied",
        "AUL",
    ),
    "a claim": ({}, "claim.issued", NAMED, 0, "applied", "AUL"),
    "a consent": ({}, "consent.granted", {}, 0, "applied", "AUL"),
    "a consent after its end": (ENDED, "consent.granted", {}, 0, "applied", ""),
    "a rejection": ({}, "kyc.rejected", {}, 0, "applied", "AU"),
    "a revoked claim": ({}, "claim.revoked", NAMED, 0, "applied", "UL"),
    "of a provider by another name": (
        {},
        "claim.revoked",
        NAMED | OTHER,
        0,
        "applied",
        "UL",
    ),
    "a revoked verification": ({}, "claim.revoked", KYC, 0, "applied", "AU"),
    "all claims": ({}, "claim.revoked", {}, 0, "applied", ""),
    "all claims of a provider": ({}, "claim.revoked", OTHER, 0, "applied", ""),
    "a revoked consent": ({}, "consent.revoked", {}, 0, "applied", ""),
    # The site's own answer, and a sign-in, may be newer by a clock that differs.
    "a hardly older rejection": (FRESH, "kyc.rejected", {}, 4, "applied", "AU"),
    "an older rejection": (FRESH, "kyc.rejected", {}, 6, "superseded", "AUL"),
    "a hardly older end": (FRESH, "consent.revoked", {}, 4, "applied", ""),
    "an older end": (FRESH, "consent.revoked", {}, 6, "superseded", "AUL"),
    # The service gave the sign-in an older level, or a cache an older credential.
    "of a level that was not read": (
        {"signed_in_at": 0},
        "kyc.rejected",
        {},
        30,
        "applied",
        "AU",
    ),
    "of a credential that was not": (
        CACHED,
        "claim.revoked",
        NAMED,
        30,
        "applied",
        "UL",
    ),
    # Both times are the service's. Those of credentials are whole seconds.
    "in the second of the proof": (
        {"credential_issued_at": 0},
        "claim.revoked",
        NAMED,
        -0.9 / 60,
        "applied",
        "UL",
    ),
    "in the second before": (
        {"credential_issued_at": 0},
        "claim.revoked",
        NAMED,
        1 / 60,
        "applied",
        "AUL",
    ),
    # A code brings no claims. What it outdates was delivered late.
    "a claim before a code": (CODE, "claim.revoked", NAMED, 30, "applied", "UL"),
    "an end before a code": (CODE, "consent.revoked", {}, 30, "applied", ""),
    "a code of the future": (OF_NEXT_YEAR, "kyc.rejected", {}, 0, "applied", "AU"),
    # Nobody knows what came first, so the withdrawal counts. A level of the future is none.
    "a rejection by a clock behind": (AHEAD, "kyc.rejected", {}, 0, "applied", "AU"),
    "a revoked claim by one": (AHEAD, "claim.revoked", NAMED, 0, "applied", "U"),
    "an end by one": (AHEAD, "consent.revoked", {}, 0, "applied", ""),
    # What brings something is read from the service, however old it seems.
    "an old verification": (FRESH, "kyc.verified", {}, 60, "applied", "AUL"),
    "an old claim": (FRESH, "claim.issued", NAMED, 60, "applied", "AUL"),
}


@pytest.mark.parametrize("case", CHANGES.values(), ids=CHANGES)
def test_what_is_open_after_an_event(case):
    """A re-fetch is due where the service can say more."""
    since, event_type, about, ago, outcome, opens = case
    now = NOW.replace(microsecond=0)
    known = {
        name: value if value in Consent.values else now - value * MINUTE
        for name, value in since.items()
    }
    identity = linked(**{"refetch_due_at": NOW + 18 * HOUR, **known})
    make_claim(identity, "unique_human")
    deliver(event_type, at=now - ago * MINUTE, **about)
    standing = standing_of(identity.user)
    gates = {
        "A": standing.shortfall(RequiredClaim("age_over_18")),
        "U": standing.shortfall(RequiredClaim("unique_human")),
        "L": standing.level_shortfall("level_2"),
    }
    assert "".join(each for each in gates if gates[each] is None) == opens
    assert outcomes() == [outcome]
    says_more = outcome == "applied" and not event_type.startswith("consent")

    assert LinkedIdentity.objects.get().is_due is says_more


@pytest.mark.parametrize("ahead", [4 * MINUTE, 365 * 24 * HOUR], ids=str)
def test_a_time_from_the_future_counts_as_received(ahead):
    """Else whoever comes back a moment later would be refused: the consent ended after that."""
    linked()
    deliver("consent.revoked", at=timezone.now() + ahead)
    assert LinkedIdentity.objects.get().revoked_at <= timezone.now()


# Whom an event names


WITHDRAWALS = [
    "kyc.rejected",
    "claim.revoked",
    "consent.revoked",
    "data.deletion_requested",
]


def about_a_customer(event_type):
    """An event that names its person in a way that no setting knows yet."""
    data = {"customer": {"ref": "subject-1"}, "user_id": None}
    return event_body(event_type, event_id="evt_1", **data)


@pytest.mark.parametrize("event_type", WITHDRAWALS)
def test_a_withdrawal_that_names_nobody_is_not_acknowledged(
    event_type,
    settings,
    caplog,
):
    """It is stored, and the log names the members that were there, without values.

    A repeat that meets the mended setting has its effect. The first row stays until it is purged.
    """
    linked()
    body = about_a_customer(event_type)
    responses = [post(body), post(body)]
    assert [each.status_code for each in responses] == [422, 422]
    assert responses[0].json()["error"]["code"] == "names_nobody"
    row = WebhookEvent.objects.get()
    assert row.event_type == event_type
    assert row.outcome == "ignored"
    assert row.next_attempt_at is None
    assert row.subject == ""
    assert row.payload is None
    assert row.event_id == ""
    assert row.why_ignored == "names_nobody"
    assert "data.customer.ref" in caplog.text
    assert "subject-1" not in caplog.text
    WebhookEvent.objects.update(received_at=timezone.now() - 24 * HOUR)
    assert post(body).status_code == 422

    mended = {"EVENT_SUBJECT_PATHS": ["data.customer.ref"]}
    settings.DJANGO_IDENTITY = {**settings.DJANGO_IDENTITY, **mended}
    assert [post(body).status_code for _ in range(2)] == [200, 200]
    assert outcomes() == ["ignored", "applied"]


@pytest.mark.parametrize(
    "event_type",
    ["kyc.verified", "claim.issued", "consent.granted"],
)
def test_any_other_event_that_names_nobody_is_acknowledged(event_type, caplog):
    """With a warning. One of a type that nobody knows may be about nobody."""
    assert post(about_a_customer(event_type)).status_code == 200
    assert outcomes() == ["ignored"]
    warnings = [each for each in caplog.records if each.levelname == "WARNING"]
    assert [each.members for each in warnings] == ["data.user_id,data.customer.ref"]
    assert post(about_a_customer("wallet.opened")).status_code == 200
    assert outcomes() == ["ignored", "ignored"]


# An id that a service uses twice


def test_two_events_of_one_id_are_two(settings):
    """Of two people, of two types, or of the test environment, before the site went live."""
    linked()
    make_identity(make_user("grace"), subject="subject-2")
    deliver("claim.issued", event_id="evt_same")
    deliver("consent.revoked", event_id="evt_same")
    deliver("consent.revoked", event_id="evt_same", subject="subject-2")
    assert {each.consent for each in LinkedIdentity.objects.all()} == {Consent.REVOKED}
    settings.DJANGO_IDENTITY = {
        **settings.DJANGO_IDENTITY,
        "ENVIRONMENT": "live",
        "BASE_URL": "https://service.example/api/v1",
        "AUTH_URL": "https://service.example",
    }
    live = make_identity(make_user("live"), environment="live")
    deliver("consent.revoked", event_id="evt_same")
    live.refresh_from_db()

    assert live.consent == Consent.REVOKED
    assert outcomes() == ["applied"] * 4


@pytest.mark.parametrize(
    ("days", "linked_for", "outcome"),
    [
        (1, 0, "applied"),
        (100, 0, "applied"),
        (400, 500, "applied"),
        (400, 0, "superseded"),
    ],
)
def test_a_late_deletion_is_honoured(days, linked_for, outcome):
    """After a sign-in in between too, unless it is older than the records and than the link."""
    linked(signed_in_at=NOW)
    LinkedIdentity.objects.update(created_at=NOW - timedelta(days=linked_for))
    deliver("data.deletion_requested", at=NOW - timedelta(days=days))
    assert outcomes() == [outcome]
    assert ErasureReceipt.objects.exists() is (outcome == "applied")


# Crashes


@pytest.mark.parametrize(
    ("verb", "table", "stored"),
    [
        ("INSERT", "webhookevent", []),
        ("UPDATE", "linkedidentity", [""]),
        ("UPDATE", "webhookevent", [""]),
    ],
)
def test_an_event_that_cannot_be_applied_is_delivered_again(verb, table, stored):
    """503; a stored row does nothing by itself until the service or upkeep comes back to it."""
    linked()
    body = event_body("consent.revoked")
    with refused(verb, table):
        answer = post(body)
    assert answer.status_code == 503
    assert answer["Retry-After"] == "30"
    assert outcomes() == stored
    assert LinkedIdentity.objects.get().consent == Consent.GRANTED
    assert post(body).status_code == 200
    assert outcomes() == ["applied"]


def test_upkeep_applies_what_a_crash_left():
    """With the content: a named claim alone is revoked."""
    make_claim(linked(), "country_resident", "NG")
    event = parse_event(event_body("claim.revoked", claim_type="age_over_18"))
    WebhookEvent.objects.stored(event, event.content)
    upkeep.tend()
    assert outcomes() == [""]
    WebhookEvent.objects.update(next_attempt_at=timezone.now())
    upkeep.tend()
    assert outcomes() == ["applied"]
    revoked = StoredClaim.objects.exclude(revoked_at=None)
    assert [row.claim_type for row in revoked] == ["age_over_18"]


def test_what_is_linked_by_code_hears_its_own_events():
    """A rejection closes the level that a code brought, and stays one."""
    identity = make_identity_by_code(make_user(), connect_issued_at=NOW - HOUR)
    deliver("kyc.rejected")
    assert standing_of(identity.user).level_shortfall("level_1")
    deliver("claim.revoked", claim_type="kyc_verified")
    assert LinkedIdentity.objects.get().kyc_status == "rejected"
    assert LinkedIdentity.objects.get().linked_via == LinkedVia.CONNECT


@pytest.mark.parametrize("event_type", ["claim.issued", "kyc.verified"])
def test_a_repeat_after_a_new_link_tells_nothing_of_the_former_one(event_type, handled):
    """What was said of the former link went with it, and no handler runs for the new one."""
    handled(event_type)
    body = event_body(event_type, claim_type="age_over_18", kyc_level="level_2")
    former = linked()
    assert post(body).status_code == 200
    former.user.delete()
    linked()
    assert post(body).status_code == 200
    upkeep.run()
    row = WebhookEvent.objects.get()
    assert row.subject == ""
    assert row.payload is None
    assert row.event_id == ""
    assert row.handled_by == []
