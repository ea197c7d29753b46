"""Whether the site's own parts work: settings, database, migrations, broker and cache."""

import secrets
from collections.abc import Callable, Iterator

from django.core.cache import cache
from django.core.checks import Tags, run_checks
from django.db import DatabaseError
from django.db.migrations.executor import MigrationExecutor

from django_identity import background, conf, database
from django_identity.lifecycle.operators.doctor.finding import Finding, Level
from django_identity.models import LinkedIdentity

LABEL = "django_identity"


def check_settings() -> Iterator[Finding]:
    """The package's system checks."""
    found = list(_system_checks("settings", Tags.security))
    yield from found
    if not found:
        yield Finding("settings", Level.FINE, f"{len(conf.aliases())} application(s) set up")


def _system_checks(check: str, tag: str) -> Iterator[Finding]:
    """What the package's system checks with this tag report."""
    for each in run_checks(tags=[tag], databases=[database.alias()]):
        if f"{LABEL}." in str(each.id):
            level = Level.PROBLEM if each.is_serious() else Level.WARNING
            yield Finding(check, level, f"{each.id}: {each.msg}", each.hint or "")


def check_broker() -> Iterator[Finding]:
    if background.is_eager():
        said = "CELERY_TASK_ALWAYS_EAGER is on: tasks run inside requests, and upkeep by cron alone"
        remedy = "Start a worker and beat with a broker, except in development and tests."
        yield Finding("broker", Level.WARNING, said, remedy)
    elif not background.is_broker_shared():
        said = "memory:// reaches no other process: no worker hears of an event"
        yield Finding("broker", Level.WARNING, said, "Set CELERY_BROKER_URL to a real broker.")
    elif background.has_broker():
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
    """Migrations, text and writes. Raises ``DatabaseError`` if it does not answer."""
    if missing := _missing_migrations():
        said = f"{len(missing)} migration(s) are not applied, the first is {missing[0]}"
        yield Finding("migrations", Level.PROBLEM, said, "Run manage.py migrate.")
    yield from _system_checks("database", Tags.database)
    try:
        with database.atomic():
            # Without the table, or if the database is read-only, an UPDATE of no row fails.
            LinkedIdentity.objects.filter(pk=-1).update(last_error="")
    except DatabaseError as error:
        if not missing:
            said = f"it takes no writes ({type(error).__name__})"
            remedy = "It is read-only, or a replica: name the primary in DATABASES."
            yield Finding("database", Level.PROBLEM, said, remedy)


def _missing_migrations() -> list[str]:
    """The migrations of this package that are not applied, in their order."""
    executor = MigrationExecutor(database.connection())
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes(LABEL))
    return [migration.name for migration, _ in plan]
