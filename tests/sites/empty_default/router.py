"""Sends everything to the only database that there is."""

from __future__ import annotations

from typing import Any


class OneRouter:
    def db_for_read(self, model: Any, **_hints: Any) -> str:
        return "people"

    db_for_write = db_for_read
