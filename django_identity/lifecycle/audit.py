"""What an erasure left: search every table of the site for what was known of the person.

What is looked for stays in memory. It is never stored, logged or shown: findings are the names of
models and fields, with numbers.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from django.apps import apps
from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractBaseUser
from django.contrib.sessions.base_session import AbstractBaseSession
from django.core.cache import caches
from django.core.cache.backends.base import BaseCache
from django.core.cache.backends.db import DatabaseCache
from django.db import DatabaseError, InterfaceError, connections, models, router
from django.db.models import Case, Count, F, Q, QuerySet, When
from django.db.models.functions import Cast, Length
from django.db.models.lookups import GreaterThan, LessThanOrEqual
from django.utils.text import slugify
from tqdm import tqdm

from django_identity import database
from django_identity.models import LinkedIdentity, WebhookEvent

#: A longer value is not read, and the findings say so.
MOST_CHARACTERS = 250_000
ROWS_AT_ONCE = 200
SHORT = 4
NAMES = ("first_name", "last_name")
# Nobody's name or address is in these.
WITHOUT_TEXT = (
    models.BooleanField, models.DateField, models.DecimalField, models.DurationField,
    models.FloatField, models.IntegerField, models.TimeField, models.UUIDField,
)  # fmt: skip
# An emptied event keeps its digest until it is purged, so that a repeat is known.
KEPT_BY_US = {(WebhookEvent, "subject_digest")}
TEXT = (models.BinaryField, models.CharField, models.FileField, models.TextField)


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
    ``unread``: a table, column or database -> why it was not read.
    """

    hits: dict[str, int] = field(default_factory=dict)
    unsure: dict[str, int] = field(default_factory=dict)
    unread: dict[str, str] = field(default_factory=dict)

    def count(self, sought: Known, place: str, text: str) -> None:
        """Count what is in ``text``, which was read at ``place``."""
        folded = text.casefold()
        for found, needles in ((self.hits, sought.texts), (self.unsure, sought.words)):
            if any(needle in folded for needle in needles):
                found[place] = found.get(place, 0) + 1
                return


def known_of_account(user: AbstractBaseUser) -> Known:
    """The account's name with its parts, its addresses, and the names of its files."""
    fields = {each.name: each for each in user._meta.concrete_fields}
    kinds = (models.EmailField, models.URLField, models.FileField)
    wanted = {name for name, each in fields.items() if isinstance(each, kinds)}
    named = {get_user_model().USERNAME_FIELD, user.get_email_field_name()}
    wanted |= named & fields.keys()
    names = [str(getattr(user, name)) for name in NAMES if getattr(user, name, "")]
    full_name = " ".join(names)
    texts = {str(getattr(user, name) or "") for name in wanted} | {full_name}
    words = {word for word in full_name.split() if slugify(word, allow_unicode=True)}
    return Known(frozenset(texts - {""}), frozenset(words))


def known_of_identities(identities: Iterable[LinkedIdentity]) -> Known:
    """The subjects, and the digests that stand for them."""
    pairs = ((each.subject, each.subject_digest) for each in identities)
    return Known(frozenset(text for pair in pairs for text in pair))


def tables() -> tuple[list[QuerySet[Any]], dict[str, str]]:
    """All rows of each installed model, and what cannot be read: database or model -> why."""
    everywhere = apps.get_models(include_auto_created=True)
    wanted = [model for model in everywhere if not model._meta.proxy and not model._meta.swapped]
    found: list[QuerySet[Any]] = []
    unread: dict[str, str] = {}
    for alias in connections:
        try:
            names = set(connections[alias].introspection.table_names(include_views=True))
        except (DatabaseError, InterfaceError) as error:
            unread[alias] = type(error).__name__
            continue
        here = [model for model in wanted if router.allow_migrate_model(alias, model)]
        here = [model for model in here if model._meta.db_table in names]
        # Not by a manager of the site, which may hide some rows.
        found += [QuerySet(model, using=alias) for model in here]
    lost = set(wanted) - {rows.model for rows in found}
    return found, unread | {model._meta.label: "no table" for model in lost}


