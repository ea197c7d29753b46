"""The base class of the package's commands."""

from __future__ import annotations

from typing import Any, TextIO, cast

from django.core.management.base import BaseCommand, CommandError, OutputWrapper
from tqdm import tqdm

from django_identity.exceptions import IdentityError

INTERRUPTED = 130


class IdentityCommand(BaseCommand):
    """Turns an ``IdentityError`` into a message with its code and detail, without a traceback."""

    def execute(self, *args: Any, **options: Any) -> str | None:
        try:
            return super().execute(*args, **options)
        except IdentityError as error:
            raise CommandError(f"{error.code}: {error}") from None

    def progress(self, *, total: int) -> tqdm[Any]:
        """A progress bar on standard error, only in a terminal."""
        # A separate wrapper, because the command's wrapper adds a new line to each text.
        file = OutputWrapper(cast("TextIO", self.stderr._out), ending="")
        return tqdm(total=total, file=file, disable=not self.stderr.isatty(), mininterval=0)
