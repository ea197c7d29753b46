"""A session engine of a site's own: it keeps what it is told under lock, and is met at work."""

from __future__ import annotations

import codecs
from collections.abc import Callable
from typing import Any

from django.contrib.sessions.backends.db import SessionStore as DBStore


class SessionStore(DBStore):
    """Strict about what it reads. ``meanwhile``: what happens while the first one is opened."""

    meanwhile: list[Callable[[], object]] = []

    def encode(self, session_dict: dict[str, Any]) -> str:
        return codecs.encode(super().encode(session_dict), "rot13")

    def decode(self, session_data: str) -> dict[str, Any]:
        while self.meanwhile:
            self.meanwhile.pop()()
        if session_data == "damaged":
            raise ValueError(session_data)
        return super().decode(codecs.decode(session_data, "rot13"))
