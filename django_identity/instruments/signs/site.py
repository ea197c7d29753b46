"""Whether the site's own parts work: settings, database, migrations, broker and cache."""

from collections.abc import Callable

from django.apps import apps
from django.core.cache import cache
from django.core.checks import Tags, run_checks
from django.db import DatabaseError, models
from django.db.migrations.executor import MigrationExecutor

from django_identity import background, conf, database
from django_identity.instruments.signs.finding import (
    Diagnosis,
    Finding,
    Severity,
    fine,
    problem,
    warning,
)
from django_identity.models import LinkedIdentity

LABEL = "django_identity"
#: As PostgreSQL, SQLite, MySQL and MariaDB say it.
DISK_FULL = ("53100", "SQLITE_FULL", "1021", "1114")


def check_settings() -> Diagnosis:
    """The package's system checks."""
    found = list(_system_checks("settings", Tags.security))
    yield from found
    if not found:
        yield fine("settings", "no system check has anything to say")


def _system_checks(check: str, tag: str) -> Diagnosis:
    """What the package's system checks with this tag report."""
    for message in run_checks(tags=[tag], databases=[database.alias()]):
        # Without usable settings nothing else is diagnosed, so their mistakes are not silent.
        is_silenced = message.is_silenced() and conf.is_usable()
        is_ours = f"{LABEL}." in str(message.id)
        if is_silenced or not is_ours:
            continue
        level = Severity.WARNING
        if message.is_serious():
            level = Severity.PROBLEM
        text = f"{message.id}: {message.msg}"
        yield Finding(check, level, text, message.hint or "")


def check_broker() -> Finding:
    """Whether the broker answers, and what a missing one means."""
    if background.is_eager():
        return warning(
            "broker",
            "CELERY_TASK_ALWAYS_EAGER is on: tasks run inside requests, upkeep by cron",
            "Start a worker and beat with a broker, except in development and tests.",
        )
    if not background.has_broker():
        return warning(
            "broker",
            "none is configured in this process: cron has to run identity_upkeep every minute",
        )
    return _try(
        "broker",
        background.ask_broker,
        "Start it, install its client, such as celery[redis], or correct CELERY_BROKER_URL. "
        "Until then upkeep publishes nothing.",
    )


def check_cache() -> Finding:
    """Whether the cache answers, and keeps what it is given."""
    remedy = "Start it or correct CACHES. Until then the overview in the admin does not open."
    kept: list[object] = []
    found = _try("cache", lambda: kept.append(_through_cache()), remedy)
    if kept == [None]:
        return warning(
            "cache",
            "it keeps nothing: the overview counts anew at each look",
            "Correct CACHES. Its client may hide errors.",
        )
    return found


def _try(check: str, work: Callable[[], object], remedy: str) -> Finding:
    try:
        work()
    except ImportError as error:
        return problem(
            check,
            f"a module is missing: {error}",
            "Install it, or correct the address's scheme.",
        )
    except Exception as error:  # noqa: BLE001  any client's own errors
        message = f"it does not answer ({type(error).__name__})"
        return problem(check, message, remedy)
    return fine(check, "it answers")


def _through_cache() -> object:
    name = f"{LABEL}.doctor"
    cache.set(name, True, timeout=10)
    kept: object = cache.get(name)
    cache.delete(name)
    return kept


def check_database() -> Diagnosis:
    """Migrations, tables and writes. Raises ``Error`` if it is away."""
    missing = _missing_migrations()
    if missing:
        message = (
            f"{len(missing)} migration(s) are not applied, the first is {missing[0]}"
        )
        yield problem("migrations", message, "Run manage.py migrate.")
        return  # Whatever else is wrong, this is the cause.

    tables = _broken_tables()
    if tables:
        yield problem(
            "database",
            f"these tables are missing or lack columns: {', '.join(tables)}",
            "Restore them from the backup. If django_migrations is not of this database: make its"
            " rows fit, and run manage.py migrate.",
        )
        return

    try:
        with database.atomic():
            # If the database is read-only, an UPDATE of no row fails.
            LinkedIdentity.objects.filter(pk=-1).update(last_error="")
    except DatabaseError as error:
        name = database.name_of(error)
        remedy = "It is read-only, or a replica: name the primary in DATABASES."
        if name.endswith(DISK_FULL):
            remedy = "Its disk is full: make room. Until then nothing is stored."
        yield problem("database", f"it takes no writes ({name})", remedy)
        return
    if _waits_without_end():
        yield warning(
            "database",
            "lock_timeout is 0: a revocation waits for a lock without end",
            "Set it on the role (ALTER ROLE … SET lock_timeout), as going-live.md says.",
        )


def _waits_without_end() -> bool:
    """Whether PostgreSQL waits for locks for ever. The server is asked: a pooler drops options."""
    if database.connection().vendor != "postgresql":
        return False
    with database.connection().cursor() as cursor:
        cursor.execute("SHOW lock_timeout")
        (value,) = cursor.fetchone()
    return bool(value == "0")


def check_texts() -> Diagnosis:
    """Whether the database stores all characters. All else can be found in it all the same."""
    yield from _system_checks("database", Tags.database)


def _missing_migrations() -> list[str]:
    """The open migrations of this package, in their order."""
    executor = MigrationExecutor(database.connection())
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes(LABEL))
    return [migration.name for migration, _ in plan]


def _broken_tables() -> list[str]:
    """The tables of this package that are missing, or lack a column, though migrations ran."""
    models_of_ours = apps.get_app_config(LABEL).get_models()
    return [each._meta.db_table for each in models_of_ours if not _has_columns(each)]


def _has_columns(model: type[models.Model]) -> bool:
    """Whether the table has all columns of the model: PostgreSQL and MySQL name no others."""
    try:
        list(model._default_manager.values()[:1])
    except DatabaseError:
        return False
    return True
