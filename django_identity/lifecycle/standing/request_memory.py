"""A memory for the current request only."""

import threading
import time
from collections.abc import Hashable
from contextvars import ContextVar
from typing import Any

from django.core.signals import request_finished, request_started

from django_identity import signals

# Seconds. A streaming response can last for hours, so values expire.
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
    """One request and its values. The end of the request deletes them."""

    def __init__(self) -> None:
        self.kept: dict[Hashable, tuple[float, Any]] = {}
        self.has_ended = False


_of_context: ContextVar[_Request | None] = ContextVar("django_identity_request", default=None)


class RequestMemory(threading.local):
    """The memory of the request that runs in this thread.

    All synchronous code of a request runs in one thread, under ASGI too, because Django uses one
    thread for each request. Without a request (a worker, a channel) nothing is remembered. Nothing
    is stored on the user object, which may be pickled or outlive the request.
    """

    def __init__(self) -> None:
        self._request: _Request | None = None

    def begin(self, **_kwargs: object) -> None:
        """Receive ``request_started``."""
        self.end()
        self._request = _Request()

    def end(self, **_kwargs: object) -> None:
        """Receive ``request_finished``."""
        if self._request is not None:
            self._request.has_ended = True
        self._request = None

    def forget(self, **_kwargs: object) -> None:
        """Receive the package's signals: forget values that this request has changed."""
        if (request := self._current()) is not None:
            request.kept.clear()

    def recall(self, key: Hashable) -> Any:
        """The value of ``key`` in this request, or None if it is missing or too old."""
        if (request := self._current()) is None:
            return None
        kept_at, value = request.kept.get(key, (0.0, None))
        return value if time.monotonic() - kept_at <= LONGEST else None

    def keep(self, key: Hashable, value: object) -> None:
        """Store ``value`` until the request ends. Without a request this does nothing."""
        if (request := self._current()) is not None:
            request.kept[key] = (time.monotonic(), value)
            # Seen by the async code that waits for this thread.
            _of_context.set(request)

    def _current(self) -> _Request | None:
        """The request of this thread, or the one for which async code or a thread of it runs."""
        request = self._request or _of_context.get()
        return None if request is None or request.has_ended else request


memory = RequestMemory()
request_started.connect(memory.begin, dispatch_uid="django_identity.request_memory.begin")
request_finished.connect(memory.end, dispatch_uid="django_identity.request_memory.end")
for change in CHANGES:
    change.connect(memory.forget, dispatch_uid="django_identity.request_memory.forget")
