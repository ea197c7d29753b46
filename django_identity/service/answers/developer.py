"""The answers of the developer endpoints as frozen values. Their ``repr`` shows no secret."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from django_identity.service.answers.members import required_line


@dataclass(frozen=True, slots=True)
class RotatedSecret:
    """The new client secret of one mode. The previous one is void."""

    mode: str
    client_id: str
    client_secret: str = field(repr=False)

    @classmethod
    def parse(cls, body: dict[str, Any]) -> RotatedSecret:
        return cls(
            mode=required_line(body, "mode", "rotate_secret"),
            client_id=required_line(body, "clientId", "rotate_secret"),
            client_secret=required_line(body, "clientSecret", "rotate_secret"),
        )


@dataclass(frozen=True, slots=True, repr=False)
class NewTestUser:
    """A new sandbox user."""

    user_id: str
    email: str
    password: str

    @classmethod
    def parse(cls, body: dict[str, Any]) -> NewTestUser:
        return cls(
            user_id=required_line(body, "userId", "test_users"),
            email=required_line(body, "email", "test_users"),
            password=required_line(body, "password", "test_users"),
        )
