"""What an erasure left: search every table of the site for what was known of the person.

What is looked for stays in memory. It is never stored, logged or shown: findings are the names of
models and fields, with numbers.
"""

from __future__ import annotations

import base64
import html
import json
import re
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from unicodedata import east_asian_width, normalize
from urllib.parse import quote, quote_plus, unquote_plus
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser
from django.contrib.sessions.base_session import AbstractBaseSession
from django.core import signing
from django.core.cache import caches
from django.core.cache.backends.db import DatabaseCache
from django.db import connections, models, router
from django.db.models import Case, Count, F, Q, When
from django.db.models.functions import Cast, Length
from django.db.models.lookups import LessThanOrEqual
from django.utils.text import slugify
from tqdm import tqdm

from django_identity import conf, database
from django_identity.instruments import searchable
from django_identity.instruments.searchable import Column, Table
from django_identity.models import LinkedIdentity, digest

#: A longer value is not read, and the findings say so.
MOST_CHARACTERS = 250_000
ROWS_AT_ONCE = 200
SHORT = 4
NAMES = ("first_name", "last_name")
# Of user models that have a name in one column.
WHOLE_NAMES = ("name", "full_name", "display_name")
ADDRESSES = (models.EmailField, models.URLField, models.FileField)
# A character as JSON escapes it. In a JSON text inside JSON there are more backslashes.
JSON_ESCAPE = re.compile(r"\\+u([0-9a-fA-F]{4})")


@dataclass(frozen=True, slots=True)
class Known:
    """``texts`` are the person's alone; ``words``, the parts of the name, others may have too."""

    texts: frozenset[str] = field(default=frozenset(), repr=False)
    words: frozenset[str] = field(default=frozenset(), repr=False)

    def __or__(self, other: Known) -> Known:
        return Known(self.texts | other.texts, self.words | other.words)


@dataclass(frozen=True, slots=True)
class Findings:
    """``app.Model.field`` -> number of values in which something was found.

    ``hits``: somebody has to look. ``unsure``: only something short or common was found.
    ``unread``: a table, column or database -> why it was not read. There may be anything in it.
    """

    hits: dict[str, int] = field(default_factory=dict)
    unsure: dict[str, int] = field(default_factory=dict)
    unread: dict[str, str] = field(default_factory=dict)

    def look(self, place: str, texts: Iterable[str | None], sought: Known) -> None:
        """Count in how many of ``texts`` something is. None: that text is too long."""
        too_long = 0
        try:
            for text in texts:
                if text is None:
                    too_long += 1
                else:
                    self._count(place, _unescaped(text), sought)
        except Exception as error:  # noqa: BLE001  a table may be missing, a column raise anything
            self.unread[place] = type(error).__name__
            return
        if too_long:
            self.unread[place] = f"{too_long} too long"

    def _count(self, place: str, text: str, sought: Known) -> None:
        if _has_any(sought.texts, text):
            counts = self.hits
        elif _has_any(sought.words, text):
            counts = self.unsure
        else:
            return
        counts[place] = counts.get(place, 0) + 1


def _has_any(forms: Iterable[str], text: str) -> bool:
    return any(form in text for form in forms)


def known_of_account(user: AbstractBaseUser) -> Known:
    """The account's name with its parts, its addresses, and the names of its files."""
    columns = database.field_names(user)
    parts = [_text_in(user, name) for name in NAMES]
    names = [" ".join(parts).strip()]
    for name in columns.intersection(WHOLE_NAMES):
        names.append(_text_in(user, name))

    texts = {*names, str(user.get_username())}
    email = user.get_email_field_name()
    for column in user._meta.concrete_fields:
        if column.name == email or isinstance(column, ADDRESSES):
            texts.add(_text_in(user, column.name))

    # A name without a letter, such as "-", is in every second text.
    spoken = " ".join(names).split()
    words = {word for word in spoken if slugify(word, allow_unicode=True)}
    return Known(frozenset(texts - {""}), frozenset(words))


def _text_in(user: AbstractBaseUser, name: str) -> str:
    return str(getattr(user, name, "") or "")


def known_of_subject(subject: str) -> Known:
    """The subject, its digest, and its account as it is now, before the erasure."""
    subject_digest = digest(conf.application().environment, subject)
    known = Known(frozenset({subject, subject_digest}))
    linked = LinkedIdentity.objects.filter(subject_digest=subject_digest).first()
    if linked is None:
        return known
    return known | known_of_account(database.account(linked.user_id))


def search(known: Known) -> Findings:
    """Search every table of the site for ``known``, with a progress bar on a terminal."""
    found, unread = searchable.tables()
    findings = Findings(unread=unread)
    sought = _sought(known)

    columns = [
        (table, column)
        for table in found
        for column in searchable.columns_of(table.model)
    ]
    for table, column in tqdm(columns, disable=None, leave=False):
        findings.look(str(column), _texts_of(table, column), sought)
    for name in settings.CACHES:
        findings.look(f"CACHES.{name}", _cached_texts(name), sought)
    return findings


