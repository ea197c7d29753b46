"""The sessions that the site keeps of a person, where they can be listed: in the database."""

from __future__ import annotations

from collections.abc import Collection
from importlib import import_module
from typing import Any

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore


def keys_of(user_id: Any) -> list[str]:
    """The keys of a user's sessions, however they began; a session is opened to see whose it is."""
    store = _listable()
    if store is None or user_id is None:
        return []
    rows = store.get_model_class()._default_manager.only("session_key", "session_data")
    whose = str(user_id)
    return [row.pk for row in rows.iterator() if row.get_decoded().get(SESSION_KEY) == whose]


def delete(keys: Collection[str]) -> int:
    """Delete what ``keys_of`` found, out of the cache as well if the site keeps them there too."""
    store = _listable()
    if store is None:
        return 0
    for key in keys:
        store(key).delete()
    return len(keys)


def _listable() -> type[SessionStore] | None:
    """The site's own kind, if it keeps them in a table."""
    store = import_module(settings.SESSION_ENGINE).SessionStore
    return store if issubclass(store, SessionStore) else None
