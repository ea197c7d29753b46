"""Anonymise an account: nobody can be recognised by it or sign in to it."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any, cast

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser
from django.db import models

KEPT = frozenset({"password", "date_joined"})
# Every database can store this time, in every time zone.
LONG_PAST = datetime(1900, 1, 1, tzinfo=UTC)


def anonymise(user: AbstractBaseUser) -> None:
    """Blank the fields of ``user`` that may say who it was, and disable the account.

    Texts, dates and files are blanked, and whatever may be empty or has a default. Flags, relations
    and the creation date stay, and so do the fields that ``cannot_blank`` names. Unique texts get
    random values. Files are deleted from their storage. Raises ``IntegrityError`` if a constraint
    over several fields refuses the empty ones.
    """
    delete_files(user)
    for field in _personal_fields(type(user)):
        blank = _blank(field)
        if blank is not None:
            setattr(user, field.attname, blank())
    if any(field.name == "is_active" for field in user._meta.concrete_fields):
        user.is_active = False
    user.set_unusable_password()
    user.save()


def cannot_blank(model: type[AbstractBaseUser]) -> list[str]:
    """The fields of ``model`` that an erasure leaves as they are."""
    return [field.name for field in _personal_fields(model) if _blank(field) is None]


def delete_files(user: AbstractBaseUser) -> None:
    """Delete the files of ``user`` from their storage, except a default, which others share."""
    for field in user._meta.concrete_fields:
        if isinstance(field, models.FileField):
            file = getattr(user, field.name)
            if file.name != field.get_default():
                file.delete(save=False)


def _personal_fields(model: type[AbstractBaseUser]) -> Iterator[models.Field[Any, Any]]:
    for field in model._meta.concrete_fields:
        is_ours = field.primary_key or field.is_relation or field.generated or field.name in KEPT
        is_made = isinstance(field, models.BooleanField) or getattr(field, "auto_now_add", False)
        if not (is_ours or is_made):
            yield field


def _blank(field: models.Field[Any, Any]) -> Callable[[], object] | None:
    """What gives the value that says nothing. It is not called here: a default may be a query."""
    # A constraint of the model may be what makes the name for the sign-in unique.
    is_unique = field.unique or field.name == getattr(field.model, "USERNAME_FIELD", "")
    if field.null:
        return lambda: None
    if isinstance(field, (models.CharField, models.TextField)):
        if not is_unique:
            return str
        return lambda: f"{uuid.uuid4().hex}-erased"[: field.max_length]
    if field.unique:
        return None
    if field.has_default() or isinstance(field, models.FileField):
        return cast("Callable[[], object]", field.get_default)
    if isinstance(field, models.DateTimeField):
        moment = LONG_PAST if settings.USE_TZ else LONG_PAST.replace(tzinfo=None)
        return lambda: moment
    if isinstance(field, models.DateField):
        return lambda: LONG_PAST.date()
    return None