def search(known: Known) -> Findings:
    """Search every table of the site for ``known``, with a progress bar on a terminal."""
    found, unread = tables()
    findings, sought = Findings(unread=unread), _sought(known)
    for rows in tqdm(found, disable=None, leave=False):
        label = rows.model._meta.label
        try:
            for name, text in _texts_of(rows):
                findings.count(sought, f"{label}.{name}", text)
            for name, number in _too_long(rows).items():
                findings.unread[f"{label}.{name}"] = f"{number} too long"
        except Exception as error:  # noqa: BLE001  a column of the site may raise anything
            findings.unread[f"{label} ({rows.db})"] = type(error).__name__
    for name in settings.CACHES:
        try:
            for text in _cached_texts(caches[name]):
                findings.count(sought, f"CACHES.{name}", text)
        except Exception as error:  # noqa: BLE001  the table may be missing, a value anything
            findings.unread[f"CACHES.{name}"] = type(error).__name__
    return findings


def _sought(known: Known) -> Known:
    """The forms in which it may be written. ``words``: short, or half of the accounts have it."""
    texts = known.texts | known.words
    unsure = {text for text in texts if len(text) < SHORT}
    unsure |= {word for word in known.words - known.texts - unsure if _is_shared(word)}
    return Known(_forms(texts - unsure), _forms(unsure))


def _forms(texts: Iterable[str]) -> frozenset[str]:
    """As it is, in JSON with escapes, in an address, and in the name of a file."""
    written = (
        (text, json.dumps(text)[1:-1], quote(text), slugify(text), text.replace(" ", "_"))
        for text in texts
    )
    return frozenset(form.casefold() for forms in written for form in forms) - {""}


def _is_shared(word: str) -> bool:
    """Whether half of the other accounts have it in their names."""
    users = database.all_users()
    names = {each.name for each in users.model._meta.concrete_fields} & set(NAMES)
    named = Q(*((f"{name}__icontains", word) for name in names), _connector=Q.OR)
    counts = users.aggregate(all=Count("pk"), named=Count("pk", filter=named))
    return bool(names) and 0 < counts["all"] <= 2 * counts["named"]


def _texts_of(table: QuerySet[Any]) -> Iterator[tuple[str, str]]:
    """The field and the text of every value that is not too long."""
    fields = _fields_of(table.model)
    # As the field reads it, so that what the site encrypts is found too.
    values = [
        Case(When(LessThanOrEqual(_length(each), MOST_CHARACTERS), then=F(each.attname)))
        for each in fields
    ]
    rows = table.order_by("pk").values_list("pk", *values)
    piece = list(rows[:ROWS_AT_ONCE])
    while piece:
        for _key, *held in piece:
            for each, value in zip(fields, held, strict=True):
                if value not in (None, ""):
                    yield each.name, _as_text(table.model, value)
        piece = list(rows.filter(pk__gt=piece[-1][0])[:ROWS_AT_ONCE])


def _too_long(table: QuerySet[Any]) -> dict[str, int]:
    """Field -> number of values that were not read."""
    counts = {
        each.name: Count("pk", filter=GreaterThan(_length(each), MOST_CHARACTERS))
        for each in _fields_of(table.model)
    }
    return {name: number for name, number in table.aggregate(**counts).items() if number}


def _cached_texts(cache: BaseCache) -> Iterator[str]:
    """What is in the table of a database cache: keys, and values in base64."""
    if not isinstance(cache, DatabaseCache):
        return
    name = cache.cache_model_class._meta.db_table
    connection = connections[router.db_for_read(cache.cache_model_class)]
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT cache_key, value FROM {connection.ops.quote_name(name)}")  # noqa: S608  quoted
        while piece := cursor.fetchmany(ROWS_AT_ONCE):
            for key, value in piece:
                text = base64.b64decode(value).decode(errors="ignore")
                yield f"{key} {text}"


def _as_text(model: type[models.Model], value: Any) -> str:
    if issubclass(model, AbstractBaseSession):
        value = model(session_data=value).get_decoded() or value
    if isinstance(value, (bytes, memoryview)):
        return bytes(value).decode(errors="ignore")
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _fields_of(model: type[models.Model]) -> list[models.Field[Any, Any]]:
    """The columns in which there may be text. Those of a parent are in the parent's table."""
    local = model._meta.local_concrete_fields
    held = [each for each in local if (model, each.name) not in KEPT_BY_US]
    return [each for each in held if not isinstance(_target(each), WITHOUT_TEXT)]


def _length(each: models.Field[Any, Any]) -> Length:
    is_text = isinstance(_target(each), TEXT)
    return Length(each.attname if is_text else Cast(each.attname, models.TextField()))


def _target(each: models.Field[Any, Any]) -> models.Field[Any, Any]:
    """The field, or the one whose value a foreign key holds."""
    return each.target_field if isinstance(each, models.ForeignKey) else each
