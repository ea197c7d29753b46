"""Whether the site's own parts work: settings, database, migrations, broker and cache.

``is_ready`` is the one query of the health check.
"""

import secrets
from collections.abc import Iterator
from datetime import UTC, datetime

from django.conf import settings
from django.core.cache import cache
from django.core.checks import Tags, run_checks
from django.db import DatabaseError, InterfaceError, OperationalError
from django.db.migrations.executor import MigrationExecutor

from django_identity import background, conf, database
from django_identity.lifecycle.operators.doctor.findings import Finding, Level, failure_of
from django_identity.lifecycle.operators.doctor.service_checks import compare_clocks
from django_identity.models import LinkedIdentity

LABEL = "django_identity"
OF_ONE_PROCESS = ("locmem.LocMemCache", "dummy.DummyCache")


def check_settings() -> Iterator[Finding]:
    """The package's system checks."""
    found = [
        message
        for message in run_checks(tags=[Tags.security])
        if str(message.id or "").startswith(f"{LABEL}.")
    ]
    for message in found:
        level = Level.PROBLEM if message.is_serious() else Level.WARNING
        yield Finding("settings", level, f"{message.id}: {message.msg}", message.hint or "")
    if not found:
        yield Finding("settings", Level.FINE, f"{len(conf.aliases())} application(s) set up")


def check_broker() -> Iterator[Finding]:
    if not background.has_broker():
        said = "none is configured: cron has to run identity_upkeep every minute"
        yield Finding("broker", Level.WARNING, said)
    elif failure := failure_of(background.ask_broker):
        remedy = "Start it or correct CELERY_BROKER_URL. Until then sweeps publish nothing."
        yield Finding("broker", Level.PROBLEM, f"it does not answer ({failure})", remedy)
    else:
        yield Finding("broker", Level.FINE, "it answers")


def check_cache() -> Iterator[Finding]:
    backend = settings.CACHES["default"]["BACKEND"]
    if backend.endswith(OF_ONE_PROCESS):
        said = "each process has its own cache, so processes do not share RATE_LIMIT"
        yield Finding("cache", Level.WARNING, said, "Use Redis, Memcached or the database.")
    elif failure := failure_of(_use_cache):
        remedy = "Start it or correct CACHES. Until then RATE_LIMIT and pauses do not hold."
        yield Finding("cache", Level.PROBLEM, f"it does not answer ({failure})", remedy)
    else:
        yield Finding("cache", Level.FINE, "shared")


def _use_cache() -> None:
    name, value = f"{LABEL}.doctor", secrets.token_hex(8)
    cache.set(name, value, timeout=10)
    if cache.get(name) != value:
        raise LookupError
    cache.delete(name)


def check_database() -> Iterator[Finding]:
    """Migrations, writes and the clock. Raises ``DatabaseError`` if it does not answer."""
    executor = MigrationExecutor(database.connection())
    leaves = [leaf for leaf in executor.loader.graph.leaf_nodes() if leaf[0] == LABEL]
    missing = executor.migration_plan(leaves)
    if missing:
        said = f"{len(missing)} migration(s) are not applied, the first is {missing[0][0].name}"
        yield Finding("migrations", Level.PROBLEM, said, "Run manage.py migrate.")
    try:
        with database.atomic():
            _write_nothing()
    except DatabaseError as error:
        if not missing:
            said = f"it takes no writes ({type(error).__name__})"
            remedy = "It is read-only, or a replica: name the primary in DATABASES."
            yield Finding("database", Level.PROBLEM, said, remedy)
    yield from compare_clocks("the database", _database_now())


def _database_now() -> datetime:
    connection = database.connection()
    function = "UTC_TIMESTAMP()" if connection.vendor == "mysql" else "CURRENT_TIMESTAMP"
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {function}")
        (given,) = cursor.fetchone()
    moment = given if isinstance(given, datetime) else datetime.fromisoformat(given)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def is_ready() -> bool:
    """Whether the settings are usable, and the database has the tables and takes writes.

    If the connection was cut, it tries once on a new connection.
    """
    if any(problem.fatal for problem in conf.problems()):
        return False
    connection = database.connection()
    for is_new_connection in (False, True):
        try:
            _write_nothing()
        except (OperationalError, InterfaceError):
            if is_new_connection or connection.in_atomic_block:
                return False
            connection.close()
        except DatabaseError:
            return False
        else:
            return True
    return False


def _write_nothing() -> None:
    """An UPDATE of no row. Without the table, or if the database is read-only, it fails."""
    LinkedIdentity.objects.filter(pk=-1).update(last_error="")
