"""The one database of this package: where the site's router writes linked identities.

Every statement, transaction, lock and on-commit function of the package uses it, and every read on
which a gate, a session or a flow rests. A read replica may lag, and a revoked gate would be open.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar

from django.apps import apps
from django.contrib.auth import get_user_model
from django.db import (
    IntegrityError,
    InterfaceError,
    OperationalError,
    connections,
    models,
    router,
    transaction,
)
from django.db.backends.base.base import BaseDatabaseWrapper

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser

View = TypeVar("View", bound=Callable[..., Any])
Row = TypeVar("Row", bound=models.Model, covariant=True)
T = TypeVar("T")

#: A rollback would make a spent code new again, or lose an event that meets a sign-in.
IN_STEPS = (
    "django_identity commits in steps, and something has opened a transaction around this request,"
    " such as a middleware: leave out its addresses. ATOMIC_REQUESTS leaves them out by itself."
)
#: What drivers raise for a connection that has broken. Which one depends on driver and moment.
BROKEN = (OperationalError, InterfaceError)

#: Codes of the same classes for a statement that is itself at fault. SQLite: a table or column is
#: missing. MySQL: a column is missing, has no default, or cannot hold the value.
BAD_STATEMENT = ("SQLITE_ERROR", 1054, 1364, 1366)


class Misused(RuntimeError, ValueError):
    """A call that a developer has to mend. The message is of this package alone."""


def alias() -> str:
    """The database's name in ``DATABASES``."""
    return router.db_for_write(_identities())


def connection() -> BaseDatabaseWrapper:
    return connections[alias()]


@contextmanager
def atomic() -> Iterator[None]:
    """A transaction, or a savepoint. It raises an error where Django would roll back silently.

    Django does so after a receiver of the site has caught an error of the database by itself.
    """
    with transaction.atomic(using=alias()):
        yield
        connection().validate_no_broken_transaction()


def require_no_transaction(message: str) -> None:
    """Raise ``Misused`` with ``message`` inside a transaction.

    The transaction that Django's ``TestCase`` opens around a test is left out. Only Django can tell
    it from others: a durable block raises in every transaction but that one.
    """
    if connection().get_autocommit():
        return
    if connection().in_atomic_block:
        # Without a savepoint, which would be two statements in each test.
        block = transaction.atomic(using=alias(), durable=True, savepoint=False)
        try:
            with block:
                return
        except RuntimeError:
            raise Misused(message) from None
    raise Misused(f"Autocommit is off. {message}")


def on_commit(function: Callable[[], object]) -> None:
    """Call ``function`` when the current transaction has committed. Its errors are only logged."""
    transaction.on_commit(function, using=alias(), robust=True)


@contextmanager
def checked_references(*models: type[models.Model]) -> Iterator[None]:
    """Raise now the commit's error of PostgreSQL and SQLite: a row points at a deleted one.

    ``models``: of which rows are deleted. What others have left before the block does not count.
    """
    before = _dangling(models)
    yield
    if _dangling(models) - before:
        raise IntegrityError("a row points at one that is gone")
    if connection().vendor == "postgresql":
        connection().check_constraints()


def _dangling(deleted: Iterable[type[models.Model]]) -> set[tuple[Any, ...]]:
    """SQLite's rows with a dangling key to these models, also those of its own shell.

    Other databases refuse such a key when it is written.
    """
    if connection().vendor != "sqlite":
        return set()
    ours = [model._meta.db_table for model in deleted]
    places = ", ".join("%s" for _ in ours)
    keys = "sqlite_master m JOIN pragma_foreign_key_list(m.name) f"
    pointing = f'SELECT DISTINCT m.name FROM {keys} ON f."table" IN ({places})'  # noqa: S608
    found: set[tuple[Any, ...]] = set()
    with connection().cursor() as cursor:
        cursor.execute(pointing, ours)
        for (table,) in cursor.fetchall():
            name = connection().ops.quote_name(table)
            cursor.execute(f"PRAGMA foreign_key_check({name})")
            found.update(cursor.fetchall())
    return found


def reconnect() -> None:
    """Close the connection if it has broken, so that the next statement opens a new one.

    Django does so only between two requests. A transaction that is open keeps its connection,
    because its statements are lost together with it.
    """
    current = connection()
    if not current.in_atomic_block:
        current.close_if_unusable_or_obsolete()


def tried_again(work: Callable[[], T]) -> T:
    """Do ``work``, outside a transaction. If the connection has broken, it is done once more.

    Connections that are idle, as in a call of ten seconds to the service, may be ended by a pooler
    or a restart of the server. A deadlock ends a transaction, too: another one, perhaps of the
    site's own code, has taken the same rows in another order.
    """
    try:
        return work()
    except BROKEN:
        # In a transaction of the site's, all of it is lost.
        if connection().needs_rollback:
            raise
        reconnect()
    return work()


