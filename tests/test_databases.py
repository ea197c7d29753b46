"""One database for everything, whatever the site's router answers, that can hold people's names."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.apps import apps
from django.core.checks import Tags, run_checks
from django.core.management import call_command
from django.core.management.base import SystemCheckError
from django.db import connection, connections
from django.test import override_settings

from django_identity import database
from django_identity.checks import charset
from django_identity.gates import claims_of
from django_identity.instruments.signs import diagnose
from django_identity.models import StoredClaim, TokenGrant
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


@pytest.fixture
def _replica(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(
        connections.settings,
        "replica",
        connections.settings["default"],
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
    [
        ("default", "", True),
        ("archive", "", False),
        ("replica", "_replica", True),
        ("archive", "_replica", False),
    ],
)
def test_a_user_of_another_database_is_nobody_here(request, read_from, router, is_open):
    """The key of a user of another database is somebody else's; a replica's users are ours."""
    if router:
        request.getfixturevalue(router)
    user = make_user()
    build_identity(user)
    user._state.db = read_from
    assert bool(claims_of(user)) is is_open


# Characters of people's names

only_mysql = pytest.mark.skipif(
    connection.vendor != "mysql",
    reason="MySQL's and MariaDB's own",
)


def says_so() -> list[str]:
    found = run_checks(tags=[Tags.database], databases=["default"])
    return [each.msg for each in found if each.id == "django_identity.E072"]


def convert(name: str) -> None:
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            if table.startswith(("django_identity_", "auth_user")):
                quoted = connection.ops.quote_name(table)
                cursor.execute(f"ALTER TABLE {quoted} CONVERT TO CHARACTER SET {name}")


@pytest.fixture
def old_tables(transactional_db: None) -> Iterator[None]:
    """As they are in a database of MySQL 5 that was never converted."""
    convert("utf8mb3")
    yield
    convert("utf8mb4")


@only_mysql
def test_a_database_of_utf8mb3_is_an_error(old_tables):
    """The check says what to do, and so does the doctor; ``migrate`` stops."""
    (message,) = says_so()
    assert "utf8mb3" in message
    assert any("utf8mb3" in each.message for each in diagnose())
    with pytest.raises(SystemCheckError, match="utf8mb3"):
        call_command("migrate", verbosity=0, skip_checks=False)


@pytest.mark.django_db
def test_migrate_stops_at_a_database_that_lacks_characters(monkeypatch):
    """Before anything is written. A complete one needs nothing."""
    assert says_so() == []
    monkeypatch.setattr(charset, "lacking", lambda: "latin1")
    with pytest.raises(SystemCheckError, match=r"E072.*latin1"):
        call_command("migrate", verbosity=0, skip_checks=False)
