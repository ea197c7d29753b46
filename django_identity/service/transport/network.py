"""A network back end for httpcore that keeps the deadline of a call in every step.

httpcore has a time-out for each single step, so a server that sends one byte a second could keep a
call alive for ever. Here each step (name resolution, connection, TLS, reads, writes) gets only the
remaining time.
"""

import selectors
import socket
import ssl
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import httpcore

from django_identity.service.transport.connecting import connect
from django_identity.service.transport.deadline import seconds_left


class BoundedNetwork(httpcore.NetworkBackend):
    """TCP connections. Each step is limited to the remaining time of the call."""

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        with _failing(late=httpcore.ConnectTimeout, failed=httpcore.ConnectError):
            return _BoundedStream(connect(host, port, left=seconds_left))


class _BoundedStream(httpcore.NetworkStream):
    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        with _failing(late=httpcore.ReadTimeout, failed=httpcore.ReadError):
            self._limit()
            return self._socket.recv(max_bytes)

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        with _failing(late=httpcore.WriteTimeout, failed=httpcore.WriteError):
            while buffer:
                self._limit()
                buffer = buffer[self._socket.send(buffer) :]

    def close(self) -> None:
        self._socket.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        with _failing(late=httpcore.ConnectTimeout, failed=httpcore.ConnectError):
            try:
                self._limit()
                secured = ssl_context.wrap_socket(self._socket, server_hostname=server_hostname)
            except BaseException:
                self.close()
                raise
        return _BoundedStream(secured)

    def get_extra_info(self, info: str) -> Any:
        if info == "ssl_object":
            return self._socket if isinstance(self._socket, ssl.SSLSocket) else None
        if info == "is_readable":
            return self._is_readable()
        if info == "server_addr":
            return self._socket.getpeername()
        if info == "client_addr":
            return self._socket.getsockname()
        return self._socket if info == "socket" else None

    def _limit(self) -> None:
        """Set the next step's time-out to the remaining time. Raises ``TimeoutError`` if none."""
        left = seconds_left()
        if left <= 0:
            raise TimeoutError
        self._socket.settimeout(left)

    def _is_readable(self) -> bool:
        """Whether an idle connection has something to read, usually because it was closed."""
        if self._socket.fileno() < 0:
            return True
        with selectors.DefaultSelector() as selector:
            selector.register(self._socket, selectors.EVENT_READ)
            return bool(selector.select(0))


@contextmanager
def _failing(*, late: type[Exception], failed: type[Exception]) -> Iterator[None]:
    """Translate errors of the system into httpcore's, without their data."""
    try:
        yield
    except TimeoutError:
        raise late from None
    except OSError as error:
        raise failed(type(error).__name__) from None
