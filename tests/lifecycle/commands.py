"""What a command says."""

import io
from typing import Any

from django.core.management import CommandError, call_command


def said_by(name: str, *arguments: Any, may_fail: bool = False) -> str:
    out = io.StringIO()
    try:
        call_command(name, *arguments, stdout=out)
    except (CommandError, SystemExit):
        if not may_fail:
            raise
    return out.getvalue()
