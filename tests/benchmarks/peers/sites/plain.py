"""Django alone."""

from __future__ import annotations

APPS: list[str] = []
MIDDLEWARE: list[str] = []
BACKENDS: list[str] = []


def settings(service: str) -> dict[str, object]:
    return {}
