"""The developer portal's session token, from the environment or typed in.

It is never an argument, because every user of the machine can see the arguments of a process.
"""

from __future__ import annotations

import os
import re
from getpass import getpass

from django.core.management.base import CommandError

VARIABLE = "IDENTITY_PORTAL_TOKEN"
# RFC 6750 §2.1. The limit of the length is our own, because the token goes into a header.
TOKEN = re.compile(r"[A-Za-z0-9._~+/=-]{1,4096}")


def portal_token() -> str:
    """The token. Raises ``CommandError`` if the text is not a token."""
    token = os.environ.get(VARIABLE) or getpass("Developer portal session token: ")
    if not TOKEN.fullmatch(token.strip()):
        raise CommandError(f"That is no session token. Set {VARIABLE}, or type it.")
    return token.strip()
