"""Reads go to a replica."""

from typing import Any


class ReplicaRouter:
    def db_for_read(self, model: Any, **_hints: Any) -> str:
        return "replica"

    def db_for_write(self, model: Any, **_hints: Any) -> str:
        return "default"

    def allow_relation(self, *_models: Any, **_hints: Any) -> bool:
        return True
