"""Handing due rows out is cheap: where it is done a million times a day, it writes rows alone."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from django_identity import conf
from django_identity.lifecycle.upkeep import due_rows
from django_identity.models import LinkedIdentity
from tests.records import make_identity, make_user

pytestmark = pytest.mark.django_db

ROWS = 300
HOT_UPDATES = "SELECT pg_stat_get_xact_tuples_hot_updated(%s::regclass)"


@pytest.mark.skipif(connection.vendor != "postgresql", reason="only PostgreSQL has them")
def test_handing_out_touches_no_index() -> None:
    """Every page of the table has room for the rows that are handed out (heap-only tuples)."""
    past = timezone.now() - timedelta(minutes=1)
    for number in range(ROWS):
        make_identity(
            make_user(f"user-{number}"),
            subject=f"subject-{number}",
            credential="c" * 1_500,
            refetch_due_at=past if number % 5 == 0 else timezone.now() + timedelta(hours=1),
        )
    before = updates_that_touched_no_index()
    handed_out = sum(map(len, due_rows.take(conf.application(), page=20)))
    assert handed_out == updates_that_touched_no_index() - before == ROWS // 5


def updates_that_touched_no_index() -> int:
    """Of this transaction, and what the connection has not yet reported of earlier ones."""
    with connection.cursor() as cursor:
        cursor.execute(HOT_UPDATES, [LinkedIdentity._meta.db_table])
        return cursor.fetchone()[0]


def test_a_row_that_an_event_makes_due_anew_is_begun() -> None:
    """Its task has read it already; nobody else would come for it before the row is free again."""
    due_at = timezone.now() - timedelta(minutes=1)
    pk = make_identity(make_user("efe"), refetch_due_at=due_at).pk
    list(due_rows.take(conf.application()))
    as_read = LinkedIdentity.objects.get(pk=pk)
    LinkedIdentity.objects.filter(pk=pk).update(refetch_due_at=timezone.now())
    assert due_rows.start(as_read)
    assert not due_rows.start(as_read)


def test_a_row_that_somebody_ended_with_is_not_begun() -> None:
    due_at = timezone.now() - timedelta(minutes=1)
    pk = make_identity(make_user("efe"), refetch_due_at=due_at).pk
    as_read = LinkedIdentity.objects.get(pk=pk)
    later = timezone.now() + timedelta(hours=18)
    LinkedIdentity.objects.filter(pk=pk).update(refetch_due_at=later)
    assert not due_rows.start(as_read)
