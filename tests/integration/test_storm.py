"""A storm of events from many processes at once ends where calm would have ended."""

from collections import Counter
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from django_identity.lifecycle.leaving import erasure
from django_identity.models import WebhookEvent
from tests import concurrency
from tests.integration import storm

pytestmark = [pytest.mark.race, pytest.mark.django_db(transaction=True)]

BEGAN_AT = timezone.now().replace(microsecond=0) - timedelta(hours=2)
PROCESSES = 8
EVENTS = {"postgresql": 1_000}
FEWER_EVENTS = 200


def test_a_storm_ends_as_calm_does():
    """Eight processes at once, shuffled and repeated: the end of in-order single delivery."""
    count = EVENTS.get(connection.vendor, FEWER_EVENTS)
    calm = storm.calm_end(storm.in_order(count, BEGAN_AT), BEGAN_AT)
    storm.clear()
    storm.people(BEGAN_AT)
    [statuses] = concurrency.in_processes(
        1, storm.deliver_at_once, PROCESSES, count, BEGAN_AT, patience=600
    )
    assert Counter(statuses) == {200: count + count * 3 // 10}
    assert WebhookEvent.objects.count() == count
    erasure.retry_pending()
    assert storm.differences(storm.end_state(), calm) == []
