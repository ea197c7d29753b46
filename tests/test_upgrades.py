"""Migrate, then deploy: the code before an upgrade serves on the tables after it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.apps import apps
from django.db import connection, models
from django.db.models.expressions import RawSQL
from django.test import Client, override_settings
from django.utils import timezone

from django_identity.lifecycle.leaving import pending_erasures
from django_identity.lifecycle.minute import upkeep
from django_identity.models import ConnectRedemption, ErasureReceipt, LinkedIdentity
from tests.deliveries import SECRET, event_body, post
from tests.sign_in import sign_in

TABLES = tuple(
    model
    for model in apps.get_app_config("django_identity").get_models()
    if not model._meta.proxy
)


@contextmanager
def added_to_every_table(column: str) -> Iterator[None]:
    """The tables as a later migration leaves them, under the code of today."""
    names = [model._meta.db_table for model in TABLES]
    with connection.cursor() as cursor:
        for name in names:
            cursor.execute(f"ALTER TABLE {name} ADD COLUMN added_later {column}")
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            for name in names:
                cursor.execute(f"ALTER TABLE {name} DROP COLUMN added_later")


@pytest.mark.django_db(transaction=True)
def test_the_code_before_it_serves_with_an_added_column(service):
    """A sign-in, events, a re-fetch and an erasure insert, read and update rows of the tables."""
    settings = service.settings(WEBHOOK_SECRETS=[SECRET])
    added = added_to_every_table("varchar(8) DEFAULT 'new' NOT NULL")
    with added, override_settings(DJANGO_IDENTITY=settings):
        sign_in(Client())
        identity = LinkedIdentity.objects.get()
        assert post(event_body("kyc.verified")).status_code == 200
        LinkedIdentity.objects.update(refetch_due_at=timezone.now())
        assert upkeep.run()[1] == {"stored": 1}
        spent = {"code_digest": "0", "expires_at": identity.created_at}
        ConnectRedemption.objects.create(**spent)
        for model in TABLES:
            if model is not ErasureReceipt:
                assert values_of(model) == {"new"}, model
        assert post(event_body("data.deletion_requested")).status_code == 200
        pending_erasures.retry()
        assert not LinkedIdentity.objects.exists()
        assert values_of(ErasureReceipt) == {"new"}


def values_of(model: type[models.Model]) -> set[str]:
    return {*model._default_manager.values_list(RawSQL("added_later", ()), flat=True)}