def is_broken(error: Exception) -> bool:
    """Whether ``error`` says that the database does not answer, or has ended the transaction."""
    return isinstance(error, BROKEN) and _code_of(error) not in BAD_STATEMENT


def name_of(error: Exception) -> str:
    """The class of a database's error and the database's own code, such as ``40P01``, for logs.

    Its message is left out: it may have values of a row.
    """
    return f"{type(error).__name__} {_code_of(error) or ''}".rstrip()


def _code_of(error: Exception) -> str | int | None:
    # First MySQL's own number: some of its drivers have a state too, one for many errors.
    if error.args and isinstance(error.args[0], int):
        return error.args[0]
    cause = error.__cause__
    code: str | None = getattr(cause, "sqlstate", None)
    if not code:
        code = getattr(cause, "sqlite_errorname", None)
    return code


def conflict_columns(*names: str) -> list[str] | None:
    """The columns whose conflict makes ``bulk_create`` update a row; None on MySQL."""
    takes_them = connection().features.supports_update_conflicts_with_target
    if not takes_them:
        return None
    return list(names)


def users() -> models.QuerySet[Any]:
    """The site's users, read where they are written."""
    return get_user_model()._default_manager.using(alias())


def all_users() -> models.QuerySet[Any]:
    """The site's users, including those whom its managers hide."""
    # By no manager: a site may have made its own the base manager, too.
    return models.QuerySet(get_user_model(), using=alias())


def is_account(person: object) -> TypeGuard["AbstractBaseUser"]:
    """Whether it is an instance of the site's user model.

    A subclass with a key of its own is refused: that key may be another account's.
    """
    model = get_user_model()
    if not isinstance(person, model):
        return False
    return bool(person.pk == getattr(person, model._meta.pk.attname))


def require_account(person: object) -> None:
    """Raise ``Misused`` unless it is a stored account of this database, and its key its own."""
    if not is_account(person) or person.pk is None or not is_of_our_database(person):
        raise Misused("not an instance of the user model from this database")


def account(key: Any) -> "AbstractBaseUser":
    """The account as it is stored now, or an instance with the key alone if it is gone."""
    stored: AbstractBaseUser | None = all_users().filter(pk=key).first()
    return stored or get_user_model()(pk=key)


def locked_account(key: Any) -> "AbstractBaseUser | None":
    """The account, locked, or None if it is gone."""
    found = all_users().select_for_update().filter(pk=key)
    return found.first()


def key_text(key: Any) -> str:
    """The key of an account as text, the same in each form that the user model reads."""
    return str(get_user_model()._meta.pk.to_python(key))


def key_of(text: str | None) -> Any:
    """The key of an account from its text, or None."""
    return get_user_model()._meta.pk.to_python(text)


def email_of(user: "AbstractBaseUser") -> str:
    """The e-mail address of the account, or an empty text."""
    return getattr(user, user.get_email_field_name(), "") or ""


def read_again(user: "AbstractBaseUser") -> None:
    """Give the instance the columns of the account as it is stored now, or empty ones."""
    stored = account(user.pk)
    for column in stored._meta.concrete_fields:
        setattr(user, column.attname, getattr(stored, column.attname))


def field_names(model: models.Model | type[models.Model]) -> set[str]:
    """The names of its columns. The site's user model may lack some that Django's own has."""
    return {field.name for field in model._meta.concrete_fields}


def non_atomic(view: View) -> View:
    """Run ``view`` outside ``ATOMIC_REQUESTS`` of every database."""
    for name in connections:
        view = transaction.non_atomic_requests(using=name)(view)
    return view


def is_of_our_database(row: models.Model) -> bool:
    """Whether ``row`` was read from this database, or from a replica of it.

    The key of a row of another database may be somebody else's here.
    """
    read_from = row._state.db
    here = alias()
    if read_from in (None, here):
        return True
    # ``__class__``: a request's user is a lazy object.
    if read_from == router.db_for_read(row.__class__):
        return True
    identity = _identities()()
    identity._state.db = here
    return router.allow_relation(row, identity)


@cache
def _identities() -> type[models.Model]:
    return apps.get_model("django_identity", "LinkedIdentity")


class Manager(models.Manager[Row]):
    """Reads from this database, too, unless a caller names another one."""

    def get_queryset(self) -> models.QuerySet[Row]:
        return super().get_queryset().using(self._db or alias())
