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


#: Its outcome depends on whether the subject is linked: ``if_linked`` or ``if_unknown``.
INSERT = inserting(
    WebhookEvent,
    computed={
        "outcome": Case(
            When(Exists(_identities()), then=text("if_linked")), default=text("if_unknown")
        )
    },
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


def supersede(event_digest: str) -> None:
    """It came too late: something newer is known of the subject."""
    stored = WebhookEvent.objects.filter(event_digest=event_digest)
    stored.update(outcome=EventOutcome.SUPERSEDED)


def empty(rows: QuerySet[WebhookEvent]) -> int:
    """Take out of these events who they are about and what they say; the digests stay."""
    return rows.update(**EMPTIED)


# Who links a subject and who stores an event about it must not miss each other: whoever comes
# second waits here, and sees what the first one did. Elsewhere than on PostgreSQL the first write,
# or the look at an index, waits by itself.


def _advisory(function: str) -> Statement:
    def compiled() -> Compiled:
        return f"SELECT {function}(%s)", [Slot("lock", BigIntegerField())]

    return Statement(compiled)


_SHARE = _advisory("pg_advisory_xact_lock_shared")
_HOLD = _advisory("pg_advisory_xact_lock")


def lock_of(subject_digest: str) -> int:
    """The subject's number among PostgreSQL's advisory locks."""
    return int.from_bytes(bytes.fromhex(subject_digest[:16] or "00"), signed=True)


def sharing(vendor: str) -> tuple[Statement, ...]:
    """Waits until nobody is linking the subject of the slot ``lock``, and keeps them waiting."""
    return (_SHARE,) if vendor == "postgresql" else ()


def hold(subject_digest: str) -> None:
    """Until the end of this transaction no event about the subject is applied or overlooked."""
    if connection.vendor == "postgresql":
        _HOLD.run({"lock": lock_of(subject_digest)})
