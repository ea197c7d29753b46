"""Statements that the database refuses in a test."""

from django.db import OperationalError, connection


def refused(verb, *words, error=OperationalError, after=0):
    """Those that begin so and have these words raise the error, but for the first ones."""
    sent = []

    def execute(run, sql, *rest):
        if sql.startswith(verb) and all(word in sql for word in words):
            sent.append(sql)
            if len(sent) > after:
                raise error("about subject-1")
        return run(sql, *rest)

    return connection.execute_wrapper(execute)
