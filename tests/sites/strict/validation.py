"""Every row of every model must be valid before it is saved."""

from typing import Any

from django.db.models.signals import pre_save


def validate_every_row() -> None:
    pre_save.connect(_validate)


def _validate(instance: Any, **_about: Any) -> None:
    instance.full_clean()
