"""Find and delete a person's sessions in the database. Other stores cannot list sessions."""

import re
import zlib
from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib import import_module
from typing import Any

from django.conf import settings
from django.contrib.auth import (
    BACKEND_SESSION_KEY,
    HASH_SESSION_KEY,
    SESSION_KEY,
    get_user_model,
    load_backend,
)
from django.contrib.sessions.backends.base import SessionBase
from django.contrib.sessions.backends.db import SessionStore
from django.contrib.sessions.base_session import AbstractBaseSession
from django.contrib.sessions.serializers import JSONSerializer
from django.core import signing
from django.db import router
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.crypto import constant_time_compare, salted_hmac

from django_identity.models import NEVER

BATCH = 1000
# A plain text: no escapes, and no other members with this name inside of values.
USER_IN_TEXT = re.compile(rb'"%s":"([\w-]*)"' % SESSION_KEY.encode(), re.ASCII)
# Each session is decoded to be counted, and a page waits for it.
MOST_COUNTED = 20_000
# The account page lists sessions every time it is opened.
MOST_LISTED = 5_000
#: Where a session has the time of its sign-in, in seconds since 1970.
BEGAN_KEY = "_django_identity_began"


@dataclass(frozen=True, slots=True)
class LiveSession:
    """A session with which the user is signed in.

    ``name`` tells it from the user's other sessions. The session's key would open it.
    ``used_at`` is None if the site does not save sessions at every request.
    """

    name: str
    began_at: datetime | None
    used_at: datetime | None
    is_current: bool


def listed(user: Any, *, current: SessionBase) -> tuple[LiveSession, ...] | None:
    """The user's sessions, the current one first, then the newest.

    None if the store cannot list sessions, or has more than ``MOST_LISTED`` of them.

    Args:
        user: as Django loaded them for the ``current`` session.
    """
    store = _listable()
    if store is None:
        return None
    first = _batch(_alive(store), "expire_date")
    if len(first) == BATCH and not _has_at_most(MOST_LISTED, store):
        return None
    hashes = {current.get(BACKEND_SESSION_KEY, ""): _hashes(user)}
    rows = _each(_alive(store), "expire_date", first=first)
    found = [
        _live(row, said, current.session_key)
        for row, said in _signed_in(store, user.pk, rows, hashes)
    ]
    found.sort(key=lambda each: (each.is_current, each.began_at or NEVER), reverse=True)
    return tuple(found)


def end_one(user_id: Any, name: str) -> bool:
    """End the user's session with this ``name``. Returns whether there was one."""
    store = _listable()
    if store is None:
        return False
    found = _signed_in(store, user_id, _each(_alive(store)), {})
    keys = [row.session_key for row, _said in found]
    return delete([key for key in keys if constant_time_compare(_name(key), name)]) > 0


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
    named = {_named(user_id): user_id for user_id in found}
    for row, said in _naming(named, store, _each(rows)):
        found[named[said[SESSION_KEY]]].append(row.session_key)
    return found


def can_end() -> bool:
    """Whether all sessions of a user can be found and ended while a page waits."""
    store = _listable()
    return store is not None and _has_at_most(MOST_COUNTED, store)


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
    found = _naming({_named(user_id) for user_id in user_ids}, store, _each(_alive(store)))
    return sum(backend in ("", said.get(BACKEND_SESSION_KEY)) for _row, said in found)


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


def _signed_in(
    store: type[SessionStore],
    user_id: Any,
    rows: Iterable[AbstractBaseSession],
    hashes: dict[str, list[str]],
) -> Iterator[tuple[AbstractBaseSession, Mapping[str, Any]]]:
    """Yield those of ``rows`` that Django would accept as the user's: the hash is current."""
    for row, said in _naming({_named(user_id)}, store, rows):
        path = said.get(BACKEND_SESSION_KEY, "")
        if path not in hashes:
            is_known = path in settings.AUTHENTICATION_BACKENDS
            hashes[path] = _hashes(load_backend(path).get_user(user_id) if is_known else None)
        given = said.get(HASH_SESSION_KEY, "")
        if any(constant_time_compare(given, each) for each in hashes[path]):
            yield row, said


def _naming(
    named: Container[str], store: type[SessionStore], rows: Iterable[AbstractBaseSession]
) -> Iterator[tuple[AbstractBaseSession, Mapping[str, Any]]]:
    """Yield those of ``rows`` that are of one of the users ``named``, decoded."""
    opener = store()
    for row in rows:
        if not _names_another(opener, row, named):
            said = _said(opener, row)
            if said.get(SESSION_KEY) in named:
                yield row, said


def _hashes(user: Any) -> list[str]:
    """The hashes that a session of the user may have."""
    if user is None:
        return []
    return [user.get_session_auth_hash(), *user.get_session_auth_fallback_hash()]


def _live(row: AbstractBaseSession, said: Mapping[str, Any], current: str | None) -> LiveSession:
    began = said.get(BEGAN_KEY)
    lifetime = timedelta(seconds=settings.SESSION_COOKIE_AGE)
    is_dated = settings.SESSION_SAVE_EVERY_REQUEST and "_session_expiry" not in said
    return LiveSession(
        name=_name(row.session_key),
        began_at=datetime.fromtimestamp(began, UTC) if isinstance(began, int) else None,
        used_at=row.expire_date - lifetime if is_dated else None,
        is_current=row.session_key == current,
    )


def _name(session_key: str) -> str:
    return salted_hmac("django_identity.session", session_key, algorithm="sha256").hexdigest()


def _has_at_most(most: int, store: type[SessionStore]) -> bool:
    return _rows(store)[: most + 1].count() <= most


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


def _alive(store: type[SessionStore]) -> QuerySet[AbstractBaseSession]:
    return _rows(store).filter(expire_date__gt=timezone.now())


def _each(
    rows: QuerySet[AbstractBaseSession], *more: str, first: list[AbstractBaseSession] | None = None
) -> Iterator[AbstractBaseSession]:
    """Yield ``rows`` in batches. One long read would block writers on SQLite, fill the memory with
    MariaDB's drivers, and need a cursor that does not survive behind a pooler on PostgreSQL.
    """
    batch = _batch(rows, *more) if first is None else first
    yield from batch
    while len(batch) == BATCH:
        batch = _batch(rows.filter(session_key__gt=batch[-1].session_key), *more)
        yield from batch


def _batch(rows: QuerySet[AbstractBaseSession], *more: str) -> list[AbstractBaseSession]:
    return list(rows.only("session_key", "session_data", *more).order_by("session_key")[:BATCH])


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
