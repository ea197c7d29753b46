"""Stored events: written once, known again by a digest, emptied when nobody may be named."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from django.db import connection
from django.db.models import BigIntegerField, Case, Exists, F, Q, QuerySet, Value, When

from django_identity.lifecycle import receipts
from django_identity.lifecycle.exchange import Exchange, joined
from django_identity.lifecycle.statements import (
    Compiled,
    Slot,
    Statement,
    inserting,
    moment,
    selecting,
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


# Who links a subject and who stores an event about it must not miss each other: whoever comes
# second waits here, and sees what the first one did. Elsewhere than on PostgreSQL the first write,
# or the look at an index, waits by itself.


def _locking(function: str) -> Statement:
    return Statement(lambda: (f"SELECT {function}(%s)", [Slot("lock", BigIntegerField())]))


_HOLD = _locking("pg_advisory_xact_lock")
#: Waits until nobody is linking the subject of the slot ``lock``, and keeps them waiting.
_HOLD_OFF = _locking("pg_advisory_xact_lock_shared")


def lock_of(subject_digest: str) -> int:
    """The subject's number among PostgreSQL's advisory locks."""
    return int.from_bytes(bytes.fromhex(subject_digest[:16] or "00"), signed=True)


def hold(subject_digest: str) -> None:
    """Until the end of this transaction no event about the subject is applied or overlooked."""
    if connection.vendor == "postgresql":
        _HOLD.run({"lock": lock_of(subject_digest)})


def _insert(ending: Callable[[], Compiled] = lambda: ("", ())) -> Statement:
    is_linked = Exists(LinkedIdentity.objects.filter(subject_digest=text("subject_digest")))
    outcome = Case(When(is_linked, then=text("if_linked")), default=text("if_unknown"))
    return inserting(WebhookEvent, computed={"outcome": outcome}, ending=ending)


_INSERT = _insert()
_INSERT_OR_NOTHING = _insert(
    lambda: (" ON CONFLICT (event_digest) DO NOTHING RETURNING outcome", ())
)
REPEATED = ""


def store(
    exchange: Exchange, values: Mapping[str, object], *, asks_for_erasure: bool
) -> str | None:
    """Write an event down, first of all; a request for erasure gets its receipt.

    Returns the outcome that it was filed with, ``if_linked`` or ``if_unknown``, or ``REPEATED``.
    PostgreSQL alone can say: there a repeat is no error, which would put the event into the
    server's log. Elsewhere it is an ``IntegrityError``, and None is returned.
    """
    receipt = (receipts.INSERT,) if asks_for_erasure else ()
    if connection.vendor != "postgresql":
        exchange.send(_INSERT, *receipt, values=values)
        return None
    answer = exchange.send(_HOLD_OFF, *joined(*receipt, _INSERT_OR_NOTHING), values=values)
    return str(answer.row[0]) if answer.row else REPEATED


@cache
def telling(change: Statement) -> Statement:
    """The change of an identity, which on PostgreSQL returns its key and whether it is due."""

    def compiled() -> Compiled:
        sql, parameters = change.compiled()
        if connection.vendor != "postgresql":
            return sql, parameters
        return f"{sql} RETURNING id, refetch_due_at IS NOT NULL", parameters

    return Statement(compiled)


@cache
def look(keys: int) -> Statement:
    """A SELECT of a stored event: whether it falls under an erasure of its subject.

    ``keys``: how many slots ``keyed_…`` there are for the subject's keyed digests.
    """
    return selecting(
        lambda: (
            WebhookEvent.objects.filter(event_digest=text("digest"))
            .annotate(is_erased=_is_erased(keys))
            .values_list("is_erased")
        )
    )


@cache
def settle(keys: int) -> Statement:
    """An UPDATE of an event that changed nothing.

    It came too late: something newer is known of the subject. Its subject is erased: it names
    nobody. ``keys``: as above.
    """
    was_applied, is_erased = Q(outcome=EventOutcome.APPLIED), _is_erased(keys)
    emptied = {
        column: Case(When(is_erased, then=Value(nothing)), default=F(column))
        for column, nothing in EMPTIED.items()
    }
    outcome = Case(When(was_applied, then=Value(EventOutcome.SUPERSEDED)), default=F("outcome"))
    return updating(
        lambda: WebhookEvent.objects.filter(
            was_applied | Q(is_erased), event_digest=text("digest")
        ),
        outcome=outcome,
        **emptied,
    )


def _is_erased(keys: int) -> Exists | Value:
    if not keys:
        return Value(False)
    return Exists(
        ErasureReceipt.objects.filter(
            receipts.covering(moment("at")),
            subject_digest__in=[text(f"keyed_{number}") for number in range(keys)],
        )
    )


def empty(rows: QuerySet[WebhookEvent]) -> int:
    """Take out of these events who they are about and what they say; the digests stay."""
    return rows.update(**EMPTIED)
