"""Migrations carry over what was stored before them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone

from tests.records import LONG_AGO, make_user

pytestmark = pytest.mark.django_db(transaction=True)

APP = "django_identity"


def migrate(name: str) -> Any:
    executor = MigrationExecutor(connection)
    executor.migrate([(APP, name)])
    return MigrationExecutor(connection).loader.project_state([(APP, name)]).apps


@pytest.fixture
def before() -> Iterator[Any]:
    """The models as they were before levels ran out and accounts stayed."""
    newest = max(
        name for app, name in MigrationExecutor(connection).loader.graph.nodes if app == APP
    )
    yield migrate("0002_room_for_leases")
    migrate(newest)


def test_levels_and_accounts_are_carried_over(before: Any) -> None:
    """A level is as old as the last word on it; an account of the same minute was made for it."""
    now = timezone.now()
    linked, grants = (before.get_model(APP, name) for name in ("LinkedIdentity", "TokenGrant"))
    users = {name: make_user(name) for name in ("made", "older")}
    type(users["older"]).objects.filter(username="older").update(date_joined=LONG_AGO)
    for name, user in users.items():
        identity = linked.objects.create(
            user_id=user.pk,
            application="default",
            environment="test",
            subject=name,
            subject_digest=name,
            consent="granted",
            consent_changed_at=now,
            linked_via="oauth",
            scopes=["kyc:read"],
            kyc_level="level_2",
            kyc_status="verified",
            kyc_changed_at=now - timedelta(hours=1),
        )
        grants.objects.create(identity_id=identity.pk, access_token="s", access_expires_at=now)
    after = migrate("0005_accounts_that_stay").get_model(APP, "LinkedIdentity").objects
    made, older = after.get(subject="made"), after.get(subject="older")
    assert (made.account_made, older.account_made) == (True, False)
    assert made.kyc_checked_at == made.kyc_changed_at
    assert made.refetch_due_at is not None
    after.all().delete()
