"""Stored events: written once, known again by a digest, emptied when nobody may be named."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from django.db import connection
from django.db.models import BigIntegerField, Case, Exists, QuerySet, When

from django_identity.lifecycle import receipts
from django_identity.lifecycle.statements import (
    Compiled,
    Slot,
    Statement,
    inserting,
    moment,
    selecting,
    text,
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


@cache
def look(keys: int) -> Statement:
    """How a stored event was filed, and whether it falls under an erasure of its subject.

    ``keys``: how many slots ``keyed_…`` there are for the subject's keyed digests.
    """
    erasures = ErasureReceipt.objects.filter(
        receipts.covering(moment("at")),
        subject_digest__in=[text(f"keyed_{number}") for number in range(keys)],
    )
    return selecting(
        lambda: (
            WebhookEvent.objects.filter(event_digest=text("digest"))
            .annotate(is_erased=Exists(erasures))
            .values_list("outcome", "is_erased")
        )
    )


def settle(event_digest: str, *, is_late: bool, is_erased: bool) -> None:
    """What is left for an event that changed nothing.

    It came too late: something newer is known of the subject. Its subject is erased: it names
    nobody.
    """
    late: Mapping[str, Any] = {"outcome": EventOutcome.SUPERSEDED} if is_late else {}
    erased: Mapping[str, Any] = EMPTIED if is_erased else {}
    if late or erased:
        WebhookEvent.objects.filter(event_digest=event_digest).update(**late, **erased)


def empty(rows: QuerySet[WebhookEvent]) -> int:
    """Take out of these events who they are about and what they say; the digests stay."""
    return rows.update(**EMPTIED)
