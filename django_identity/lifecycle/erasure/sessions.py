"""Find and delete a person's sessions in the database. Other stores cannot list sessions."""

from __future__ import annotations

import re
import zlib
from collections.abc import Collection, Container, Iterator, Mapping
from datetime import datetime, timedelta
from importlib import import_module
from typing import Any

from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, SESSION_KEY, get_user_model
from django.contrib.sessions.backends.base import SessionBase
from django.contrib.sessions.backends.db import SessionStore
from django.contrib.sessions.base_session import AbstractBaseSession
from django.contrib.sessions.serializers import JSONSerializer
from django.core import signing
from django.db import router
from django.db.models import QuerySet
from django.utils import timezone

BATCH = 1000
# A plain text: no escapes, and no other members with this name inside of values.
USER_IN_TEXT = re.compile(rb'"%s":"([\w-]*)"' % SESSION_KEY.encode(), re.ASCII)
# Each session is decoded to be counted, and a page waits for it.
MOST_COUNTED = 20_000


def keys_of(
    user_ids: Collection[Any], *, saved_since: datetime | None = None
) -> dict[Any, list[str]]:
    """User -> the keys of all their sessions, by one scan: each session is decoded.

    ``saved_since``: only sessions that were saved since then (with the site's usual lifetime).
    """
    store = _listable()
    found: dict[Any, list[str]] = {user_id: [] for user_id in user_ids}
    if store is None or not found:
        return found
    rows = _rows(store)
    if saved_since is not None:
        ends_at = saved_since + timedelta(seconds=settings.SESSION_COOKIE_AGE)
        rows = rows.filter(expire_date__gte=ends_at)
    named, opener = {_named(user_id): user_id for user_id in found}, store()
    for row in _each(rows):
        if _names_another(opener, row, named):
            continue
        whose = _said(opener, row).get(SESSION_KEY)
        if whose in named:
            found[named[whose]].append(row.session_key)
    return found


def can_end() -> bool:
    """Whether all sessions of a user can be found and ended while a page waits."""
    store = _listable()
    return store is not None and _rows(store)[: MOST_COUNTED + 1].count() <= MOST_COUNTED


def end_all(user_id: Any) -> int:
    """Sign the user out everywhere. Returns the number of ended sessions."""
    return delete(keys_of([user_id])[user_id])


def count_of(user_ids: Collection[Any], *, backend: str = "") -> int | None:
    """How many sessions the users have, of ``backend`` only if it is given.

    None if the store cannot list sessions, or has more than ``MOST_COUNTED`` of them.
    """
    store = _listable()
    if store is None or not can_end():
        return None
    named, opener = {_named(user_id) for user_id in user_ids}, store()
    found = (
        _said(opener, row) for row in _each(_rows(store).filter(expire_date__gt=timezone.now()))
    )
    return sum(
        said.get(SESSION_KEY) in named and backend in ("", said.get(BACKEND_SESSION_KEY))
        for said in found
    )


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


def _names_another(opener: SessionStore, row: AbstractBaseSession, named: Container[str]) -> bool:
    """Whether the session plainly names nobody, or a user who is not wanted. Nothing is verified.

    Most sessions of a scan are somebody else's. To verify each of them takes ten times as long.
    """
    if type(opener).decode is not SessionBase.decode or opener.serializer is not JSONSerializer:
        return False
    payload = row.session_data.rsplit(":", 2)[0]
    try:
        raw = signing.b64_decode(payload.removeprefix(".").encode())
        text = zlib.decompress(raw) if payload.startswith(".") else raw
    except (ValueError, zlib.error):
        return False
    if SESSION_KEY.encode() not in text:
        return True
    users = USER_IN_TEXT.findall(text)
    return len(users) == 1 and users[0].decode() not in named


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
