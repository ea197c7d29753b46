"""A network whose every step shares one deadline: connect, TLS, each read and each write.

httpcore counts its time-outs for each step by itself; a server that sends a byte a second would
keep a call alive for ever. Here each step gets what is left of the whole.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import httpcore

_deadline: ContextVar[float] = ContextVar("identity_call_deadline")


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Everything that the bounded network does inside the block shares these seconds."""
    token = _deadline.set(time.monotonic() + seconds)
    try:
        yield
    finally:
        _deadline.reset(token)


def seconds_left() -> float:
    """What is left of the block's seconds; negative when they are over."""
    return _deadline.get() - time.monotonic()


class BoundedNetwork(httpcore.NetworkBackend):
    """httpcore's own sockets, each step bounded by what is left of the call."""

    def __init__(self) -> None:
        self._sockets = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        left = _left_or(httpcore.ConnectTimeout)
        stream = self._sockets.connect_tcp(host, port, left, local_address, socket_options)
        return _BoundedStream(stream)


class _BoundedStream(httpcore.NetworkStream):
    def __init__(self, stream: httpcore.NetworkStream) -> None:
        self._stream = stream

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, _left_or(httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, _left_or(httpcore.WriteTimeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        left = _left_or(httpcore.ConnectTimeout)
        return _BoundedStream(self._stream.start_tls(ssl_context, server_hostname, left))

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def _left_or(over: type[httpcore.TimeoutException]) -> float:
    left = seconds_left()
    if left <= 0:
        raise over
    return left
