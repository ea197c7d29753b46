"""Search every table of the site for what an erasure left of a person.

The known texts about the person stay in memory. They are never stored, logged or shown. Findings
are the names of models and fields, with numbers. ``NOT_SEEN`` says what no search sees.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from unicodedata import east_asian_width, normalize
from uuid import UUID

from django.apps import apps
from django.contrib.auth.models import AbstractBaseUser
from django.contrib.sessions.base_session import AbstractBaseSession
from django.db import connections, models, router
from django.db.models import Q, QuerySet
from django.utils.text import slugify
from tqdm import tqdm

from django_identity import conf, database
from django_identity.models import LinkedIdentity, SubjectLock, WebhookEvent, digest

NOT_SEEN = (
    "tables without a model, and columns without a field",
    "sessions that no key of the site opens, and those in cookies, caches and files",
    "texts that are encoded or compressed, such as a JWT",
    "caches, also those in a table",
    "files",
)
NO_ACCOUNT = (
    "the account's names and addresses: nobody was linked when the search began"
)
ROWS_AT_ONCE = 200
SHORT = 4
NAMES = ("first_name", "last_name")
# Of user models that have a name in one column.
WHOLE_NAMES = ("name", "full_name", "display_name")
ADDRESSES = (models.EmailField, models.URLField, models.FileField)
# Nobody's name, address or subject is in these.
WITHOUT_TEXT = (
    models.BooleanField,
    models.DateField,
    models.DecimalField,
    models.DurationField,
    models.FloatField,
    models.IntegerField,
    models.TimeField,
)
# The hash of a password: by chance, each short name stands in some.
RANDOM_TEXT = {"password"}
# An emptied event keeps its digest until it is purged, so that a repeat is known; a lock for a day.
KEPT_BY_US = {(WebhookEvent, "subject_digest"), (SubjectLock, "digest")}
# A character as JSON escapes it; in JSON inside JSON there are more backslashes. Each run is
# tried once, from its begin: the time is linear.
JSON_ESCAPE = re.compile(r"(?<!\\)\\+u([0-9a-fA-F]{4})")

Column: TypeAlias = "models.Field[Any, Any]"
Table: TypeAlias = "QuerySet[Any]"


@dataclass(frozen=True, slots=True)
class Known:
    """``texts`` are the person's alone; ``words``, the parts of the name, others may have too.

    ``accounts``: the keys of the person's own accounts.
    """

    texts: frozenset[str] = field(default=frozenset(), repr=False)
    words: frozenset[str] = field(default=frozenset(), repr=False)
    accounts: frozenset[Any] = field(default=frozenset(), repr=False)

    def __or__(self, other: Known) -> Known:
        return Known(
            self.texts | other.texts,
            self.words | other.words,
            self.accounts | other.accounts,
        )


@dataclass(frozen=True, slots=True)
class Findings:
    """``app.Model.field`` -> number of values in which something was found.

    ``hits``: somebody has to look. ``unsure``: only something short was found, or what another
    account has in its name. ``unread``: a table, column or database -> why it was not read.
    ``not_seen``: what no search sees.
    """

    hits: dict[str, int] = field(default_factory=dict)
    unsure: dict[str, int] = field(default_factory=dict)
    unread: dict[str, str] = field(default_factory=dict)
    not_seen: tuple[str, ...] = NOT_SEEN

    def look(self, place: str, texts: Iterable[str], sought: Known) -> None:
        """Count in how many of ``texts`` something is."""
        try:
            for text in texts:
                self._count(place, _unescaped(text), sought)
        except Exception as error:  # noqa: BLE001  a table may be missing, a column raise anything
            self.unread[place] = type(error).__name__

    def _count(self, place: str, text: str, sought: Known) -> None:
        if any(form in text for form in sought.texts):
            counts = self.hits
        elif any(form in text for form in sought.words):
            counts = self.unsure
        else:
            return
        counts[place] = counts.get(place, 0) + 1


# What is looked for: asked before the erasure, because nobody knows it afterwards


def known_of_account(user: AbstractBaseUser) -> Known:
    """The account's name with its parts, its addresses, and the names of its files."""
    columns = database.field_names(user)
    full_name = " ".join(_text_in(user, name) for name in NAMES).strip()
    names = [full_name]
    names += [_text_in(user, name) for name in columns.intersection(WHOLE_NAMES)]

    texts = {*names, str(user.get_username())}
    email = user.get_email_field_name()
    for column in user._meta.concrete_fields:
        if column.name == email or isinstance(column, ADDRESSES):
            texts.add(_text_in(user, column.name))

    # A name without a letter, such as "-", is in every second text.
    spoken = " ".join(names).split()
    words = {word for word in spoken if slugify(word, allow_unicode=True)}
    texts.discard("")
    return Known(frozenset(texts), frozenset(words), frozenset({user.pk}))


def _text_in(user: AbstractBaseUser, name: str) -> str:
    return str(getattr(user, name, "") or "")


