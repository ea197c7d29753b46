"""Anonymise an account: nobody can be recognised by it or sign in to it."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any, cast

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser
from django.db import models

from django_identity import database, uniqueness
from django_identity.uniqueness import TEXTS, Column

KEPT = frozenset({"password", "date_joined"})
# Every database can store this time, in every time zone.
LONG_PAST = datetime(1900, 1, 1, tzinfo=UTC)


def anonymise(user: AbstractBaseUser) -> None:
    """Blank the fields of ``user`` that may say who it was, and disable the account.

    Texts, dates and files are blanked, and whatever may be empty or has a default. Flags, relations
    and the creation date stay, and so do the fields that ``cannot_blank`` names. Texts that are
    unique, by themselves or by a constraint, get random values. Files are deleted from their
    storage. Rows of models that inherit from the user model are part of the account. Raises
    ``IntegrityError`` if the database has a rule that the model does not have.
    """
    for row in (*_rows_below(user), user):
        _anonymise_row(row)


def _anonymise_row(user: AbstractBaseUser) -> None:
    """Blank the account as one model has it, and save it."""
    delete_files(user)
    for field in personal_fields(type(user)):
        blank = _blank(field)
        if blank is not None:
            setattr(user, field.attname, blank())
    if "is_active" in database.field_names(user):
        user.is_active = False
    user.set_unusable_password()
    user.save()


def delete(user: AbstractBaseUser) -> None:
    """Delete the account with its files, and the rows of models that inherit from it."""
    rows = [user, *_rows_below(user)]
    user.delete()
    for row in rows:
        delete_files(row)


def _rows_below(user: AbstractBaseUser) -> Iterator[AbstractBaseUser]:
    """The account as each model has it that inherits from the user model, the lowest first."""
    for link in _links_below(type(user)):
        # Not by a manager of the site, which may hide the row.
        rows: models.QuerySet[Any] = models.QuerySet(link.model, using=database.alias())
        for row in rows.filter(**{link.attname: user.pk}):
            yield from _rows_below(row)
            yield row


def _links_below(model: type[models.Model]) -> Iterator[Column]:
    """The column of each model that inherits from ``model``, in a table of its own."""
    for relation in model._meta.related_objects:
        if getattr(relation, "parent_link", False):
            yield relation.field


def cannot_blank(model: type[models.Model]) -> list[str]:
    """The fields of ``model`` that an erasure leaves as they are, and of those that inherit."""
    names = [field.name for field in personal_fields(model) if _blank(field) is None]
    for link in _links_below(model):
        for name in cannot_blank(link.model):
            if "." in name:
                names.append(name)
            elif name not in names:
                names.append(f"{link.model.__name__}.{name}")
    return names


def delete_files(user: AbstractBaseUser) -> None:
    """Delete the files of ``user`` from their storage, except a default, which others share."""
    for field in user._meta.concrete_fields:
        if isinstance(field, models.FileField):
            file = getattr(user, field.name)
            if file.name != field.get_default():
                file.delete(save=False)


def personal_fields(model: type[models.Model]) -> Iterator[Column]:
    """The fields of ``model`` that may say something about the person."""
    for field in model._meta.concrete_fields:
        if field.primary_key or field.is_relation or field.generated:
            continue
        is_date_of_row = getattr(field, "auto_now_add", False)
        is_flag = isinstance(field, models.BooleanField)
        if not (is_date_of_row or is_flag or field.name in KEPT):
            yield field


def _blank(field: Column) -> Callable[[], object] | None:
    """A function that makes a value without meaning, or None if the field cannot be blanked.

    It is not called here, because a field's default may run a query.
    """
    rules = uniqueness.rules_of(field.model)
    differing = [rule for rule in rules if not rule.takes_null(field)]

    if isinstance(field, TEXTS):
        if differing:
            return lambda: _random_text(field)
        if field.null:
            return _nothing
        return str

    # If a text of the same rule differs, this field may repeat.
    if not all(rule.has_text for rule in differing):
        return None

    if field.null:
        return _nothing
    if field.has_default() or isinstance(field, models.FileField):
        return cast("Callable[[], object]", field.get_default)
    if isinstance(field, models.DateTimeField):
        if settings.USE_TZ:
            return lambda: LONG_PAST
        return lambda: LONG_PAST.replace(tzinfo=None)
    if isinstance(field, models.DateField):
        return LONG_PAST.date
    return None


def _nothing() -> None:
    """The value of a column that may be NULL."""


def _random_text(field: Column) -> str:
    """A text that no other account has: for an e-mail field an address that nobody can have."""
    end = "-erased"
    if isinstance(field, models.EmailField):
        end = "@erased.invalid"
    text = uuid.uuid4().hex + end
    return text[: field.max_length]
