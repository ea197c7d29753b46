"""Models that can keep former versions of an account, recognised by their fields."""

from collections.abc import Iterator
from typing import TypeAlias

from django.apps import apps
from django.contrib.contenttypes.models import ContentType
from django.db import models

from django_identity import anonymisation, database

FREE_TEXTS = (models.TextField, models.JSONField)
# Every site has those of Django. What they hold, the log of the admin, stands in the documentation.
NOT_ASKED = ("django.contrib.", "django_identity.")
Model: TypeAlias = type[models.Model]


def keepers_of(user_model: Model) -> list[str]:
    """The labels of the models, and what django-simple-history calls its manager of versions."""
    labels = [model._meta.label for model in _keepers(user_model)]
    manager = getattr(user_model._meta, "simple_history_manager_attribute", None)
    if manager:
        labels.append(f"{user_model.__name__}.{manager}")
    return sorted(labels)


def _keepers(user_model: Model) -> Iterator[Model]:
    known = {field.name for field in anonymisation.personal_fields(user_model)}

    for model in apps.get_models():
        if model.__module__.startswith(NOT_ASKED):
            continue
        # The user model itself, or what it is made of.
        if issubclass(model, user_model) or issubclass(user_model, model):
            continue

        if known <= database.field_names(model) or _holds_text_about_any(model):
            yield model


def _holds_text_about_any(model: Model) -> bool:
    """Whether a row refers to a row of any model, and has text beside its key."""
    options = model._meta
    keys = {getattr(field, "fk_field", "") for field in options.private_fields}

    refers = False
    has_text = False
    for field in options.concrete_fields:
        refers |= field.related_model is ContentType
        has_text |= isinstance(field, FREE_TEXTS) and field.name not in keys
    return refers and has_text
