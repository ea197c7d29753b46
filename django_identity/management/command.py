"""What the package's commands have in common."""

from __future__ import annotations

from typing import Any, TextIO, cast

from django.core.management.base import BaseCommand, CommandError, OutputWrapper
from tqdm import tqdm

from django_identity.exceptions import IdentityError

INTERRUPTED = 130


class IdentityCommand(BaseCommand):
    """Ends with one sentence where something fails: the error's code and detail, no traceback."""

    def execute(self, *args: Any, **options: Any) -> str | None:
        try:
            return super().execute(*args, **options)
        except IdentityError as error:
            raise CommandError(f"{error.code}: {error}") from None

    def progress(self, *, total: int) -> tqdm[Any]:
        """A bar on standard error; there is none unless a person looks at it."""
        # A wrapper of its own: the command's ends each piece of text with a new line.
        file = OutputWrapper(cast("TextIO", self.stderr._out), ending="")
        return tqdm(total=total, file=file, disable=not self.stderr.isatty(), mininterval=0)
