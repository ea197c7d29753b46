"""The time between the beginning and the end of a request, without one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.core.signals import request_finished, request_started
from django.db import close_old_connections


@contextmanager
def a_request() -> Iterator[None]:
    """As a server begins and ends one; connections stay open, as with Django's test client."""
    signals = (request_started, request_finished)
    for signal in signals:
        signal.disconnect(close_old_connections)
    try:
        request_started.send(sender=None, environ={})
        yield
    finally:
        request_finished.send(sender=None)
        for signal in signals:
            signal.connect(close_old_connections)
