"""The sandbox's schema, made straight from the models.

Running every migration of Django and django-oauth-toolkit takes seconds; the sandbox has no past
to migrate from, so it creates the tables as they are today.
"""

from django.apps import apps
from django.db import connection


class SchemaMismatch(Exception):
    """The database file was made by another version of the sandbox."""


def create_schema() -> None:
    """Create all tables in an empty database; leave a complete one alone.

    Raises:
        SchemaMismatch: some tables or columns exist and others do not.
    """
    present = set(connection.introspection.table_names())
    if not present:
        with connection.schema_editor() as editor:
            for model in apps.get_models():
                editor.create_model(model)
        return
    for model in apps.get_models():
        table = model._meta.db_table
        expected = {field.column for field in model._meta.local_concrete_fields}
        if table not in present or expected - _columns(table):
            raise SchemaMismatch(table)


def _columns(table: str) -> set[str]:
    with connection.cursor() as cursor:
        columns = connection.introspection.get_table_description(cursor, table)
    return {column.name for column in columns}
