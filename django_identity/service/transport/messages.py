"""A request to the service, and its answer."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from django_identity.strict_json import read_object

LARGEST_ANSWER = 256 * 1024


@dataclass(frozen=True, slots=True)
class Call:
    """One request. ``endpoint`` is its name in errors and logs.

    ``sent_once``: the request spends a code or a token, so it must never be repeated.
    """

    endpoint: str
    method: str
    url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    form: Mapping[str, str] | None = field(default=None, repr=False)
    json: Mapping[str, Any] | None = field(default=None, repr=False)
    seconds: float = 10.0
    largest: int = LARGEST_ANSWER
    sent_once: bool = False


@dataclass(frozen=True)
class Answer:
    """The response: any status except a redirect, and at most the allowed number of bytes."""

    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)

    @cached_property
    def members(self) -> dict[str, Any]:
        """The JSON object of the body. Raises ``NotStrictJSON``."""
        return read_object(self.body)
