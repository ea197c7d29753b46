"""One structured log line for each outcome.

A line has codes, names, row ids and references, and never a person. Each fact stands in the text of
the line, and in a field of its own (``extra``) for formatters.
"""

import logging
from enum import StrEnum

from django_identity.exceptions import IdentityError

logger = logging.getLogger("django_identity")


class LogEvent(StrEnum):
    SIGN_IN_COMPLETED = "identity.sign_in.completed"
    SIGN_IN_FAILED = "identity.sign_in.failed"
    CONNECT_REDEEMED = "identity.connect.redeemed"
    CONNECT_FAILED = "identity.connect.failed"
    REFETCH_FAILED = "identity.refetch.failed"
    USER_FIELDS_REFUSED = "identity.user_fields.refused"
    LINK_NOTICE_FAILED = "identity.link_notice.failed"
    DOCUMENTS_READ = "identity.documents.read"
    DOCUMENTS_FAILED = "identity.documents.failed"
    DISCONNECTED = "identity.disconnected"
    DISCONNECT_FAILED = "identity.disconnect_failed"
    EVENT_RECEIVED = "identity.event.received"
    EVENT_REFUSED = "identity.event.refused"
    HANDLER_FAILED = "identity.event.handler_failed"
    EVENTS_NOT_HANDLED = "identity.event.not_handled"
    GRANT_LOST = "identity.grant.lost"
    ERASED = "identity.erasure.done"
    ERASURE_FAILED = "identity.erasure.failed"


def log(event: LogEvent, *, application: str, **facts: object) -> None:
    """Log a success: one line at INFO."""
    _write(logging.INFO, event, application, facts)


def log_refusal(event: LogEvent, *, application: str, **facts: object) -> None:
    """Log that something was left out of an otherwise successful event: one line at WARNING."""
    _write(logging.WARNING, event, application, facts)


def log_error(event: LogEvent, *, application: str, **facts: object) -> None:
    """Log something that an operator must look at: one line at ERROR."""
    _write(logging.ERROR, event, application, facts)


def log_failure(event: LogEvent, error: IdentityError, *, application: str) -> None:
    """Log a failure: one line at WARNING. The person's page shows the same reference."""
    facts = {"code": error.code, "reference": error.reference,
             "detail": error}  # fmt: skip
    _write(logging.WARNING, event, application, facts)


def log_trouble(event: LogEvent, error: Exception, /, *, application: str, **facts: object) -> None:
    """Log that the site's code raised ``error``: one line at ERROR.

    The line has the class of the error but not its message, which may contain personal data.
    """
    _write(logging.ERROR, event, application, {"error": type(error).__name__, **facts})


def _write(level: int, event: LogEvent, application: str, facts: dict[str, object]) -> None:
    facts = {name: str(fact) if isinstance(fact, Exception) else fact
             for name, fact in facts.items()}  # fmt: skip
    text = "".join(f" {name}={fact}" for name, fact in facts.items())
    fields = {"event": event.value, "application": application, **facts}
    logger.log(level, "%s application=%s%s", event, application, text, extra=fields)
