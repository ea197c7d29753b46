"""A bar for commands that take long: one line that is written again and again."""

from __future__ import annotations

import time

from django.core.management.base import OutputWrapper

WIDTH = 30
PAUSE = 0.1


class Progress:
    """Counts up to ``total`` on ``stream``; silent unless a person looks at it."""

    def __init__(self, stream: OutputWrapper, *, total: int) -> None:
        self._stream = stream
        self._total = max(total, 1)
        self._done = 0
        self._shown_at = 0.0
        self._is_watched = stream.isatty()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_raised: object) -> None:
        if self._is_watched and self._shown_at:
            self._show()
            self._write("\n")

    def advance(self, by: int) -> None:
        self._done += by
        if self._is_watched and time.monotonic() - self._shown_at >= PAUSE:
            self._show()

    def _show(self) -> None:
        self._shown_at = time.monotonic()
        share = min(self._done / self._total, 1.0)
        bar = "#" * round(share * WIDTH)
        self._write(f"\r[{bar:<{WIDTH}}] {share:4.0%}  {self._done:,} of {self._total:,}")

    def _write(self, text: str) -> None:
        self._stream.write(text, ending="")
        self._stream.flush()
