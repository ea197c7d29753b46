"""Stored events: written once, known again by a digest, emptied when nobody may be named."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from django.db import IntegrityError, connection
from django.db.models import BigIntegerField, Case, Exists, QuerySet, When

from django_identity.lifecycle import receipts
from django_identity.lifecycle.statements import (
    Compiled,
    Slot,
    Statement,
    inserting,
    moment,
    text,
    updating,
)
from django_identity.models import ErasureReceipt, EventOutcome, LinkedIdentity, WebhookEvent

#: What becomes of an event of which nobody may be named any more; its digest and its type stay.
EMPTIED: Mapping[str, Any] = {
    "payload": None,
    "subject": "",
    "subject_digest": "",
    "event_id": "",
    "error": "",
}


def _stored() -> QuerySet[WebhookEvent]:
    return WebhookEvent.objects.filter(event_digest=text("digest"))


def _identities() -> QuerySet[LinkedIdentity]:
    return LinkedIdentity.objects.filter(subject_digest=text("subject_digest"))


# Who links a subject and who stores an event about it must not miss each other: whoever comes
# second waits here, and sees what the first one did. Elsewhere than on PostgreSQL the first write,
# or the look at an index, waits by itself.


def _advisory(function: str) -> Compiled:
    return f"{function}(%s)", [Slot("lock", BigIntegerField())]


def _sharing() -> Compiled | None:
    """Waits until nobody is linking the subject of the slot ``lock``, and keeps them waiting."""
    is_needed = connection.vendor == "postgresql"
    return _advisory("pg_advisory_xact_lock_shared") if is_needed else None


def _holding() -> Compiled:
    sql, parameters = _advisory("pg_advisory_xact_lock")
    return f"SELECT {sql}", parameters


_HOLD = Statement(_holding)


def lock_of(subject_digest: str) -> int:
    """The subject's number among PostgreSQL's advisory locks."""
    return int.from_bytes(bytes.fromhex(subject_digest[:16] or "00"), signed=True)


def hold(subject_digest: str) -> None:
    """Until the end of this transaction no event about the subject is applied or overlooked."""
    if connection.vendor == "postgresql":
        _HOLD.run({"lock": lock_of(subject_digest)})


#: Its outcome depends on whether the subject is linked: ``if_linked`` or ``if_unknown``.
INSERT = inserting(
    WebhookEvent,
    computed={
        "outcome": Case(
            When(Exists(_identities()), then=text("if_linked")), default=text("if_unknown")
        )
    },
    waiting=_sharing,
)
#: It came too late: something newer is known of the subject, and it changed nothing.
SUPERSEDE = updating(
    lambda: _stored().filter(
        ~Exists(_identities().filter(last_event_digest=text("digest"))),
        outcome=EventOutcome.APPLIED,
    ),
    outcome=EventOutcome.SUPERSEDED,
)


@cache
def emptying(keys: int) -> Statement:
    """Empties an event that changed nothing and falls under an erasure of its subject.

    ``keys``: how many slots ``keyed_…`` there are for the subject's keyed digests.
    """
    erasures = ErasureReceipt.objects.filter(
        receipts.covering(moment("at")),
        subject_digest__in=[text(f"keyed_{number}") for number in range(keys)],
    )
    unapplied = _stored().exclude(outcome=EventOutcome.APPLIED)
    return updating(lambda: unapplied.filter(Exists(erasures)), **EMPTIED)


def empty(rows: QuerySet[WebhookEvent]) -> int:
    """Take out of these events who they are about and what they say; the digests stay."""
    return rows.update(**EMPTIED)


def is_repeat(error: IntegrityError) -> bool:
    """Whether it was the event's digest that was there already; each database names what it can."""
    return "identity_event_once" in str(error) or "event_digest" in str(error)