def known_of_subject(subject: str) -> Known:
    """The subject, its digest, and its account."""
    subject_digest = digest(conf.application().environment, subject)
    known = Known(frozenset({subject, subject_digest}))
    linked = LinkedIdentity.objects.filter(subject_digest=subject_digest).first()
    if linked is None:
        return known
    return known | known_of_account(database.account(linked.user_id))


# The search


def search(known: Known, *, further: Iterable[tuple[str, str]] = ()) -> Findings:
    """Search every table of the site for ``known``, with a progress bar on a terminal.

    ``further``: texts from elsewhere, each with its place.
    """
    not_seen: tuple[str, ...] = NOT_SEEN
    if not known.accounts:
        not_seen = (NO_ACCOUNT, *NOT_SEEN)
    findings = Findings(not_seen=not_seen)
    sought = _sought(known)
    found = tables(findings.unread)
    columns = [(table, each) for table in found for each in _columns(table.model)]
    for table, column in tqdm(columns, disable=None, leave=False):
        findings.look(str(column), _texts_of(table, column), sought)
    for place, text in further:
        findings.look(place, [text], sought)
    return findings


def tables(unread: dict[str, str]) -> Iterator[Table]:
    """All rows of each installed model, in each database that has them."""
    models_of_all = apps.get_models(include_auto_created=True)
    installed = [model for model in models_of_all if not model._meta.proxy]
    wanted = set(installed)
    for alias in connections:
        try:
            names = connections[alias].introspection.table_names(include_views=True)
        except Exception as error:  # noqa: BLE001  it may be away, or its driver missing
            unread[alias] = type(error).__name__
            continue
        for model in installed:
            if model._meta.db_table in names and _is_kept_in(alias, model):
                wanted.discard(model)
                # Not by a manager of the site, which may hide some rows.
                yield QuerySet(model, using=alias)
    unread.update((model._meta.label, "no table") for model in wanted)


def _is_kept_in(alias: str, model: type[models.Model]) -> bool:
    """Whether the site has rows of the model there, and no copy such as a read replica.

    A router may forbid migrations of another party's database, and write to it all the same.
    """
    if router.allow_migrate_model(alias, model):
        return True
    return router.db_for_write(model) == alias


def _columns(model: type[models.Model]) -> Iterator[Column]:
    """The columns in which there may be text. Those of a parent are in the parent's table."""
    for column in model._meta.local_concrete_fields:
        # What a foreign key holds is a value of the column that it points at.
        kind = getattr(column, "target_field", column)
        if isinstance(kind, WITHOUT_TEXT) or column.name in RANDOM_TEXT:
            continue
        if (model, column.name) not in KEPT_BY_US:
            yield column


def _texts_of(table: Table, column: Column) -> Iterator[str]:
    """Each value of a column as text, as the field reads it: what the site encrypts is found."""
    values = table.values_list(column.attname, flat=True)
    is_session = issubclass(table.model, AbstractBaseSession)
    for value in values.iterator(chunk_size=ROWS_AT_ONCE):
        content = value
        if is_session and column.name == "session_data":
            content = table.model(session_data=value).get_decoded() or value
        if isinstance(content, (bytes, memoryview)):
            content = bytes(content).decode(errors="ignore")
        if not isinstance(content, str):
            content = json.dumps(content, ensure_ascii=False, default=str)
        yield content


# The forms in which it may be written


def _sought(known: Known) -> Known:
    """The forms of what is known. ``words``: short, or in the name of another account."""
    texts = known.texts | known.words
    users = database.all_users().exclude(pk__in=known.accounts)
    unsure = {text for text in texts if is_short(text) or _is_shared(text, users)}
    return Known(_forms(texts - unsure), _forms(unsure))


def is_short(text: str) -> bool:
    """Whether it may stand in a longer word by chance. A wide letter, as of Chinese, is a word."""
    wide = sum(east_asian_width(letter) in ("W", "F") for letter in text)
    return len(text) + wide < SHORT


def _is_shared(text: str, users: Table) -> bool:
    """Whether one of the accounts has it in its name."""
    named = Q(pk__in=[])
    for name in database.field_names(users.model).intersection((*NAMES, *WHOLE_NAMES)):
        named |= Q(**{f"{name}__icontains": text})
    return users.filter(named).exists()


def _forms(texts: Iterable[str]) -> frozenset[str]:
    """In small letters: plain, and a UUID without hyphens, as some databases store it.

    A letter with an accent is one character or two.
    """
    forms: set[str] = set()
    for text in texts:
        forms |= {normalize("NFC", text), normalize("NFD", text), _hex_of(text)}
    return frozenset(form.casefold() for form in forms if form)


def _hex_of(text: str) -> str:
    try:
        return UUID(text).hex
    except ValueError:
        return ""


def _unescaped(text: str) -> str:
    """The text in small letters; one with JSON's escapes is there twice, with and without them."""
    if "\\u" in text:
        plain = JSON_ESCAPE.sub(lambda escape: chr(int(escape[1], 16)), text)
        # A rare character is two such escapes.
        plain = plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        text = f"{text}\n{plain}"
    return text.casefold()
