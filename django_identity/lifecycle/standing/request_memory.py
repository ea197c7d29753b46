"""What is remembered until the request ends, and reaches nobody after it."""

from __future__ import annotations

import threading
import time
from collections.abc import Hashable
from contextvars import ContextVar
from typing import Any

from django.core.signals import request_finished, request_started

from django_identity import signals

# A response that streams for hours is one request: what it remembers has to be asked again.
LONGEST = 5.0
CHANGES = (
    signals.identity_linked,
    signals.identity_unlinked,
    signals.consent_granted,
    signals.consent_revoked,
    signals.kyc_changed,
    signals.claims_changed,
    signals.data_erased,
)


class _Request:
    """One request, and what is kept in it; nothing any more once it has ended."""

    def __init__(self) -> None:
        self.kept: dict[Hashable, tuple[float, Any]] = {}
        self.has_ended = False


_of_context: ContextVar[_Request | None] = ContextVar("django_identity_request", default=None)


class RequestMemory(threading.local):
    """The memory of the request that runs in this thread.

    All synchronous code of a request runs in one thread, under ASGI too, where Django keeps one for
    each request; an async view finds there what its gate has asked. Without a request (a worker, a
    channel) nothing is remembered. Nothing is put on a user: it would travel with them.
    """

    def __init__(self) -> None:
        self._request: _Request | None = None

    def begin(self, **_kwargs: object) -> None:
        """Receives ``request_started``."""
        self.end()
        self._request = _Request()

    def end(self, **_kwargs: object) -> None:
        """Receives ``request_finished``."""
        if self._request is not None:
            self._request.has_ended = True
        self._request = None

    def forget(self, **_kwargs: object) -> None:
        """Receives our own signals: what this very request has changed is asked anew."""
        if self._request is not None:
            self._request.kept.clear()

    def recall(self, key: Hashable) -> Any:
        """What was kept in this request, and not too long ago, or None."""
        request = self._request or _of_context.get()
        if request is None or request.has_ended:
            return None
        kept_at, value = request.kept.get(key, (0.0, None))
        return value if time.monotonic() - kept_at <= LONGEST else None

    def keep(self, key: Hashable, value: object) -> None:
        """Remember ``value`` until the request ends, if there is one."""
        if self._request is not None:
            self._request.kept[key] = (time.monotonic(), value)
            _of_context.set(self._request)


memory = RequestMemory()
request_started.connect(memory.begin, dispatch_uid="django_identity.request_memory.begin")
request_finished.connect(memory.end, dispatch_uid="django_identity.request_memory.end")
for change in CHANGES:
    change.connect(memory.forget, dispatch_uid="django_identity.request_memory.forget")
