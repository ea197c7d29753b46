"""Reads from the replica, writes to the primary."""

from __future__ import annotations

from typing import Any

from django.apps import apps


class ReplicaRouter:
    def db_for_read(self, model: Any, **_hints: Any) -> str:
        return "replica"

    def db_for_write(self, model: Any, **_hints: Any) -> str:
        return "default"

    def allow_relation(self, one: Any, other: Any, **_hints: Any) -> bool:
        return True


def copy() -> None:
    """Bring the replica to the state of the primary."""
    for model in (each for each in apps.get_models() if not each._meta.proxy):
        rows = model._base_manager.using("default").all()
        model._base_manager.using("replica").all().delete()
        model._base_manager.using("replica").bulk_create(list(rows))
