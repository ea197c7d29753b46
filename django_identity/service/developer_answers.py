"""The answers of the developer endpoints as frozen values. Their ``repr`` shows no secret."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from django_identity.exceptions import MalformedAnswer
from django_identity.service.messages import text_of


@dataclass(frozen=True, slots=True)
class RotatedSecret:
    """The new client secret of one mode. The previous one is void."""

    mode: str
    client_id: str
    client_secret: str = field(repr=False)

    @classmethod
    def parse(cls, body: dict[str, Any]) -> RotatedSecret:
        """Raises ``MalformedAnswer``."""
        return cls(
            mode=_required(body, "mode", "rotate_secret"),
            client_id=_required(body, "clientId", "rotate_secret"),
            client_secret=_required(body, "clientSecret", "rotate_secret"),
        )


@dataclass(frozen=True, slots=True, repr=False)
class NewTestUser:
    """A new sandbox user."""

    user_id: str
    email: str
    password: str

    @classmethod
    def parse(cls, body: dict[str, Any]) -> NewTestUser:
        """Raises ``MalformedAnswer``."""
        return cls(
            user_id=_required(body, "userId", "test_users"),
            email=_required(body, "email", "test_users"),
            password=_required(body, "password", "test_users"),
        )


def _required(body: dict[str, Any], name: str, endpoint: str) -> str:
    text = text_of(body, name, endpoint)
    if not text or not text.isprintable():
        raise MalformedAnswer(f"no usable {name}", endpoint=endpoint)
    return text
