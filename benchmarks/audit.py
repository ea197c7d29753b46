"""Seconds to look through a million rows in fifty tables for one person, on PostgreSQL."""

import resource
import time

from django.db import connection, models

from benchmarks.harness import Figures, fresh_database
from django_identity.instruments import audit
from tests.factories import make_identity, make_user

TABLES, ROWS = 50, 20_000
FILL = """
    INSERT INTO {table} (title, text, data, blob)
    SELECT 'title ' || i, repeat(md5(i::text), 10), jsonb_build_object('name', md5(i::text)),
           decode(md5(i::text), 'hex')
    FROM generate_series(1, %s) i
"""


def table(number: int) -> type[models.Model]:
    columns = {
        "title": models.CharField(max_length=100),
        "text": models.TextField(),
        "data": models.JSONField(),
        "blob": models.BinaryField(),
    }
    return type(
        f"Table{number}",
        (models.Model,),
        {"__module__": "tests.leaky.models", **columns},
    )


def run() -> Figures:
    tables = [table(number) for number in range(TABLES)]
    with fresh_database():
        with connection.cursor() as cursor:
            for each in tables:
                cursor.execute(FILL.format(table=each._meta.db_table), [ROWS])
            cursor.execute("ANALYZE")
        user = make_user(
            "zoe",
            first_name="Zoë",
            last_name="Lovelace",
            email="zoe@example.org",
        )
        known = audit.known_of_subject(make_identity(user).subject)
        user.delete()
        held, started = megabytes(), time.perf_counter()
        assert audit.search(known).hits == {}
        seconds = time.perf_counter() - started
    return {"seconds": seconds, "megabytes_more": megabytes() - held}


def megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
