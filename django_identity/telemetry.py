"""Names of log events. A log line has codes, names and references, and a subject as a digest."""

from __future__ import annotations

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
    DISCONNECTED = "identity.disconnected"
    EVENT_RECEIVED = "identity.event.received"
    EVENT_REFUSED = "identity.event.refused"
    HANDLER_FAILED = "identity.event.handler_failed"
    ERASED = "identity.erasure.done"
    ERASURE_FAILED = "identity.erasure.failed"


def log(event: LogEvent, *, application: str, **facts: object) -> None:
    """Log a success: one line at INFO."""
    logger.info("%s application=%s%s", event, application, _listed(facts))


def log_refusal(event: LogEvent, *, application: str, **facts: object) -> None:
    """Log that something was left out of an otherwise successful event: one line at WARNING."""
    logger.warning("%s application=%s%s", event, application, _listed(facts))


def log_failure(event: LogEvent, error: IdentityError, *, application: str) -> None:
    """Log a failure: one line at WARNING. The person's page shows the same reference."""
    logger.warning(
        "%s application=%s code=%s stage=%s reference=%s detail=%s",
        event,
        application,
        error.code,
        error.stage,
        error.reference,
        error,
    )


def log_trouble(event: LogEvent, error: Exception, /, *, application: str, **facts: object) -> None:
    """Log that the site's code raised ``error``: one line at ERROR.

    The line has the class of the error but not its message, which may contain personal data.
    """
    kind = type(error).__name__
    logger.error("%s application=%s error=%s%s", event, application, kind, _listed(facts))


def _listed(facts: dict[str, object]) -> str:
    return "".join(f" {name}={value}" for name, value in facts.items())
