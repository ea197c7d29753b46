"""One structured log line for each outcome.

A line has codes, names, row ids and references alone. Each fact stands in the text of the line, and
in a field of its own (``extra``) for formatters.
"""

import logging
import traceback
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any

from django.conf import settings

from django_identity.exceptions import IdentityError

logger = logging.getLogger("django_identity")
OURS = str(Path(__file__).parent)


class LogEvent(StrEnum):
    SIGN_IN_COMPLETED = "identity.sign_in.completed"
    SIGN_IN_FAILED = "identity.sign_in.failed"
    SIGN_IN_UNREAD = "identity.sign_in.unread"
    CONNECT_REDEEMED = "identity.connect.redeemed"
    CONNECT_FAILED = "identity.connect.failed"
    GATE_FAILED = "identity.gate.failed"
    REFETCH_FAILED = "identity.refetch.failed"
    CLAIMS_UNPROVEN = "identity.claims.unproven"
    USER_UPDATE_FAILED = "identity.user_update.failed"
    LINK_NOTICE_FAILED = "identity.link_notice.failed"
    DOCUMENTS_READ = "identity.documents.read"
    DOCUMENTS_FAILED = "identity.documents.failed"
    DISCONNECTED = "identity.disconnected"
    DISCONNECT_FAILED = "identity.disconnect_failed"
    EVENT_RECEIVED = "identity.event.received"
    EVENT_REFUSED = "identity.event.refused"
    EVENT_FAILED = "identity.event.failed"
    HANDLER_FAILED = "identity.event.handler_failed"
    GRANT_LOST = "identity.grant.lost"
    GRANT_UNREADABLE = "identity.grant.unreadable"
    ERASED = "identity.erasure.done"
    ERASURE_FAILED = "identity.erasure.failed"
    UNEXPECTED = "identity.unexpected"
    SERVICE_CALLED = "identity.service.called"
    BROKER_FAILED = "identity.broker.failed"
    BROKER_UNKNOWN = "identity.broker.unknown"


def log(
    event: LogEvent,
    *,
    level: int = logging.INFO,
    **facts: object,
) -> None:
    """Log one line with those ``facts`` that have a value."""
    facts = {name: fact for name, fact in facts.items() if fact is not None}
    text = "".join(f" {name}={fact}" for name, fact in facts.items())
    fields = {"event": event.value, **facts}
    logger.log(level, "%s%s", event, text, extra=fields)


def log_failure(event: LogEvent, error: IdentityError) -> None:
    """Log a failure: one line at WARNING. The person's page shows the same reference."""
    facts = {
        "code": error.code,
        "reference": error.reference,
        "request_id": error.request_id or None,
        "detail": str(error),
    }
    log(event, level=logging.WARNING, **facts)


def log_trouble(event: LogEvent, error: Exception, /, **facts: Any) -> None:
    """Log that code outside this package raised ``error``, by default at ERROR.

    The record has the class of the error, and ``where`` it was raised. It has neither its message
    nor a variable, which may contain personal data. With ``DEBUG`` a server that does not answer is
    a WARNING.
    """
    level = logging.ERROR
    # A developer's machine often has no mail server. All errors of ``smtplib`` are OSErrors.
    if settings.DEBUG and isinstance(error, OSError):
        level = logging.WARNING
    facts.setdefault("level", level)
    where = "".join(_places(error)) or None
    log(event, error=type(error).__name__, **facts, where=where)


def _places(error: BaseException) -> Iterator[str]:
    """Where it was raised in the code outside this package, and each of its causes likewise."""
    cause: BaseException | None = error
    while cause is not None:
        for place in traceback.extract_tb(cause.__traceback__):
            if not place.filename.startswith(OURS):
                yield f"\n  {place.filename}, line {place.lineno}, in {place.name}"
        cause = cause.__cause__ or cause.__context__
        if cause is not None:
            yield f"\n{type(cause).__qualname__}"


def models_in_the_way(error: Exception) -> str | None:
    """The models with rows that protect the deleted one; None for any other error."""
    rows = getattr(error, "protected_objects", ())
    if not rows:
        rows = getattr(error, "restricted_objects", ())
    models = {row._meta.label for row in rows}
    return ",".join(sorted(models)) or None
