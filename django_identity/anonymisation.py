"""An account that nobody can be recognised by, nor sign in to."""

from __future__ import annotations

import uuid
from typing import Any

from django.contrib.auth.models import AbstractBaseUser
from django.db.models import BooleanField, CharField, Field, FileField, JSONField, TextField

KEPT = frozenset({"password", "date_joined"})


def anonymise(user: AbstractBaseUser) -> None:
    """Empty every field of ``user`` that could say something about a person, and disable it.

    Texts, dates, numbers and files go; flags and relations stay. A text that must be unique becomes
    a random one. Files are deleted from their storage.
    """
    for field in user._meta.concrete_fields:
        if not (field.primary_key or field.is_relation or field.name in KEPT):
            _empty(user, field)
    if any(field.name == "is_active" for field in user._meta.concrete_fields):
        user.is_active = False
    user.set_unusable_password()
    user.save()


def _empty(user: AbstractBaseUser, field: Field[Any, Any]) -> None:
    if isinstance(field, BooleanField):
        return
    if isinstance(field, FileField):
        getattr(user, field.name).delete(save=False)
    elif isinstance(field, (CharField, TextField)) and (field.unique or not field.null):
        setattr(user, field.attname, _text(field))
    elif field.null:
        setattr(user, field.attname, None)
    elif field.has_default():
        setattr(user, field.attname, field.get_default())
    elif isinstance(field, JSONField):
        setattr(user, field.attname, {})


def _text(field: Field[Any, Any]) -> str:
    """Nothing, or a random name where two accounts may not have the same."""
    if not field.unique:
        return ""
    return f"erased-{uuid.uuid4().hex}"[: field.max_length]
