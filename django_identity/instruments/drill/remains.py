"""What an erasure left where no model reads: other tables, caches and files."""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from django.apps import apps
from django.conf import settings
from django.core.cache.backends.locmem import LocMemCache
from django.db import connections

from django_identity import database
from django_identity.instruments import audit
from django_identity.instruments.drill.report import Report


def search(user: Any, known: audit.Known, report: Report) -> None:
    """Find what is left of ``user``, in these places and in those of an audit."""
    remains = audit.search(known)
    report.untried |= remains.unread
    sought = {text.casefold() for text in known.texts | known.words}
    # What the account has now. Other accounts are other people's.
    stored = database.all_users().filter(pk=user.pk).values().first() or {}
    own = str(stored.values()).casefold()
    is_kept = any(form in own for form in sought)
    for place in (*remains.hits, *remains.unsure):
        is_namesake = place.startswith(f"{user._meta.label}.") and not is_kept
        if is_namesake or place in remains.unsure:
            report.doubt(f"`{place}` has a word of the person that others have, too")
        else:
            report.find(f"`{place}` still has something of an erased person")

    for place, content in chain(_tables(), _caches(), _files()):
        text = f"{place} {content}".casefold()
        if any(form in text for form in sought):
            report.find(f"`{place}` still has something of an erased person")
        elif place.startswith(MEDIA):
            report.doubt(f"`{place}` is there after an erasure")


MEDIA = "MEDIA/"


def _tables() -> Iterator[tuple[str, str]]:
    models = apps.get_models(include_auto_created=True)
    known = {model._meta.db_table for model in models}
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
    for name in (*settings.CACHES, "drill"):
        # No cache lists what it has.
        entries = vars(LocMemCache(name, {}))["_cache"]
        for key, value in entries.items():
            yield f"CACHES.{name}", f"{key} {value.decode(errors='ignore')}"


def _files() -> Iterator[tuple[str, str]]:
    media = Path(settings.MEDIA_ROOT)
    for path in media.rglob("*"):
        if path.is_file():
            content = path.read_bytes().decode(errors="ignore")
            yield f"{MEDIA}{path.relative_to(media)}", content
