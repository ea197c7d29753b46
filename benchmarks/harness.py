"""What the benchmarks share: contenders in turn, an empty database, rows by the million."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from statistics import median
from typing import Any

from django.db import connection, connections, models
from django.test.utils import CaptureQueriesContext

BOUNDARIES = ("BEGIN", "COMMIT", "SAVEPOINT", "RELEASE")
#: What one benchmark found: a name with its unit, and the figure.
Figures = dict[str, float]


def seconds_of(
    contenders: Mapping[str, Callable[[], object]],
    *,
    rounds: int,
) -> Figures:
    """The median seconds of one call of each contender, called in turn ``rounds`` times."""
    taken: dict[str, list[float]] = {name: [] for name in contenders}
    for contender in contenders.values():
        contender()
    for _ in range(rounds):
        for name, contender in contenders.items():
            started = time.perf_counter()
            contender()
            taken[name].append(time.perf_counter() - started)
    return {name: median(seconds) for name, seconds in taken.items()}


def statements_of(work: Callable[[], object]) -> float:
    """How many statements it sends, without those that begin and end transactions."""
    with CaptureQueriesContext(connection) as captured:
        work()
    return float(sum(not each["sql"].startswith(BOUNDARIES) for each in captured))


@contextmanager
def fresh_database(*, postgresql: bool = True) -> Iterator[None]:
    """Empty tables, on whatever ``DATABASE_URL`` names; dropped at the end."""
    if postgresql and connection.vendor != "postgresql":
        raise SystemExit("set DATABASE_URL to a PostgreSQL")
    name = connection.settings_dict["NAME"]
    made = connection.creation.create_test_db(
        verbosity=0,
        autoclobber=True,
        serialize=False,
    )
    try:
        yield
    finally:
        connections.close_all()
        connection.settings_dict["NAME"] = made
        connection.creation.destroy_test_db(name, verbosity=0)


def fill(model: type[models.Model], given: Mapping[str, str], *, rows: int) -> None:
    """Rows made by PostgreSQL. ``given``: column -> SQL, ``n`` being the number of the row."""
    values = {
        field.column: given.get(field.column) or _plainest(field)
        for field in model._meta.concrete_fields
        if not field.primary_key
    }
    columns = ", ".join(f'"{column}"' for column in values)
    with connection.cursor() as cursor:
        cursor.execute(
            f'INSERT INTO "{model._meta.db_table}" ({columns}) '
            f"SELECT {', '.join(values.values())} FROM generate_series(1, {rows}) n",
        )


def _plainest(field: models.Field[Any, Any]) -> str:
    """What a column holds that no figure looks at."""
    if field.null:
        return "NULL"
    if isinstance(field, models.DateTimeField):
        return "now()"
    if isinstance(field, models.BooleanField):
        return "true" if field.name == "is_active" else "false"
    if isinstance(field, models.JSONField):
        return "'[]'::jsonb"
    return "1" if isinstance(field, models.IntegerField) else "''"
