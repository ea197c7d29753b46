"""Names of log events. A line carries codes, names and references; a subject only as a digest."""

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
    DISCONNECTED = "identity.disconnected"
    EVENT_RECEIVED = "identity.event.received"
    EVENT_REFUSED = "identity.event.refused"
    HANDLER_FAILED = "identity.event.handler_failed"
    ERASED = "identity.erasure.done"
    ERASURE_FAILED = "identity.erasure.failed"


def log(event: LogEvent, *, application: str, **facts: object) -> None:
    """One line at INFO for something that went as it should."""
    logger.info("%s application=%s%s", event, application, _listed(facts))


def log_failure(event: LogEvent, error: IdentityError, *, application: str) -> None:
    """The one line of a failure; its reference stands on the person's page too."""
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
    """One line at ERROR for code of the site's that raised; its own words may name somebody."""
    kind = type(error).__name__
    logger.error("%s application=%s error=%s%s", event, application, kind, _listed(facts))


def _listed(facts: dict[str, object]) -> str:
    return "".join(f" {name}={value}" for name, value in facts.items())
