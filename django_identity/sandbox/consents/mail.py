"""E-mails: printed by the process, and stored for the control API."""

import contextlib
import functools
import os
import queue
import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from django.core.mail import EmailMessage
from django.core.mail.backends.console import EmailBackend as ConsoleBackend

from django_identity.sandbox.instruments import clock

KEPT_EMAILS = 1000
_STDOUT = 1


@dataclass(frozen=True, slots=True)
class SentEmail:
    """One e-mail, as the control API shows it."""

    to: tuple[str, ...]
    subject: str
    body: str
    sent_at: str


_lock = threading.Lock()
_sent: deque[SentEmail] = deque(maxlen=KEPT_EMAILS)
_printed: queue.SimpleQueue[str] = queue.SimpleQueue()


def sent() -> list[dict[str, Any]]:
    """Return the sent e-mails, oldest first."""
    with _lock:
        return [asdict(each) for each in _sent]


def forget() -> None:
    """Empty the list."""
    with _lock:
        _sent.clear()


class _Printing:
    """Standard output, written by a separate thread.

    The process that started the sandbox may have stopped reading the pipe. A full pipe must not
    block a response.
    """

    def __init__(self) -> None:
        threading.Thread(target=self._print, daemon=True).start()

    def write(self, text: str) -> None:
        """Queue ``text`` for the thread."""
        _printed.put(text)

    def flush(self) -> None:
        """Do nothing: nothing is buffered."""

    def _print(self) -> None:
        with contextlib.suppress(OSError):  # nobody is left to read
            while True:
                unwritten = _printed.get().encode()
                while unwritten:
                    unwritten = unwritten[os.write(_STDOUT, unwritten) :]


@functools.cache
def _printing() -> _Printing:
    """Return the stream. Its thread starts with the first e-mail."""
    return _Printing()


class EmailBackend(ConsoleBackend):
    """Django's console back end that also keeps what it printed."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs | {"stream": _printing()})

    def send_messages(self, email_messages: Sequence[EmailMessage]) -> int:
        """Print and keep the messages."""
        moment = clock.timestamp(clock.now())
        with _lock:
            _sent.extend(
                SentEmail(tuple(each.to), str(each.subject), str(each.body), moment)
                for each in email_messages
            )
        return super().send_messages(email_messages) or 0
