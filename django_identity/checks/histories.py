"""Which models can keep former versions of an account. The models tell, whichever app has them."""

from collections.abc import Iterator

from django.apps import apps
from django.contrib.contenttypes.models import ContentType
from django.db import models

from django_identity import anonymisation

TEXTS = (models.TextField, models.JSONField)
# Every site has these, and the documentation names what they hold: the log of Django's admin.
OF_DJANGO = "django.contrib."


def keepers_of(user_model: type[models.Model]) -> list[str]:
    """The labels of the models, and what django-simple-history calls its manager of versions."""
    manager = getattr(user_model._meta, "simple_history_manager_attribute", None)
    found = {f"{user_model.__name__}.{manager}"} if manager else set()
    return sorted(found | {each._meta.label for each in _keepers(user_model)})


def _keepers(user_model: type[models.Model]) -> Iterator[type[models.Model]]:
    known = {field.name for field in anonymisation.personal_fields(user_model)}
    for model in apps.get_models():
        is_the_users = issubclass(model, user_model) or issubclass(user_model, model)
        if is_the_users or model.__module__.startswith((OF_DJANGO, "django_identity.")):
            continue
        names = {field.name for field in model._meta.concrete_fields}
        if known <= names or _holds_text_about_any(model):
            yield model


def _holds_text_about_any(model: type[models.Model]) -> bool:
    """Whether a row refers to a row of any model, and has text beside its key."""
    fields = model._meta.concrete_fields
    if not any(field.related_model is ContentType for field in fields):
        return False
    keys = {getattr(each, "fk_field", "") for each in model._meta.private_fields}
    return any(isinstance(each, TEXTS) for each in fields if each.name not in keys)
