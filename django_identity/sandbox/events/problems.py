"""Why a receiver gave no answer: stored in English, translated where a page shows it."""

import re

from django.utils.translation import gettext

from django_identity.sandbox.server.marking import marked as _

NO_ADDRESS = _("The application has no webhook address any more.")
NO_ANSWER = _("No answer within %(seconds)s seconds.")
NO_CONNECTION = _("No connection: it was refused, the host is unknown, or TLS failed.")
INCOMPLETE = _("The connection ended before a complete answer.")
PRIVATE = _("The host stands for a private address; only this machine may choose one.")
REDIRECT = _("A redirect is not followed.")

_SECONDS = re.compile(re.escape(NO_ANSWER).replace(r"%\(seconds\)s", "(?P<seconds>.+)"))


def translated(problem: str) -> str:
    """Return a stored problem in the current language."""
    if in_time := _SECONDS.fullmatch(problem):
        return gettext(NO_ANSWER) % in_time.groupdict()
    return gettext(problem) if problem else ""
