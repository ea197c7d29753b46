"""PostgreSQL keeps a quarter of each page of linked identities free.

Handing out due rows writes columns that no index holds. Such an update touches no index as long as
the page has room for the new version (a "heap-only tuple"); the largest row is a quarter of a page.
"""

from __future__ import annotations

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps


def leave_room(apps: StateApps, editor: BaseDatabaseSchemaEditor) -> None:
    _set(apps, editor, "SET (fillfactor = 75)")


def fill_up(apps: StateApps, editor: BaseDatabaseSchemaEditor) -> None:
    _set(apps, editor, "RESET (fillfactor)")


def _set(apps: StateApps, editor: BaseDatabaseSchemaEditor, what: str) -> None:
    if editor.connection.vendor != "postgresql":
        return
    table = apps.get_model("django_identity", "LinkedIdentity")._meta.db_table
    editor.execute(f"ALTER TABLE {editor.quote_name(table)} {what}")


class Migration(migrations.Migration):
    dependencies = (("django_identity", "0001_initial"),)
    operations = (migrations.RunPython(leave_room, fill_up),)
