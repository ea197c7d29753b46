"""Find and delete a person's sessions in the database. Other stores cannot list sessions."""

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
    """The keys of all sessions of a user. Each session is decoded to find its user.

    ``saved_since``: only sessions that were saved since then (with the site's usual lifetime).
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
    """Delete the sessions with these ``keys``, from the cache too if the site uses ``cached_db``.

    Raises the error of a cache that does not answer, because the cache would still have the
    sessions.
    """
    store = _listable()
    if store is None:
        return 0
    for key in keys:
        # The store's own method may read from a replica that does not have the session yet.
        _rows(store).filter(session_key=key).delete()
        store(key).delete()
    return len(keys)


def _listable() -> type[SessionStore] | None:
    """The site's session store, if it stores sessions in a table."""
    store: type[SessionBase] = import_module(settings.SESSION_ENGINE).SessionStore
    if not issubclass(store, SessionStore):
        return None
    try:
        store.get_model_class()
    except RuntimeError:
        # The default setting on a site without the sessions app.
        return None
    return store


def _rows(store: type[SessionStore]) -> QuerySet[AbstractBaseSession]:
    model = store.get_model_class()
    return model._default_manager.using(router.db_for_write(model))


def _each(rows: QuerySet[AbstractBaseSession]) -> Iterator[AbstractBaseSession]:
    """Yield ``rows`` in batches. One long read would block writers on SQLite, fill the memory with
    MariaDB's drivers, and need a cursor that does not survive behind a pooler on PostgreSQL.
    """
    ordered = rows.only("session_key", "session_data").order_by("session_key")
    batch = list(ordered[:BATCH])
    yield from batch
    while len(batch) == BATCH:
        batch = list(ordered.filter(session_key__gt=batch[-1].session_key)[:BATCH])
        yield from batch


def _said(opener: SessionStore, row: AbstractBaseSession) -> Mapping[str, Any]:
    """The decoded session, or an empty one. Django's own method would log a warning."""
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
    """The user's key, in the form in which a session stores it."""
    model = get_user_model()
    return model._meta.pk.value_to_string(model(pk=user_id))
