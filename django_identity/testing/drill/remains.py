"""What an erasure left where no model reads: other tables, caches and files."""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from django.apps import apps
from django.conf import settings
from django.core.cache.backends import locmem
from django.db import connections

from django_identity.instruments import audit
from django_identity.testing.drill.report import Report


def search(known: audit.Known, report: Report) -> None:
    """Find what is left of somebody, in these places and in those of an audit."""
    places = chain(_tables(), _caches(), _files())
    remains = audit.search(known, further=places)
    report.untried |= remains.unread
    for place in remains.hits:
        report.find(f"`{place}` still has something of an erased person")
    for place in remains.unsure:
        report.unsure[place] = "it has a word of the person that others have, too"


def _tables() -> Iterator[tuple[str, str]]:
    known = {
        model._meta.db_table for model in apps.get_models(include_auto_created=True)
    }
    for connection in connections.all():
        with connection.cursor() as cursor:
            for name in connection.introspection.table_names(cursor):
                if name not in known:
                    quoted = connection.ops.quote_name(name)
                    # The database has named it, and it is the drill's.
                    cursor.execute(f"SELECT * FROM {quoted}")  # noqa: S608
                    yield f"{connection.alias}.{name}", str(cursor.fetchall())


def _caches() -> Iterator[tuple[str, str]]:
    """What is in memory, of all caches: the drill has made them so."""
    # No cache lists what it has.
    for name, entries in vars(locmem)["_caches"].items():
        for key, value in entries.items():
            yield f"CACHES.{name}", f"{key} {value.decode(errors='ignore')}"


def _files() -> Iterator[tuple[str, str]]:
    media = Path(settings.MEDIA_ROOT)
    for path in filter(Path.is_file, media.rglob("*")):
        place = f"MEDIA/{path.relative_to(media)}"
        yield place, f"{place} {path.read_bytes().decode(errors='ignore')}"
