"""The admin's lists: what a row says, what finds it, and what a list costs."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from django_identity.lifecycle.operators import search
from django_identity.models import Consent, ErasureReceipt, LinkedIdentity
from tests.faces.admin import EVENTS, IDENTITIES, RECEIPTS, page, superuser
from tests.records import make_event, make_grant, make_identity, make_user

pytestmark = pytest.mark.django_db

SUBJECT = "7d1f0c9e-1111-4a57-9c57-0c6bd37f2b11"
YESTERDAY, TOMORROW = (
    (timezone.now() + timedelta(days=days)).strftime("%Y-%m-%d %H:%M:%S+00:00") for days in (-1, 1)
)


@pytest.fixture
def operator() -> Client:
    return superuser()


@pytest.fixture
def identity() -> LinkedIdentity:
    """One that runs out soon, is due soon, and fails."""
    now = timezone.now()
    made = make_identity(
        make_user("ada", email="ada@example.org"), subject=SUBJECT, refetch_failures=2,
        last_error="service_timeout", refetch_due_at=now + timedelta(minutes=7, seconds=30),
        credential_expires_at=now + timedelta(hours=5, minutes=2),
    )  # fmt: skip
    make_grant(made)
    return made


def test_a_row_says_how_fresh_it_is(operator: Client, identity: LinkedIdentity) -> None:
    """Freshness, due and failing in words; the subject shortened, with the whole of it beside."""
    text = page(operator, IDENTITIES)
    for words in (
        "level 2",
        "verified",
        "in 5\xa0hours",
        "in 7\xa0minutes",
        "failed 2 times",
        "7d1f0c9e…",
        f'title="{SUBJECT}"',
    ):
        assert words in text
    LinkedIdentity.objects.update(credential_expires_at=timezone.now() - timedelta(hours=2))
    assert "ran out 2\xa0hours ago" in page(operator, IDENTITIES)


@pytest.mark.parametrize(
    ("name", "queries"),
    [
        (IDENTITIES, (
            {},
            {"q": "u1"},
            {"q": "subject-5"},
            {"p": "1"},
            {"created_at__gte": YESTERDAY, "created_at__lt": TOMORROW},
            {"of": "default", "environment__exact": "test", "consent__exact": "granted",
             "level": "level_2", "status": "verified", "fresh": "long", "failing": "no",
             "grant": "none", "q": "u"},
        )),
        (EVENTS, (
            {},
            {"q": "subject-5"},
            {"q": "event-5"},
            {"p": "1"},
            {"received_at__gte": YESTERDAY, "received_at__lt": TOMORROW},
            {"of": "default", "type": "claim.issued", "outcome__exact": "applied",
             "q": "subject-5"},
        )),
        (RECEIPTS, (
            {},
            {"p": "1"},
            {"requested_at__gte": YESTERDAY, "requested_at__lt": TOMORROW},
            {"of": "default", "environment__exact": "test", "erased_at__isempty": "1"},
        )),
    ],
    ids=lambda given: given if isinstance(given, str) else "",
)  # fmt: skip
def test_a_list_costs_eight_queries_at_most(
    operator: Client, identity: LinkedIdentity, name: str, queries: tuple[dict[str, str], ...]
) -> None:
    """However many rows it has, filters and search included; and none is about every row."""
    for number in range(60):
        other = make_identity(make_user(f"u{number}"), subject=f"subject-{number}")
        make_event(other, "claim.issued")
        ErasureReceipt.objects.create(
            application="default", environment="test", subject_digest=f"d{number}",
            requested_at=timezone.now(),
        )  # fmt: skip
    for query in queries:
        # As the first request of a process does.
        ContentType.objects.clear_cache()
        with CaptureQueriesContext(connection) as captured:
            text = page(operator, name, **query)
        assert 'id="result_list"' in text, query
        asked = [one["sql"] for one in captured]
        assert len(asked) <= 8, query
        counts = [sql for sql in asked if "COUNT(" in sql]
        assert counts, query
        assert all("LIMIT 10001" in sql for sql in counts), query
        assert not [sql for sql in asked if re.search(r"\b(DISTINCT|MIN\(|MAX\()", sql)], query


@pytest.mark.parametrize(
    "query",
    [
        {"of": "default"}, {"environment__exact": "test"}, {"consent__exact": "granted"},
        {"level": "level_2"}, {"status": "verified"}, {"fresh": "soon"},
        {"failing": "yes"}, {"grant": "ends"}, {"grant": "dead"}, {"q": "ada"},
        {"q": "ADA@example"}, {"q": "aDa"},
        {"q": SUBJECT}, {"q": f" {SUBJECT} "}, {"q": SUBJECT[:8]},
    ],
    ids=str,
)  # fmt: skip
def test_a_filter_or_search_finds_the_one(
    operator: Client, identity: LinkedIdentity, query: dict[str, str]
) -> None:
    """Each finds the identity it describes and none of another kind."""
    identity.grant.refresh_expires_at = timezone.now() + timedelta(days=2)
    identity.grant.needs_reauthorization = True
    identity.grant.save()
    make_identity(
        make_user("bola"), subject="unlike", application="other", environment="live",
        consent=Consent.REVOKED, kyc_level="", kyc_status="", credential_expires_at=None,
    )  # fmt: skip
    text = page(operator, IDENTITIES, **query)
    assert ">ada<" in text
    assert ">bola<" not in text


@pytest.mark.parametrize("column", ["kyc_level", "kyc_status"])
def test_another_value_is_neither_known_nor_empty(operator: Client, column: str) -> None:
    """Wherever the database sorts it: before, between and after the known ones."""
    known = ("", "level_1", "level_2") if column == "kyc_level" else ("", "verified", "rejected")
    others = ("!", "0", "Level_3", "level", "level_1 ", "level_15", "level_9", "s", "zz", "é")
    for number, value in enumerate((*known, *others)):
        make_identity(make_user(f"user-{number}."), subject=f"s{number}", **{column: value})
    parameter = column.partition("_")[2]
    text = page(operator, IDENTITIES, **{parameter: "other"})
    # MariaDB takes "level_1 " for "level_1".
    unknown = LinkedIdentity.objects.exclude(**{f"{column}__in": known})
    names = set(unknown.values_list("user__username", flat=True))
    assert set(re.findall(r">(user-\d+\.)<", text)) == names
    assert len(names) >= len(others) - 1
    none = page(operator, IDENTITIES, **{parameter: "none"})
    assert re.findall(r">(user-\d+\.)<", none) == ["user-0."]


@pytest.mark.parametrize("count", [2, search.MOST_NAMED + 1], ids=["few", "many"])
def test_those_without_a_grant_are_found(
    operator: Client, identity: LinkedIdentity, count: int
) -> None:
    """Few or many, and with another filter as well."""
    users = User.objects.bulk_create(User(username=f"code-{n}") for n in range(count))
    LinkedIdentity.objects.bulk_create(
        LinkedIdentity(
            user=user, application="default", environment="test", subject=user.username,
            subject_digest=user.username, consent=Consent.GRANTED,
            consent_changed_at=timezone.now(), linked_via="connect", kyc_level="level_1",
        )
        for user in users
    )  # fmt: skip
    first = LinkedIdentity.objects.filter(user=users[0])
    first.update(kyc_level="level_2")
    text = page(operator, IDENTITIES, grant="none")
    assert f">code-{count - 1}<" in text
    assert ">ada<" not in text
    assert f"{count} linked identities" in text
    text = page(operator, IDENTITIES, grant="none", level="level_2")
    assert set(re.findall(r">((?:code-|ada)[^<]*)<", text)) == {"code-0"}


def test_applications_are_a_filter_where_there_are_several(
    operator: Client, identity: LinkedIdentity, settings: Any
) -> None:
    """With one there is nothing to choose; an address that names it still counts."""
    make_identity(make_user("kemi"), subject="subject-2", application="gone")
    heading = "By application"
    assert heading not in page(operator, IDENTITIES)
    asked = page(operator, IDENTITIES, of="default")
    assert heading in asked
    assert "ada" in asked
    assert "kemi" not in asked
    default = settings.DJANGO_IDENTITY["default"]
    settings.DJANGO_IDENTITY = {"default": default, "second": default}
    assert heading in page(operator, IDENTITIES)


def test_identities_are_listed_by_their_due_moment(operator: Client) -> None:
    """Both ways; those that are due at one moment by their age."""
    now = timezone.now()
    for number, hours in enumerate((2, 1, 1, 3)):
        due = now + timedelta(hours=hours)
        make_identity(make_user(f"due-{number}"), subject=f"s{number}", refetch_due_at=due)
    listed = [re.findall(r">(due-\d)<", page(operator, IDENTITIES, o=o)) for o in ("7", "-7")]
    assert listed[0] == ["due-1", "due-2", "due-0", "due-3"]
    assert listed[1] == listed[0][::-1]


@pytest.mark.parametrize("order", ["7", "-7"])
def test_without_consent_the_order_by_due_date_is_by_age(operator: Client, order: str) -> None:
    """None of them has a date, and no index begins with those that have none."""
    for name in ("older", "newer"):
        make_identity(make_user(name), subject=f"of {name}", consent=Consent.REVOKED)
    asked = {"consent__exact": Consent.REVOKED, "o": order}
    with CaptureQueriesContext(connection) as captured:
        text = page(operator, IDENTITIES, **asked)
    assert re.findall(r">(older|newer)<", text) == ["newer", "older"]
    orders = [each["sql"].partition(" ORDER BY ")[2] for each in captured]
    assert not any("refetch_due_at" in order for order in orders)


@pytest.mark.parametrize("text", ["mc", "mCdOnAlD_", "MCDONALD_1", "McDonald_1%"])
def test_a_name_is_found_in_any_case(operator: Client, text: str) -> None:
    """However many letters there are; other characters stand for themselves."""
    for number, name in enumerate(("McDonald_1%", "mcdonaldx1")):
        make_identity(make_user(name), subject=f"s{number}")
    found = page(operator, IDENTITIES, q=text)
    assert ">McDonald_1%<" in found
    assert (">mcdonaldx1<" in found) is (text == "mc")


def test_a_search_for_a_subject_is_exact(operator: Client, identity: LinkedIdentity) -> None:
    """Three characters are too few for a beginning, and letters keep their case."""
    assert ">ada<" not in page(operator, IDENTITIES, q=SUBJECT[:3])
    assert "0 results" in page(operator, IDENTITIES, q="nobody")


@pytest.mark.parametrize(
    ("since", "until", "is_there"),
    [(YESTERDAY, TOMORROW, True), (TOMORROW, TOMORROW, False)],
    ids=["around", "after"],
)
def test_a_list_is_filtered_by_its_date(
    operator: Client, identity: LinkedIdentity, since: str, until: str, *, is_there: bool
) -> None:
    """Today, the past 7 days, this month and this year are links beside the list."""
    dates = {"created_at__gte": since, "created_at__lt": until}
    assert (">ada<" in page(operator, IDENTITIES, **dates)) is is_there
    assert "?created_at__gte=" in page(operator, IDENTITIES)


@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "Pacific/Pago_Pago"])
@pytest.mark.parametrize(
    "edge", ["9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00", "9999-12-31", "x"]
)
def test_any_date_may_be_asked_for(operator: Client, settings: Any, edge: str, zone: str) -> None:
    """At the edge of the calendar as well, east and west."""
    settings.TIME_ZONE = zone
    dates = {IDENTITIES: "created_at", EVENTS: "received_at", RECEIPTS: "requested_at"}
    for name, column in dates.items():
        asked = {f"{column}__gte": edge, f"{column}__lt": edge}
        answer = operator.get(reverse(name), asked)
        assert answer.status_code == (302 if edge == "x" else 200)


def test_receipts_are_filtered_by_what_is_pending(operator: Client) -> None:
    """An erasure that is not done is found among those that are."""
    for number, erased_at in enumerate((None, timezone.now())):
        ErasureReceipt.objects.create(
            application="default", environment="test", subject_digest=f"d{number}",
            requested_at=timezone.now(), erased_at=erased_at,
        )  # fmt: skip
    pending, done = ErasureReceipt.objects.order_by("pk")
    text = page(operator, RECEIPTS, erased_at__isempty="1")
    assert (f">{pending}<" in text, f">{done}<" in text) == (True, False)
