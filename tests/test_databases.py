"""One database for everything, whatever the site's router answers for reads."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.core.checks import Tags, run_checks
from django.db import connections, models
from django.test import override_settings

from django_identity import database
from django_identity.gates import claims_of
from django_identity.models import LinkedIdentity, StoredClaim, TokenGrant
from django_identity.testing.build import build_identity
from tests.factories import make_user

OURS = list(apps.get_app_config("django_identity").get_models())


class ReadsElsewhere:
    """Reads from a replica, as in Django's documentation. It is not asked in these tests."""

    def db_for_read(self, model: Any, **_hints: Any) -> str:
        return "replica"

    def db_for_write(self, model: Any, **_hints: Any) -> str:
        return "default"

    def allow_relation(self, one: Any, other: Any, **_hints: Any) -> bool | None:
        pair = {one._state.db, other._state.db}
        return True if pair <= {"default", "replica"} else None


class Tears:
    """Sends one of our tables, or the users, elsewhere."""

    torn: type[models.Model] = LinkedIdentity

    def db_for_write(self, model: Any, **_hints: Any) -> str | None:
        return "elsewhere" if model is self.torn else None


@pytest.fixture
def _replica(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(
        connections.settings, "replica", connections.settings["default"]
    )
    with override_settings(DATABASE_ROUTERS=["tests.test_databases.ReadsElsewhere"]):
        yield


@pytest.mark.usefixtures("_replica")
@pytest.mark.parametrize("model", OURS, ids=lambda model: model.__name__)
def test_every_table_is_read_where_it_is_written(model):
    """A replica that lags answers nothing, whichever way a row is looked for."""
    assert model._default_manager.all().db == "default"
    assert model._base_manager.all().db == "default"
    assert model._default_manager.using("replica").all().db == "replica"
    assert model._default_manager.db_manager("replica").all().db == "replica"


@pytest.mark.usefixtures("_replica", "db")
def test_relations_are_read_where_they_are_written():
    user = make_user()
    identity = build_identity(user)
    assert identity.claims.all().db == "default"
    assert user.linked_identity == identity
    assert StoredClaim.objects.get(identity=identity).identity == identity
    assert not TokenGrant.objects.filter(identity=identity).exists()
    identity.refresh_from_db()
    assert database.users().get() == user
    assert {database.users().db, database.all_users().db} == {"default"}


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("read_from", "router", "is_open"),
    [("default", "", True), ("archive", "", False), ("replica", "_replica", True),
     ("archive", "_replica", False)],
)  # fmt: skip
def test_a_user_of_another_database_is_nobody_here(
    request, read_from, router, *, is_open
):
    """The key of a user of another database is somebody else's; a replica's users are ours."""
    if router:
        request.getfixturevalue(router)
    user = make_user()
    build_identity(user)
    user._state.db = read_from
    assert bool(claims_of(user)) is is_open


@pytest.mark.parametrize("torn", [StoredClaim, LinkedIdentity, User])
def test_a_router_that_tears_the_tables_is_an_error(monkeypatch, torn):
    """No transaction spans two databases, and no foreign key does."""

    def is_said() -> bool:
        found = run_checks(tags=[Tags.security])
        return "django_identity.E035" in [message.id for message in found]

    monkeypatch.setattr(Tears, "torn", torn)
    with override_settings(DATABASE_ROUTERS=["tests.test_databases.Tears"]):
        assert is_said()
    assert not is_said()
