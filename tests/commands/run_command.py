"""Run a command as a shell does: what it writes, and how it ends."""

import io
from typing import NamedTuple

from django.core.management import CommandError, call_command


class Ran(NamedTuple):
    out: str
    err: str
    error: str
    code: int


def run(*arguments: object) -> Ran:
    out, err, error, code = io.StringIO(), io.StringIO(), "", 0
    try:
        call_command(*map(str, arguments), stdout=out, stderr=err)
    except CommandError as failed:
        error, code = str(failed), failed.returncode
    return Ran(out.getvalue(), err.getvalue(), error, code)
