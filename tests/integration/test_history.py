"""The history that the demo starts with: every page of the admin has something to say."""

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from django_identity.instruments.signs import charts, of_rows
from django_identity.lifecycle.operators import timeline
from django_identity.models import LinkedIdentity
from example_project.demo.history import PEOPLE, make_history
from example_project.demo.members import OPERATOR
from example_project.demo.site import make_operators

pytestmark = pytest.mark.django_db
PAGES = ["linkedidentity/", "webhookevent/", "erasurereceipt/", "overview/"]


def test_the_history_is_one_of_two_hundred_people():
    """With revocations, failures, events of each outcome, and an erasure that waits.

    Operators look at it, and who is no superuser is offered no action.
    """
    with CaptureQueriesContext(connection) as queries:
        make_history()
    assert len(queries) < 60
    assert LinkedIdentity.objects.count() == PEOPLE == 200
    assert sum(1 for each in charts.days() if each.linked) > charts.DAYS / 2
    assert charts.people()[-1][2] > 5, "revoked"
    signs = {finding.check for finding in of_rows()}
    assert signs >= {"refetches", "erasures", "events"}
    for identity in LinkedIdentity.objects.all()[::9]:
        assert len(timeline.timeline_of(identity)) >= 2
    for _ in range(2):
        make_operators()
    operator = Client()
    assert operator.login(username=OPERATOR.name, password=OPERATOR.password)
    for page in PAGES:
        shown = operator.get(f"/admin/django_identity/{page}")
        assert 'name="action"' not in shown.content.decode()
