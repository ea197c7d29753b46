"""Libraries that load at their first use, not at the start of a site.

httpx, PyJWT and cryptography take more time and memory to load than the rest of this package. Open
gates, pages and webhooks need none of them; the first sign-in or call of the service does.
"""

from importlib import import_module
from typing import Any


class Deferred:
    """The module ``name``, which is imported when one of its names is first used.

    For type checkers, import the module itself under ``if TYPE_CHECKING``.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        value = getattr(import_module(self._name), attribute)
        # The next use finds it here, without this method.
        setattr(self, attribute, value)
        return value