def _sought(known: Known) -> Known:
    """The forms in which it may be written. ``words``: short, or half of the accounts have it."""
    texts = known.texts | known.words
    short = set(filter(is_short, texts))
    others = known.words - known.texts - short
    unsure = short | set(filter(_is_shared, others))
    return Known(_forms(texts - unsure), _forms(unsure))


def is_short(text: str) -> bool:
    """Whether it may stand in a longer word by chance. A wide letter, as of Chinese, is a word."""
    wide = sum(east_asian_width(letter) in ("W", "F") for letter in text)
    return len(text) + wide < SHORT


def _forms(texts: Iterable[str]) -> frozenset[str]:
    """The ways to write each text, folded."""
    forms: set[str] = set()
    for text in texts:
        forms |= {slugify(text), text.replace(" ", "_"), _without_hyphens(text)}
        # A letter with an accent is one character or two, which makes other escapes.
        for spelled in (normalize("NFC", text), normalize("NFD", text)):
            in_json = json.dumps(spelled)[1:-1]
            forms |= {spelled, in_json, quote(spelled), quote_plus(spelled)}
    return frozenset(map(_folded, forms)) - {""}


def _without_hyphens(text: str) -> str:
    """A UUID as some databases store it. An empty text for any other text."""
    try:
        return UUID(text).hex
    except ValueError:
        return ""


def _folded(text: str) -> str:
    """In small letters, with each accent in its letter."""
    return normalize("NFC", text.casefold())


def _unescaped(text: str) -> str:
    """The text, folded; one with escapes is there twice, with them and without.

    An escape hides whether its letter is a capital, and it may be escaped once more.
    """
    plain = text
    if "\\u" in plain:
        plain = JSON_ESCAPE.sub(lambda escape: chr(int(escape[1], 16)), plain)
        # A rare character is two such escapes.
        plain = plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if "&" in plain:
        plain = html.unescape(plain)
    if "%" in plain:
        plain = unquote_plus(plain)
    if plain != text:
        text = f"{text}\n{plain}"
    return _folded(text)


def _is_shared(word: str) -> bool:
    """Whether half of the other accounts have it in their names."""
    users = database.all_users()
    named = Q()
    for name in database.field_names(users.model).intersection((*NAMES, *WHOLE_NAMES)):
        named |= Q(**{f"{name}__icontains": word})
    if not named:
        return False
    counts = users.aggregate(all=Count("pk"), named=Count("pk", filter=named))
    return bool(0 < counts["all"] <= 2 * counts["named"])


def _texts_of(table: Table, column: Column) -> Iterator[str | None]:
    """The text of each value in a column, or None for one that is too long."""
    name = column.attname
    length = Length(Cast(name, models.TextField()))
    if isinstance(column, models.BinaryField):
        length = Length(name)
    # As the field reads it, so that what the site encrypts is found too.
    value = Case(When(LessThanOrEqual(length, MOST_CHARACTERS), then=F(name)))
    rows = table.order_by("pk").values_list("pk", length, value)

    for _key, size, content in _by_key(rows):
        if content not in (None, ""):
            yield _as_text(table.model, content)
        elif size is not None and size > MOST_CHARACTERS:
            yield None


def _by_key(rows: Table) -> Iterator[Any]:
    """``rows``, which begin with their keys, some at once."""
    piece = list(rows[:ROWS_AT_ONCE])
    while piece:
        last_key = piece[-1][0]
        if not rows.model._meta.managed:
            # Nothing keeps the key of a view from repeating behind this piece.
            piece = [row for row in piece if row[0] != last_key]
            piece += rows.filter(pk=last_key)
        yield from piece
        piece = list(rows.filter(pk__gt=last_key)[:ROWS_AT_ONCE])


def _cached_texts(name: str) -> Iterator[str]:
    """What is in the table of a database cache: keys, and values in base64."""
    cache = caches[name]
    if not isinstance(cache, DatabaseCache):
        return
    model = cache.cache_model_class
    connection = connections[router.db_for_read(model)]
    table = connection.ops.quote_name(model._meta.db_table)
    # Django has no model for it. The name is LOCATION of the site's own setting, and quoted.
    statement = f"SELECT cache_key, value FROM {table}"  # noqa: S608
    with connection.cursor() as cursor:
        cursor.execute(statement)
        for key, value in cursor:
            yield f"{key} {base64.b64decode(value).decode(errors='ignore')}"


def _as_text(model: type[models.Model], value: Any) -> str:
    if issubclass(model, AbstractBaseSession):
        decoded = model(session_data=value).get_decoded()
        value = decoded or _with_content(value)
    if isinstance(value, (bytes, memoryview)):
        return bytes(value).decode(errors="ignore")
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, default=str)


def _with_content(session: str) -> str:
    """A session that no key of the site opens now, and its content: it is signed, not encrypted."""
    content = b""
    signed = session.partition(":")[0]
    # As ``django.core.signing`` writes it: compressed behind a full stop.
    with suppress(ValueError, zlib.error):
        content = signing.b64_decode(signed.removeprefix(".").encode())
        if signed.startswith("."):
            content = zlib.decompress(content)
    return f"{session} {content.decode(errors='ignore')}"
