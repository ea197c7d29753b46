"""One time limit for a whole request, from its connection to the last byte that is read."""

import socket
import threading
from collections.abc import Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

import httpx


class TimeLimit:
    """Cuts the connection of a request when its seconds are over; the block then times out.

    httpx counts its time-out for each read by itself, so a receiver that sends a byte now and then
    would hold a request for ever.

    Raises:
        httpx.ReadTimeout: the block did not end in time, whatever it made of the cut.
    """

    def __init__(self, seconds: float) -> None:
        self._timer = threading.Timer(seconds, self._cut)
        self._timer.daemon = True
        self._over = False
        self._connection: socket.socket | None = None

    def notice(self, step: str, about: Mapping[str, Any]) -> None:
        """Learn the connection; for httpx's extension ``trace``."""
        if step in {"connection.connect_tcp.complete", "connection.start_tls.complete"}:
            self._connection = about["return_value"].get_extra_info("socket")
            if self._over:
                self._cut()

    def _cut(self) -> None:
        """End the connection under whoever reads from it."""
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
