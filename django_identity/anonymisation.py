"""Anonymise an account: nobody can be recognised by it or sign in to it."""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser
from django.db import models

from django_identity import database

KEPT = frozenset({"password", "date_joined"})
PREFIX = "erased-"
# Every database can store this time, in every time zone.
LONG_PAST = datetime(1900, 1, 1, tzinfo=UTC)

#: Neutral values for required fields, by the name of the field's class, because the classes of
#: ``django.contrib.postgres`` cannot be imported everywhere.
NOTHING: Mapping[str, Callable[[], object]] = {
    "IntegerField": int,
    "FloatField": float,
    "DecimalField": Decimal,
    "DateTimeField": lambda: LONG_PAST if settings.USE_TZ else LONG_PAST.replace(tzinfo=None),
    "DateField": lambda: date(1900, 1, 1),
    "TimeField": time,
    "DurationField": timedelta,
    "UUIDField": uuid.uuid4,
    "GenericIPAddressField": lambda: "::",
    "BinaryField": bytes,
    "FilePathField": str,
    "JSONField": dict,
    "HStoreField": dict,
    "ArrayField": list,
}


def anonymise(user: AbstractBaseUser) -> None:
    """Empty every field of ``user`` that may contain personal data, and disable the account.

    Texts, dates, numbers and files are emptied. Flags, relations and the creation date stay. Unique
    fields get random values. Files are deleted from their storage.
    """
    apart = _kept_apart(user)
    for field in user._meta.concrete_fields:
        if not (field.primary_key or field.is_relation or field.name in KEPT):
            _empty(user, field, is_unique=field.unique or field.name in apart)
    if any(field.name == "is_active" for field in user._meta.concrete_fields):
        user.is_active = False
    user.set_unusable_password()
    user.save()


def delete_files(user: AbstractBaseUser) -> None:
    """Delete the files of ``user`` from their storage, except a field's default file."""
    for field in user._meta.concrete_fields:
        if isinstance(field, models.FileField):
            _delete_file(user, field)


def _kept_apart(user: AbstractBaseUser) -> set[str]:
    """The fields that must be unique, alone or together with others."""
    names = set(_constrained(user))
    fields: Iterable[Any] = user._meta.concrete_fields
    for field in fields:
        if field.generated and (field.unique or field.name in names):
            names.update(_named_in([field.expression]))
    return names


def _constrained(user: AbstractBaseUser) -> Iterator[str]:
    for model in (*user._meta.get_parent_list(), type(user)):
        for together in model._meta.unique_together:
            yield from together
        for constraint in model._meta.constraints:
            if isinstance(constraint, models.UniqueConstraint):
                yield from constraint.fields
                yield from _named_in(constraint.expressions)


def _named_in(expressions: Iterable[Any]) -> Iterator[str]:
    for expression in expressions:
        parts = expression.flatten() if hasattr(expression, "flatten") else [expression]
        for part in parts:
            if isinstance(part, models.F):
                reference: Any = part
                yield reference.name


def _empty(user: AbstractBaseUser, field: models.Field[Any, Any], *, is_unique: bool) -> None:
    if isinstance(field, models.BooleanField) or getattr(field, "auto_now_add", False):
        return
    if isinstance(field, models.FileField):
        _delete_file(user, field)
    elif isinstance(field, (models.CharField, models.TextField)) and (is_unique or not field.null):
        setattr(user, field.attname, _random_text(field) if is_unique else "")
    elif field.null:
        setattr(user, field.attname, None)
    elif isinstance(field, models.IntegerField) and is_unique:
        _, greatest = database.connection().ops.integer_field_range(field.get_internal_type())
        setattr(user, field.attname, secrets.randbelow(greatest or 2**31))
    elif field.has_default():
        setattr(user, field.attname, field.get_default())
    else:
        _say_nothing(user, field)


def _delete_file(user: AbstractBaseUser, field: models.FileField) -> None:
    """Delete one file, but not the field's default file, which other accounts share."""
    file = getattr(user, field.name)
    if file.name != field.get_default():
        file.delete(save=False)


def _say_nothing(user: AbstractBaseUser, field: models.Field[Any, Any]) -> None:
    """Empty one field. A required field of an unknown class is left unchanged."""
    for kind in type(field).__mro__:
        if kind.__name__ in NOTHING:
            setattr(user, field.attname, NOTHING[kind.__name__]())
            return


def _random_text(field: models.Field[Any, Any]) -> str:
    """A random text, as long as the field allows."""
    text = uuid.uuid4().hex
    if field.max_length is None or len(PREFIX + text) <= field.max_length:
        return PREFIX + text
    return text[: field.max_length]
