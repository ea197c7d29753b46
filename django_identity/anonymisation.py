"""Anonymise an account: nobody can be recognised by it or sign in to it."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterator
from datetime import UTC, datetime
from typing import Any, cast

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser
from django.db import models

from django_identity import database, uniqueness
from django_identity.uniqueness import Column

TEXTS = (models.CharField, models.TextField)
KEPT = frozenset({"password", "date_joined"})
# Every database can store this time, in every time zone.
LONG_PAST = datetime(1900, 1, 1, tzinfo=UTC)


def anonymise(user: AbstractBaseUser) -> None:
    """Blank the fields of ``user`` that may say who it was, and disable the account.

    Texts, dates and files are blanked, and whatever may be empty or has a default. Flags, relations
    and the creation date stay, and so do the fields that ``cannot_blank`` names. Texts that unique
    rules name get random values. Files are deleted from their storage. Rows of models that inherit
    from the user model are part of the account. Raises ``IntegrityError`` if a rule of the model or
    of the database refuses the result.
    """
    for row in (*_rows_below(user), user):
        _anonymise_row(row)


def _anonymise_row(user: AbstractBaseUser) -> None:
    """Blank the account as one model has it, and save it."""
    delete_files(user)
    blank(user)
    user.save()


def blank(user: AbstractBaseUser, *, leave: Collection[str] = ()) -> set[str]:
    """Blank the fields of the instance, without those to ``leave``, and disable the account.

    Returns the names of the fields that are blank.
    """
    names = set()
    for field in personal_fields(type(user)):
        value = _blank(field)
        if value is not None and field.name not in leave:
            setattr(user, field.attname, value())
            names.add(field.name)
    if "is_active" in database.field_names(user):
        user.is_active = False
    user.set_unusable_password()
    return names


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


def models_of_account(model: type[models.Model]) -> Iterator[Any]:
    """``model``, and all that inherit from it."""
    yield model
    for link in _links_below(model):
        yield from models_of_account(link.model)


def cannot_blank(model: type[models.Model]) -> list[str]:
    """The fields of ``model`` that an erasure leaves as they are, and of those that inherit."""
    left: dict[Column, str] = {}
    for each in models_of_account(model):
        for field in personal_fields(each):
            if _blank(field) is None:
                left.setdefault(
                    field,
                    field.name if each is model else f"{each.__name__}.{field.name}",
                )
    return [*left.values()]


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
    if isinstance(field, TEXTS):
        if _is_random(field):
            return lambda: _random_text(field)
        if uniqueness.is_named(field):
            return None
        if field.null:
            return _nothing
        return str

    if field.null:
        return _nothing
    if _must_stay(field):
        return None
    if field.has_default() or isinstance(field, models.FileField):
        return cast("Callable[[], object]", field.get_default)
    if isinstance(field, models.DateTimeField):
        if settings.USE_TZ:
            return lambda: LONG_PAST
        return lambda: LONG_PAST.replace(tzinfo=None)
    if isinstance(field, models.DateField):
        return LONG_PAST.date
    return None


def _is_random(field: Column) -> bool:
    """Whether a random text takes the place of the field's. A choice has no random value."""
    is_free = isinstance(field, TEXTS) and not field.choices
    return is_free and uniqueness.is_named(field)


def _must_stay(field: Column) -> bool:
    """Whether only this field may keep an account apart: no text of the same rule is random."""
    texts = {each.name for each in field.model._meta.fields if _is_random(each)}
    for rule in uniqueness.rules_of(field.model):
        if field.name in rule.columns and not rule.columns & texts:
            return True
    return False


def _nothing() -> None:
    """The value of a column that may be NULL."""


def _random_text(field: Column) -> str:
    """A text unlike any other account's: for an e-mail field an address that nobody can have."""
    end = "-erased"
    if isinstance(field, models.EmailField):
        end = "@erased.invalid"
    text = uuid.uuid4().hex + end
    return text[: field.max_length]
