"""One time limit for a whole request, from the connection to the last byte."""

import socket
import threading
from collections.abc import Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

import httpx


class TimeLimit:
    """Closes the connection of a request when its time is over, so that the block times out.

    httpx has a time-out for each single read, so a receiver that sends single bytes could hold a
    request for ever.

    Raises:
        httpx.ReadTimeout: the block did not end in time.
    """

    def __init__(self, seconds: float) -> None:
        self._timer = threading.Timer(seconds, self._cut)
        self._timer.daemon = True
        self._over = False
        self._connection: socket.socket | None = None

    def notice(self, step: str, about: Mapping[str, Any]) -> None:
        """Store the connection. For httpx's extension ``trace``."""
        if step in {"connection.connect_tcp.complete", "connection.start_tls.complete"}:
            self._connection = about["return_value"].get_extra_info("socket")
            if self._over:
                self._cut()

    def _cut(self) -> None:
        """Close the connection, also during a read."""
        self._over = True
        if self._connection is not None:
            with suppress(OSError):
                socket.socket.shutdown(self._connection, socket.SHUT_RDWR)

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._timer.cancel()
        if self._over and (error is None or isinstance(error, httpx.HTTPError)):
            raise httpx.ReadTimeout("The answer takes too long.") from error
