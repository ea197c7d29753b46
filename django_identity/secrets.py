"""``Secret``: a token, key or password, safe from being printed by mistake."""

import hmac
from typing import NoReturn


class Secret:
    """A text that opens only by ``reveal()``, in the argument of its sink alone.

    Formatting, joining and pickling it raise ``TypeError``.
    """

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """The text itself."""
        return self._value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return hmac.compare_digest(self.reveal().encode(), other.reveal().encode())

    def __hash__(self) -> int:
        return hash(self._value)

    def __repr__(self) -> str:
        return "Secret(***)"

    def __str__(self) -> NoReturn:
        raise TypeError("call reveal()")  # else a form would send the mask

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret is not pickled")
