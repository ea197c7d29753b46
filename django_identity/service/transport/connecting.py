"""Open a TCP connection to a host within one time limit, including name resolution.

The system's resolver has no time-out, so it runs in a separate thread, which all concurrent
look-ups of the same host share. The addresses of a host are tried as in RFC 8305: if an address
does not answer within 250 ms, the next one is tried in parallel.
"""

import errno
import os
import selectors
import socket
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from itertools import chain, zip_longest
from typing import Any

NEXT_AFTER = 0.25


class HostUnknown(OSError):
    """The resolver does not know the name."""


Address = tuple[Any, ...]
"""What ``socket.getaddrinfo`` returns: family, type, protocol, canonical name, address."""

_lookups: dict[tuple[str, int], Future[list[Address]]] = {}
_looking = threading.Lock()


def connect(host: str, port: int, *, left: Callable[[], float]) -> socket.socket:
    """Open a socket. ``left`` returns the remaining seconds.

    Raises ``TimeoutError``, or the ``OSError`` of the resolver or of the last address.
    """
    return _first_of(_in_turn(_resolve(host, port, seconds=left())), left=left)


def _resolve(host: str, port: int, *, seconds: float) -> list[Address]:
    try:
        return socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
        )
    except (OSError, UnicodeError):
        """A name, then."""
    with _looking:
        lookup = _lookups.get((host, port))
        if lookup is None:
            lookup = _lookups[host, port] = Future()
            threading.Thread(target=_look_up, args=(host, port, lookup), daemon=True).start()
    return lookup.result(timeout=max(0.0, seconds))


def _look_up(host: str, port: int, lookup: Future[list[Address]]) -> None:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        lookup.set_exception(HostUnknown(type(error).__name__))
    else:
        lookup.set_result(found)
    finally:
        # Later callers start a new look-up, so no caller gets an answer older than its question.
        _lookups.pop((host, port), None)


def _in_turn(addresses: Sequence[Address]) -> list[Address]:
    """The addresses, alternating between IPv6 and IPv4 (RFC 8305 §4)."""
    first = [address for address in addresses if address[0] == addresses[0][0]]
    others = [address for address in addresses if address[0] != addresses[0][0]]
    return [one for one in chain(*zip_longest(first, others)) if one is not None]


def _first_of(addresses: list[Address], *, left: Callable[[], float]) -> socket.socket:
    """The first connected socket. The others are closed."""
    failure = OSError("a name without an address")
    waiting, next_at = iter(addresses), 0.0
    begun: dict[int, socket.socket] = {}
    with selectors.DefaultSelector() as selector:
        try:
            while True:
                if not begun or time.monotonic() >= next_at:
                    address = next(waiting, None)
                    if address is None and not begun:
                        raise failure
                    next_at = time.monotonic() + NEXT_AFTER if address else float("inf")
                    if address is not None:
                        try:
                            attempt = _begin(address)
                        except OSError as error:
                            failure, next_at = error, 0.0
                            continue
                        begun[attempt.fileno()] = attempt
                        selector.register(attempt, selectors.EVENT_WRITE)
                for key, _ in selector.select(_pause(left(), next_at)):
                    selector.unregister(key.fd)
                    attempt = begun.pop(key.fd)
                    failed = attempt.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                    if not failed:
                        return attempt
                    attempt.close()
                    failure = OSError(failed, os.strerror(failed))
        finally:
            for attempt in begun.values():
                attempt.close()


def _begin(address: Address) -> socket.socket:
    """A connecting socket. When it becomes writable, its ``SO_ERROR`` has the result.

    Raises ``OSError`` for an address that cannot be tried.
    """
    family, kind, protocol, _, target = address
    attempt = socket.socket(family, kind, protocol)
    attempt.setblocking(False)
    error = attempt.connect_ex(target)
    if error not in (0, errno.EINPROGRESS):
        attempt.close()
        raise OSError(error, os.strerror(error))
    attempt.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return attempt


def _pause(left: float, next_at: float) -> float:
    """Seconds to wait for the current attempts. Raises ``TimeoutError`` if no time is left."""
    if left <= 0:
        raise TimeoutError
    return min(left, max(0.0, next_at - time.monotonic()))


# A forked process has no threads of its parent, so their look-ups would never end there.
os.register_at_fork(after_in_child=_lookups.clear)
