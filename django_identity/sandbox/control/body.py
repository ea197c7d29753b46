"""The body of a control request."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, TypeVar

from django.db.models import Model, QuerySet

Row = TypeVar("Row", bound=Model)


class InvalidRequest(ValueError):
    """The body of a control request is invalid. The message says why."""


class UnknownObject(LookupError):
    """The control request names something that does not exist."""


def find(rows: QuerySet[Row], name: str) -> Row:
    """Return the one row of ``rows``. Raises ``UnknownObject`` if there is none."""
    row = rows.first()
    if row is None:
        raise UnknownObject(f"There is no such {name}.")
    return row


@dataclass(frozen=True, slots=True)
class Body:
    """The JSON object of a control request, with typed accessors.

    ``is_local``: the request comes from this machine. Otherwise it has the token.
    """

    members: Mapping[str, Any]
    is_local: bool = False

    def text(self, name: str, default: str = "") -> str:
        """Return a string member."""
        value = self.members.get(name, default)
        if not isinstance(value, str):
            raise InvalidRequest(f"{name} must be a string.")
        return value

    def flag(self, name: str) -> bool:
        """Return a boolean member; absent is false."""
        value = self.members.get(name, False)
        if not isinstance(value, bool):
            raise InvalidRequest(f"{name} must be true or false.")
        return value

    def number(self, name: str, default: float = 0) -> float:
        value = self.members.get(name, default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InvalidRequest(f"{name} must be a number.")
        return value

    def texts(self, name: str) -> list[str]:
        """Return a member that is a list of strings; absent is empty."""
        values = self.members.get(name, [])
        if not isinstance(values, list) or not all(isinstance(each, str) for each in values):
            raise InvalidRequest(f"{name} must be a list of strings.")
        return values

    def day(self, name: str, default: str) -> date:
        """Return a member that is a date, such as ``1990-01-31``."""
        try:
            return date.fromisoformat(self.text(name, default))
        except ValueError as error:
            raise InvalidRequest(f"{name} must be a date such as 1990-01-31.") from error

    def moment(self, name: str) -> datetime:
        """Return a member that is an ISO 8601 timestamp with its offset."""
        try:
            moment = datetime.fromisoformat(self.text(name))
        except ValueError as error:
            raise InvalidRequest(f"{name} must be like 2030-01-31T12:00:00Z.") from error
        if moment.tzinfo is None:
            raise InvalidRequest(f"{name} lacks its offset; end it with Z for UTC.")
        return moment
