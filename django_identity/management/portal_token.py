"""The developer portal's session token: from the environment or typed, never an argument.

The arguments of a process are for everybody on the machine to see.
"""

from __future__ import annotations

import os
import re
from getpass import getpass

from django.core.management.base import CommandError

VARIABLE = "IDENTITY_PORTAL_TOKEN"
# RFC 6750 §2.1, with the length of our own: it goes into a header.
TOKEN = re.compile(r"[A-Za-z0-9._~+/=-]{1,4096}")


def portal_token() -> str:
    """The token. Raises ``CommandError`` if what was given is none."""
    token = os.environ.get(VARIABLE) or getpass("Developer portal session token: ")
    if not TOKEN.fullmatch(token.strip()):
        raise CommandError(f"That is no session token. Set {VARIABLE}, or type it.")
    return token.strip()
