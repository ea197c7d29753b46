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
    """Each outcome. The comment above a name has its level and when it is logged."""

    #: INFO | a person signed in, linked or renewed
    SIGN_IN_COMPLETED = "identity.sign_in.completed"
    #: WARNING | a sign-in failed: `code` and `reference` are those of the page. With
    #: `form_expired`, `detail` is Django's reason
    SIGN_IN_FAILED = "identity.sign_in.failed"
    #: WARNING | somebody signed in, and something could not be read or proven: `code`,
    #: `detail`. Gates stay closed, and a re-fetch is due
    SIGN_IN_UNREAD = "identity.sign_in.unread"
    #: INFO | a Connect code was redeemed; `request_id`
    CONNECT_REDEEMED = "identity.connect.redeemed"
    #: WARNING | a Connect code failed; `request_id` if the service had answered
    CONNECT_FAILED = "identity.connect.failed"
    #: ERROR | a gate in a template could not be answered and stays closed; `reason`
    GATE_FAILED = "identity.gate.failed"
    #: WARNING; ERROR for a rejected client | a re-fetch failed; `code`, or `error` for the
    #: class of an unexpected one
    REFETCH_FAILED = "identity.refetch.failed"
    #: WARNING | list and credential name different providers for these `claims`, which open no
    #: gate: tell the service; `identity`
    CLAIMS_UNPROVEN = "identity.claims.unproven"
    #: WARNING for a refused value; ERROR if your own code raised | what `update_user` wrote
    #: was rolled back; `error`, `where`
    USER_UPDATE_FAILED = "identity.user_update.failed"
    #: ERROR | an e-mail about a connection could not be sent
    LINK_NOTICE_FAILED = "identity.link_notice.failed"
    #: INFO | a person's documents were read; `view`, `scope`, `row`
    DOCUMENTS_READ = "identity.documents.read"
    #: WARNING | they could not be read, or may not be
    DOCUMENTS_FAILED = "identity.documents.failed"
    #: INFO | an identity was disconnected; `identity` and `linked`: the key of its row and when
    #: it was made, for a restored backup
    DISCONNECTED = "identity.disconnected"
    #: WARNING; ERROR | an identity could not be disconnected, or the page that asks about it
    #: shown; `code`. ERROR: your site protects a link by code whose consent was revoked, so
    #: it was emptied; `error`, `models`
    DISCONNECT_FAILED = "identity.disconnect_failed"
    #: INFO; WARNING if it names nobody | an event was stored, or repeated; `type`, `outcome`,
    #: `row`, `members`, and `why` one was ignored: `unknown_type`, `names_nobody`,
    #: `not_linked`, `not_covered` by the consent
    EVENT_RECEIVED = "identity.event.received"
    #: WARNING | a delivery was refused; `code`. With `names_nobody`, `detail` names the
    #: members that the event had
    EVENT_REFUSED = "identity.event.refused"
    #: ERROR | a stored event could not be applied, such as after a lock time-out. It is tried
    #: again; `row`, `attempt`, `error`
    EVENT_FAILED = "identity.event.failed"
    #: ERROR | a handler raised an error; `handler`, `attempt`, `error`, `where`
    HANDLER_FAILED = "identity.event.handler_failed"
    #: WARNING | a grant ended: the person must sign in again; `reason`
    GRANT_LOST = "identity.grant.lost"
    #: ERROR | no key of `ENCRYPTION_KEYS` opens a stored token; `identity`, `detail`
    GRANT_UNREADABLE = "identity.grant.unreadable"
    #: INFO | a person was erased; `row` of the receipt; `identity` and `linked`: the key of
    #: the identity's row and when it was made, for a restored backup
    ERASED = "identity.erasure.done"
    #: ERROR | something could not be deleted: the site's part of an erasure, or old rows. It
    #: is tried again; `error`, `models` in the way. WARNING: the page about it could not be
    #: shown; `code`
    ERASURE_FAILED = "identity.erasure.failed"
    #: ERROR | code of your site raised an error, or the package did; `error`, `where`,
    #: `reference`. WARNING: a page of a person could not be shown; `code`
    UNEXPECTED = "identity.unexpected"
    #: DEBUG | the service answered; `endpoint` (a name), `outcome` (the status),
    #: `milliseconds`
    SERVICE_CALLED = "identity.service.called"
    #: WARNING | the broker took no message; upkeep finds the work within a minute
    BROKER_FAILED = "identity.broker.failed"
    #: INFO | this process knows no broker, so it wakes no worker: right for a site with cron.
    #: Else import the Celery app in the `__init__.py` of your site's package
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
