"""Statements that the database refuses in a test."""

from django.db import OperationalError, connection


def refused(
    verb="",
    *words,
    error=OperationalError,
    after=0,
    times=1_000,
    when=lambda: True,
):
    """Those that begin so and have these words raise the error, after the first, so many times.

    Once ``when`` holds.
    """
    sent = []

    def execute(run, sql, *rest):
        if when() and sql.startswith(verb) and all(word in sql for word in words):
            sent.append(sql)
            if after < len(sent) <= after + times:
                raise error("about subject-1")
        return run(sql, *rest)

    return connection.execute_wrapper(execute)
