"""The admin's lists: what a row says, what finds it, and what a list costs."""

import re
from datetime import timedelta

import pytest
from django.contrib.contenttypes.models import ContentType
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from django_identity.models import Consent, ErasureReceipt, LinkedIdentity
from tests.admin.operators import EVENTS, IDENTITIES, RECEIPTS, SUBJECT, page
from tests.factories import make_event, make_identity, make_user

pytestmark = pytest.mark.django_db

LATELY = "{0}__gte=2020-01-01T00:00Z&{0}__lt=2090-01-01T00:00Z"


def test_a_row_says_how_fresh_it_is(operator, identity):
    """Freshness, due and failing in words; the subject shortened, with the whole of it beside."""
    text = page(operator, IDENTITIES)
    for words in (
        "level_2", "verified", "valid for 5\xa0hours", "in 7\xa0minutes", "failed 2 times",
        ">7d1f0c…2b11<",
        f'title="{SUBJECT}"',
    ):  # fmt: skip
        assert words in text
    LinkedIdentity.objects.update(
        credential_expires_at=timezone.now() - timedelta(hours=2)
    )
    assert "ran out 2\xa0hours ago" in page(operator, IDENTITIES)


LISTS = {
    IDENTITIES: (
        "", "q=u1", "q=subject-5", "p=1", LATELY.format("created_at"),
        "environment__exact=test&consent__exact=granted&level=level_2"
        "&status=verified&fresh=long&failing=no&q=u",
    ),
    EVENTS: (
        "", "q=subject-5", "q=event-5", "p=1", LATELY.format("received_at"),
        "type=claim.issued&outcome__exact=applied&q=subject-5",
    ),
    RECEIPTS: ("", "p=1", LATELY.format("requested_at"), "state=pending"),
}  # fmt: skip


def test_a_list_costs_eight_queries_at_most(operator, identity):
    """However many rows it has, filters and search included; and none is about every row."""
    for number in range(60):
        other = make_identity(make_user(f"u{number}"), subject=f"subject-{number}")
        make_event(other, "claim.issued")
        ErasureReceipt.objects.create(requested_at=timezone.now())
    asked_for = [(name, query) for name, each in LISTS.items() for query in each]
    for name, query in asked_for:
        # As the first request of a process does.
        ContentType.objects.clear_cache()
        with CaptureQueriesContext(connection) as captured:
            text = operator.get(f"{reverse(name)}?{query}").content.decode()
        assert 'id="result_list"' in text, query
        asked = [one["sql"] for one in captured]
        assert len(asked) <= 8, query
        counts = [sql for sql in asked if "COUNT(" in sql]
        assert counts, query
        assert all("LIMIT 10000" in sql for sql in counts), query
        assert not re.search(r"\b(DISTINCT|MIN\(|MAX\()", "\n".join(asked)), query


@pytest.mark.parametrize(
    "query",
    [
        {"environment__exact": "test"}, {"consent__exact": "granted"},
        {"level": "level_2"}, {"status": "verified"}, {"fresh": "soon"},
        {"failing": "yes"}, {"lost": "yes"}, {"q": "ada"}, {"q": "ADA@example"}, {"q": "aDa"},
        {"q": SUBJECT}, {"q": f" {SUBJECT} "}, {"q": SUBJECT[:8]},
    ],
    ids=str,
)  # fmt: skip
def test_a_filter_or_search_finds_the_one(operator, identity, query):
    """Each finds the identity it describes and none of another kind."""
    identity.grant.needs_reauthorization = True
    identity.grant.save()
    make_identity(
        make_user("bola"), subject="unlike", environment="live",
        consent=Consent.REVOKED, kyc_level="", kyc_status="", credential_expires_at=None,
    )  # fmt: skip
    text = page(operator, IDENTITIES, **query)
    assert ">ada<" in text
    assert ">bola<" not in text
