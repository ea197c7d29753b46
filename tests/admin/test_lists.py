"""The lists: what a row says, what finds it and what it costs, and what operators may not see."""

import re
from datetime import timedelta
from functools import partial

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from django_identity.gates import Gate, closed_to
from django_identity.models import Consent, ErasureReceipt, LinkedIdentity, WebhookEvent
from tests.admin.operators import (
    ADDRESS,
    EVENTS,
    IDENTITIES,
    IDENTITY,
    RECEIPTS,
    SUBJECT,
    every_page,
    make_everything,
    page,
    staff,
)
from tests.factories import make_event, make_identity, make_user

pytestmark = pytest.mark.django_db

LATELY = "{0}__gte=2020-01-01T00:00Z&{0}__lt=2090-01-01T00:00Z"


def test_a_row_says_how_fresh_it_is(operator, identity):
    text = page(operator, IDENTITIES)
    for words in (
        "level_2",
        "verified",
        "valid for 5\xa0hours",
        "in 7\xa0minutes",
        "failed 2 times",
        ">7d1f0c…2b11<",
        f'title="{SUBJECT}"',
    ):
        assert words in text
    LinkedIdentity.objects.update(
        credential_expires_at=timezone.now() - timedelta(hours=2),
    )
    assert "ran out 2\xa0hours ago" in page(operator, IDENTITIES)
    for state, is_listed in (("pending", True), ("erased", False)):
        assert ("/change/" in page(operator, RECEIPTS, state=state)) is is_listed


LISTS = {
    IDENTITIES: (
        "",
        "q=u1",
        "q=subject-5",
        "p=1",
        LATELY.format("created_at"),
        "environment__exact=test&consent__exact=granted&level=level_2"
        "&status=verified&fresh=long&failing=no&q=u",
    ),
    EVENTS: (
        "",
        "q=subject-5",
        "q=event-5",
        "p=1",
        LATELY.format("received_at"),
        "type=claim.issued&outcome__exact=applied&q=subject-5",
    ),
    RECEIPTS: ("", "p=1", LATELY.format("requested_at"), "state=pending"),
}


def test_a_list_costs_eight_queries_at_most(operator, identity):
    for number in range(20):
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
        {"environment__exact": "test"},
        {"consent__exact": "granted"},
        {"level": "level_2"},
        {"status": "verified"},
        {"fresh": "soon"},
        {"failing": "yes"},
        {"lost": "yes"},
        {"q": "ada"},
        {"q": "ADA@example"},
        {"q": "aDa"},
        {"q": SUBJECT},
        {"q": f" {SUBJECT} "},
        {"q": SUBJECT[:8]},
    ],
    ids=str,
)
def test_a_filter_or_search_finds_the_one(operator, identity, query):
    identity.grant.needs_reauthorization = True
    identity.grant.save()
    make_identity(
        make_user("bola"),
        subject="unlike",
        environment="live",
        consent=Consent.REVOKED,
        kyc_level="",
        kyc_status="",
        credential_expires_at=None,
    )
    text = page(operator, IDENTITIES, **query)
    assert ">ada<" in text
    assert ">bola<" not in text


# How far operators who may only look can see

VIEW = ("view_linkedidentity", "view_webhookevent", "view_erasurereceipt")
VERBS = ("refetch", "revoke", "erase")
MAY_DO = (*(f"{verb}_linkedidentity" for verb in VERBS), "replay_webhookevent")

# What a list must not be asked, with a value that would find the row.
SEALED = {
    IDENTITIES: {
        "subject_digest__startswith": "",
        "user__password__startswith": "",
        "user__email__startswith": "ada",
        "user__email": ADDRESS,
        "user__is_superuser": "0",
        "user_id": "1",
        "grant__refresh_token__startswith": "",
        "grant__access_token__gt": "",
        "grant__generation": "1",
        "claims__value": "true",
        "claims__proof_hash__startswith": "",
        # A database refuses odd values of these.
        "created_at__year": "99999999999",
        "consent__regex": "(",
    },
    EVENTS: {
        "payload__contains": "a",
        "payload__user_id": "subject-1",
        "error__startswith": "",
        "event_digest__startswith": "",
        "subject_digest": "",
        "handled_by__contains": "",
    },
    RECEIPTS: {
        "subject__startswith": "subject",
        "subject_digest__startswith": "",
        "user__email": ADDRESS,
        "user": "1",
        "counts__contains": "",
        "error__startswith": "",
    },
}


