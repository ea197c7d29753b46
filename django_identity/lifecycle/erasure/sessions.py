"""The sessions that the site keeps of a person, where they can be listed: in the database."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from datetime import datetime, timedelta
from importlib import import_module
from typing import Any

from django.conf import settings
from django.contrib.auth import SESSION_KEY, get_user_model
from django.contrib.sessions.backends.base import SessionBase
from django.contrib.sessions.backends.db import SessionStore
from django.contrib.sessions.base_session import AbstractBaseSession
from django.core import signing
from django.db import router
from django.db.models import QuerySet

BATCH = 1000


def keys_of(user_id: Any, *, saved_since: datetime | None = None) -> list[str]:
    """The keys of a user's sessions, however they began; a session is opened to see whose it is.

    ``saved_since``: only those that were begun or changed since, and last as long as the site's do.
    """
    store = _listable()
    if store is None or user_id is None:
        return []
    rows = _rows(store)
    if saved_since is not None:
        ends_at = saved_since + timedelta(seconds=settings.SESSION_COOKIE_AGE)
        rows = rows.filter(expire_date__gte=ends_at)
    whose = _named(user_id)
    opener = store()
    return [row.session_key for row in _each(rows) if _said(opener, row).get(SESSION_KEY) == whose]


def delete(keys: Collection[str]) -> int:
    """Delete what ``keys_of`` found, out of the cache as well if the site keeps them there too.

    Raises what a cache raises that does not answer: it would still know who they were.
    """
    store = _listable()
    if store is None:
        return 0
    for key in keys:
        # The store itself looks in what may be a replica, which does not know it yet.
        _rows(store).filter(session_key=key).delete()
        store(key).delete()
    return len(keys)


def _listable() -> type[SessionStore] | None:
    """The site's own kind, if it keeps them in a table."""
    store: type[SessionBase] = import_module(settings.SESSION_ENGINE).SessionStore
    if not issubclass(store, SessionStore):
        return None
    try:
        store.get_model_class()
    except RuntimeError:
        # Django's own kind, which is the default, on a site that has no sessions.
        return None
    return store


def _rows(store: type[SessionStore]) -> QuerySet[AbstractBaseSession]:
    model = store.get_model_class()
    return model._default_manager.using(router.db_for_write(model))


def _each(rows: QuerySet[AbstractBaseSession]) -> Iterator[AbstractBaseSession]:
    """Batch by batch: one long read would hold up whoever writes to SQLite, MariaDB's drivers take
    all of it into memory, and PostgreSQL's cursors do not last behind a pooler.
    """
    ordered = rows.only("session_key", "session_data").order_by("session_key")
    batch = list(ordered[:BATCH])
    yield from batch
    while len(batch) == BATCH:
        batch = list(ordered.filter(session_key__gt=batch[-1].session_key)[:BATCH])
        yield from batch


def _said(opener: SessionStore, row: AbstractBaseSession) -> Mapping[str, Any]:
    """What the session says; nothing if it cannot be read, of which Django's own way would warn."""
    try:
        if type(opener).decode is not SessionBase.decode:
            return opener.decode(row.session_data)
        said: Mapping[str, Any] = signing.loads(
            row.session_data, salt=opener.key_salt, serializer=opener.serializer
        )
    except (signing.BadSignature, ValueError):
        return {}
    return said


def _named(user_id: Any) -> str:
    """The user as a session names them."""
    model = get_user_model()
    return model._meta.pk.value_to_string(model(pk=user_id))
