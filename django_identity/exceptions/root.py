"""What every error has: a code, a stage, a recovery, a public sentence and a reference."""

from __future__ import annotations

import re
import secrets
from enum import StrEnum
from typing import ClassVar

from django.core.exceptions import ImproperlyConfigured
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

SERVICE_CODE = re.compile(r"[A-Za-z0-9_.:-]{1,64}")


class Stage(StrEnum):
    """Where in the life of an identity something failed."""

    CONFIGURATION = "configuration"
    AUTHORIZATION = "authorization"
    CONNECT = "connect"
    TOKEN = "token"  # noqa: S105  a stage's name
    SERVICE = "service"
    CREDENTIAL = "credential"
    LINKING = "linking"
    EVENT = "event"
    STORAGE = "storage"


class Recovery(StrEnum):
    """What the person can do next."""

    RETRY = "retry"
    RESTART = "restart"
    SIGN_IN_TO_LINK = "sign_in_to_link"
    VERIFY = "verify"
    CONTACT = "contact"


class IdentityError(Exception):
    """The root: ``except IdentityError`` catches everything this package raises on purpose.

    ``detail`` is for developers and logs, without secrets and persons; ``public_message`` is for
    the person; ``reference`` stands on the page and in the one log line; ``next_url`` is where the
    person wanted to go, if that is known.
    """

    code: ClassVar[str] = "identity_error"
    stage: ClassVar[Stage] = Stage.SERVICE
    recovery: ClassVar[Recovery] = Recovery.RETRY
    public_message: ClassVar[str | Promise] = _("Something went wrong. Please try again.")
    next_url: str = ""

    def __init__(self, detail: str = "") -> None:
        super().__init__(detail or self.code)
        self.detail = detail
        self.reference = secrets.token_hex(4)


class ConfigurationError(IdentityError, ImproperlyConfigured):
    code = "configuration"
    stage = Stage.CONFIGURATION
    recovery = Recovery.CONTACT
    public_message = _("Sign-in is not set up correctly. Please tell the site's operators.")


def shaped_code(text: object) -> str:
    """``text`` if it looks like an error code, else empty: foreign text is never quoted."""
    return text if isinstance(text, str) and SERVICE_CODE.fullmatch(text) else ""