@pytest.mark.parametrize(
    ("name", "lookup", "value"),
    [(name, *asked) for name, lookups in SEALED.items() for asked in lookups.items()],
)
def test_a_list_filters_on_nothing_but_its_filters(name, lookup, value):
    """A lookup that finds or does not find spells out what is sealed, letter by letter."""
    assert staff(*VIEW).get(reverse(name), {lookup: value}).status_code == 400


@pytest.mark.parametrize(
    ("action", "model", "permission"),
    [
        *((verb, LinkedIdentity, f"{verb}_linkedidentity") for verb in VERBS),
        ("disconnect", LinkedIdentity, "revoke_linkedidentity"),
        ("replay", WebhookEvent, "replay_webhookevent"),
        ("try_now", ErasureReceipt, "erase_linkedidentity"),
    ],
)
def test_an_action_needs_its_own_permission(action, model, permission):
    make_everything()
    pk, name = model.objects.get().pk, f"admin:django_identity_{model._meta.model_name}"
    button, others = f'value="{action}"', {*MAY_DO} - {permission}
    assert button in page(staff(*VIEW, permission), f"{name}_change", pk)
    browser = staff(*VIEW, *others)
    assert button not in page(browser, f"{name}_change", pk)
    chosen = {"action": action, "_selected_action": pk, "confirmed": "yes"}
    browser.post(reverse(f"{name}_changelist"), chosen)
    assert not LogEntry.objects.exists()
    assert not LinkedIdentity.objects.exclude(consent="granted").exists()


@pytest.mark.parametrize("username", ["ada", ADDRESS], ids=["name", "address"])
def test_the_address_is_for_who_may_see_users(username):
    """Others see it on no page and in no question, though they may do everything else."""
    identity = make_everything(username)
    pages = list(every_page(staff(*VIEW, *MAY_DO)))
    assert not [text for text in pages if ADDRESS in text]
    shown = "ada" if username == "ada" else f"user #{identity.user_id}"
    assert sum(f">{shown}<" in text for text in pages) == 5
    for permission in ("view_user", "change_user"):
        browser = staff(*VIEW, permission)
        assert ADDRESS in page(browser, IDENTITY, identity.pk)
        assert f">{username}<" in page(browser, IDENTITIES, q="ADA@exam")


def test_a_reference_finds_the_person_for_who_may_see_users():
    """The number that the page of a closed gate tells somebody whose credential fails a check."""
    uche = make_user("uche")
    make_identity(uche, pk=4711, last_error="credential_rejected")
    told = closed_to(Gate("age_over_18"), uche).shortfall.reference
    found = partial(page, staff(*VIEW, "view_user"), IDENTITIES)
    assert ">uche<" in found(q=told)
    assert ">uche<" not in found(q=told[:-1])
    assert "user #" not in page(staff(*VIEW), IDENTITIES, q=told)


@pytest.mark.parametrize("wanted", ["ada@", ADDRESS, "ADA@EXAMPLE", "a", "agnes"])
def test_a_search_finds_nobody_for_who_may_not_see_users(wanted):
    """Found or not would be an answer; such an operator searches for subjects alone."""
    make_identity(make_user("bola", email=ADDRESS))
    make_identity(make_user(ADDRESS), subject="subject-2")
    make_identity(User.objects.create(username="agnes"), subject="subject-3")
    text = page(staff(*VIEW), IDENTITIES, q=wanted)
    assert not [name for name in (">bola<", ">agnes<", "user #") if name in text]
    assert ">agnes<" in page(staff(*VIEW), IDENTITIES, q="subject-3")
