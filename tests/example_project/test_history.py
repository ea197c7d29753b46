"""The history that the demo starts with: every page of the admin has something to say."""

from __future__ import annotations

import time
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from django_identity.lifecycle.operators import overview, timeline
from django_identity.models import (
    Consent,
    ErasureReceipt,
    LinkedIdentity,
    StoredClaim,
    TokenGrant,
    WebhookEvent,
)
from example_project.demo.history import DAYS, PEOPLE, make_history
from example_project.demo.members import OPERATOR, SUPERUSER
from example_project.demo.site import make_operators
from tests.records import unsealed

pytestmark = pytest.mark.django_db
KINDS = [
    {"linked_via": "oauth", "consent": "granted"},
    {"linked_via": "connect"},
    {"consent": "revoked"},
    {"refetch_failures__gt": 0},
]
PAGES = ["linkedidentity/", "webhookevent/", "erasurereceipt/", "overview/"]


@pytest.fixture
def _history() -> None:
    make_history()


@pytest.mark.usefixtures("_history")
def test_two_hundred_people_over_sixty_days() -> None:
    """With revocations, failures, events of each outcome, and an erasure that waits."""
    assert LinkedIdentity.objects.count() == PEOPLE == 200
    first = LinkedIdentity.objects.earliest("created_at").created_at
    assert DAYS - 5 < (timezone.now() - first).days <= DAYS
    found = overview.overview_of(application="default", environment="test")
    assert sum(1 for each in found.sign_ins if each.count) == overview.DAYS
    assert found.by_consent[Consent.REVOKED, "level_2"] > 5
    assert {"applied", "superseded", "failed"} <= set(found.events)
    assert len(found.failures) > 1
    for listed in ("erasures", "failing", "failed_events"):
        assert getattr(found.attention, listed).rows, listed
    assert StoredClaim.objects.filter(revoked=True).count() > 5
    assert WebhookEvent.objects.filter(payload__isnull=True).exists()
    assert ErasureReceipt.objects.exclude(erased_at=None).count() == 6


@pytest.mark.usefixtures("_history")
def test_every_timeline_is_in_order() -> None:
    """Nothing before the link but a refusal, nothing in the future."""
    for identity in LinkedIdentity.objects.all()[::9]:
        entries = timeline.timeline_of(identity)
        assert len(entries) >= 2
        assert entries[0].at <= timezone.now()
        denied = [each for each in entries if each.at < identity.created_at]
        assert {each.kind for each in denied} <= {timeline.Kind.SIGN_IN_FAILED}


@pytest.mark.usefixtures("_history")
def test_the_worker_has_no_part_in_it() -> None:
    """Nothing is due for hours, as the service does not know these people; tokens open."""
    soon = timezone.now() + timedelta(hours=6)
    assert not LinkedIdentity.objects.filter(refetch_due_at__lt=soon).exists()
    assert not ErasureReceipt.objects.filter(next_attempt_at__lt=soon, erased_at=None).exists()
    assert not WebhookEvent.objects.filter(next_attempt_at__isnull=False).exists()
    for grant in TokenGrant.objects.select_related("identity")[:5]:
        assert unsealed(grant.identity, "refresh_token", grant.refresh_token)


def test_it_costs_a_demo_little() -> None:
    """Few statements and about a second, whatever the number of people."""
    began = time.process_time()
    with CaptureQueriesContext(connection) as queries:
        make_history()
    assert len(queries) < 60
    assert time.process_time() - began < 3


@pytest.mark.usefixtures("_history")
def test_operators_look() -> None:
    """With the passwords that the demo prints; who is no superuser is offered no action."""
    make_operators()
    make_operators()
    operator, superuser = Client(), Client()
    assert operator.login(username=OPERATOR.name, password=OPERATOR.password)
    assert superuser.login(username=SUPERUSER.name, password=SUPERUSER.password)
    for page in PAGES:
        shown = operator.get(f"/admin/django_identity/{page}")
        assert shown.status_code == 200
        assert 'name="action"' not in shown.content.decode()
    account = User.objects.get(username=OPERATOR.name)
    assert not account.is_superuser
    assert all(".view_" in each for each in account.get_all_permissions())
    for kind in KINDS:
        identity = LinkedIdentity.objects.filter(**kind).first()
        assert identity is not None
        page = f"/admin/django_identity/linkedidentity/{identity.pk}/change/"
        assert superuser.get(page).status_code == 200
