"""Authlib's client for Django. The site finds and signs in the user itself, in a few lines."""

from __future__ import annotations

APPS: list[str] = []
MIDDLEWARE: list[str] = []
BACKENDS: list[str] = []
START, BY_FORM = "/login/", False


def settings(service: str) -> dict[str, object]:
    return {"SERVICE": service}
