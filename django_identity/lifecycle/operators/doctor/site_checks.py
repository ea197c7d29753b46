"""Whether the site's own parts work: settings, database, migrations, broker and cache.

``is_ready`` is the one query of the health check.
"""

import secrets
from collections.abc import Callable, Iterator

from django.core.cache import cache
from django.core.checks import Tags, run_checks
from django.db import DatabaseError, InterfaceError
from django.db.migrations.executor import MigrationExecutor

from django_identity import background, conf, database
from django_identity.lifecycle.operators.doctor.finding import Finding, Level
from django_identity.models import LinkedIdentity

LABEL = "django_identity"

_migrated: set[str] = set()


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
    if background.has_broker():
        remedy = "Start it or correct CELERY_BROKER_URL. Until then upkeep publishes nothing."
        yield _try("broker", background.ask_broker, remedy)
    else:
        said = "none is configured: cron has to run identity_upkeep every minute"
        yield Finding("broker", Level.WARNING, said)


def check_cache() -> Iterator[Finding]:
    remedy = "Start it or correct CACHES. Until then each worker calls a service that is busy."
    yield _try("cache", _use_cache, remedy)


def _try(check: str, work: Callable[[], object], remedy: str) -> Finding:
    try:
        work()
    except ImportError as error:
        said = f"a module is missing: {error}"
        return Finding(check, Level.PROBLEM, said, "Install it, or correct the address's scheme.")
    except Exception as error:  # noqa: BLE001  any client's own errors
        said = f"it does not answer ({type(error).__name__})"
        return Finding(check, Level.PROBLEM, said, remedy)
    return Finding(check, Level.FINE, "it answers")


def _use_cache() -> None:
    name, value = f"{LABEL}.doctor", secrets.token_hex(8)
    cache.set(name, value, timeout=10)
    if cache.get(name) != value:
        raise LookupError
    cache.delete(name)


def check_database() -> Iterator[Finding]:
    """Migrations and writes. Raises ``DatabaseError`` if it does not answer."""
    if missing := _missing_migrations():
        said = f"{len(missing)} migration(s) are not applied, the first is {missing[0]}"
        yield Finding("migrations", Level.PROBLEM, said, "Run manage.py migrate.")
    try:
        with database.atomic():
            _write_nothing()
    except DatabaseError as error:
        if not missing:
            said = f"it takes no writes ({type(error).__name__})"
            remedy = "It is read-only, or a replica: name the primary in DATABASES."
            yield Finding("database", Level.PROBLEM, said, remedy)


def is_ready() -> bool:
    """Whether the settings are usable, and the database is migrated and takes writes.

    New code is not ready before the migrations that it needs, so "migrate, then deploy" is safe.
    A connection that was cut costs one answer: Django opens a new one for the next request.
    """
    if any(problem.fatal for problem in conf.problems()):
        return False
    try:
        _write_nothing()
        return _is_migrated()
    except (DatabaseError, InterfaceError):
        return False


def _is_migrated() -> bool:
    """Remembered once it is true: tables do not change back under a process."""
    if database.alias() not in _migrated and not _missing_migrations():
        _migrated.add(database.alias())
    return database.alias() in _migrated


def _missing_migrations() -> list[str]:
    """The migrations of this package that are not applied, in their order."""
    executor = MigrationExecutor(database.connection())
    leaves = [leaf for leaf in executor.loader.graph.leaf_nodes() if leaf[0] == LABEL]
    return [migration.name for migration, _ in executor.migration_plan(leaves)]


def _write_nothing() -> None:
    """An UPDATE of no row. Without the table, or if the database is read-only, it fails."""
    LinkedIdentity.objects.filter(pk=-1).update(last_error="")
